/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

static int grow(struct idmap *map)
{
	size_t n = map->nslots ? map->nslots * 2 : 1024;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t id = 0; id < map->n; id++) {
		size_t at = hash_mix(map->keys[id].a, map->keys[id].b) & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)id + 1;
	}
	free(map->slots);
	map->slots = slots;
	map->nslots = n;
	return 0;
}

int idmap_get(struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret)
{
	size_t at;

	if (map->n * 2 >= map->nslots && grow(map))
		return -ENOMEM;
	for (at = hash_mix(a, b) & (map->nslots - 1); map->slots[at]; at = (at + 1) & (map->nslots - 1)) {
		const struct idmap_key *k = &map->keys[map->slots[at] - 1];

		if (k->a == a && k->b == b) {
			*ret = map->slots[at] - 1;
			return 0;
		}
	}
	if (map->n >= UINT32_MAX - 1 || vec_reserve(&map->keys, &map->cap, map->n + 1, sizeof(*map->keys)))
		return -ENOMEM;
	map->keys[map->n] = (struct idmap_key){ a, b };
	*ret = (uint32_t)map->n++;
	map->slots[at] = *ret + 1;
	return 0;
}

void idmap_reset(struct idmap *map)
{
	if (map->n)
		memset(map->slots, 0, map->nslots * sizeof(*map->slots));
	map->n = 0;
}

bool idmap_find(const struct idmap *map, uint64_t a, uint64_t b, uint32_t *ret)
{
	if (!map->n)
		return false;
	for (size_t at = hash_mix(a, b) & (map->nslots - 1); map->slots[at]; at = (at + 1) & (map->nslots - 1)) {
		const struct idmap_key *k = &map->keys[map->slots[at] - 1];

		if (k->a == a && k->b == b) {
			*ret = map->slots[at] - 1;
			return true;
		}
	}
	return false;
}

void idmap_free(struct idmap *map)
{
	free(map->keys);
	free(map->slots);
	*map = (struct idmap){ 0 };
}
