/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/vec.h"

static uint64_t hash_of(const void *ctx, size_t id)
{
	const struct idmap *map = ctx;

	return hash_mix(map->keys[id].a, map->keys[id].b);
}

/* *ret_at: the slot of the pair, or the free slot where it belongs. */
static inline bool find(const struct idmap *map, uint64_t a, uint64_t b, size_t *ret_at)
{
	size_t at;

	slots_each(&map->slots, hash_mix(a, b), at) {
		const struct idmap_key *k = &map->keys[map->slots.ids[at] - 1];

		if (k->a == a && k->b == b)
			break;
	}
	*ret_at = at;
	return map->slots.ids[at];
}

int idmap_get(struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret)
{
	size_t at;

	if (slots_reserve(&map->slots, map->n, hash_of, map))
		return -ENOMEM;
	if (find(map, a, b, &at)) {
		*ret = map->slots.ids[at] - 1;
		return 0;
	}
	if (map->n >= UINT32_MAX - 1 ||
	    vec_reserve(&map->keys, &map->cap, map->n + 1, sizeof(*map->keys)))
		return -ENOMEM;
	map->keys[map->n] = (struct idmap_key){ a, b };
	*ret = (uint32_t)map->n++;
	map->slots.ids[at] = *ret + 1;
	return 0;
}

void idmap_reset(struct idmap *map)
{
	slots_reset(&map->slots);
	map->n = 0;
}

bool idmap_find(const struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret)
{
	size_t at;

	if (!map->n || !find(map, a, b, &at))
		return false;
	*ret = map->slots.ids[at] - 1;
	return true;
}

size_t idmap_bytes(const struct idmap *map)
{
	return map->cap * sizeof(*map->keys) + slots_bytes(&map->slots);
}

void idmap_free(struct idmap *map)
{
	free(map->keys);
	slots_free(&map->slots);
	*map = (struct idmap){ 0 };
}
