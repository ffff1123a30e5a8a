/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/strpool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

#define CHUNK 65536

struct chunk {
	struct chunk *next;
	size_t cap;
	char data[];
};

struct entry {
	const char *str;
	uint32_t len, hash;
};

struct strpool {
	struct chunk *chunks;		/* the first has `used` bytes taken, the others are full */
	size_t used, chunk_bytes;
	struct entry *entries;
	size_t count, cap;
	uint32_t *slots;		/* id + 1, 0: free; a power of two, at most half full */
	size_t nslots;
};

struct strpool *strpool_new(void)
{
	return calloc(1, sizeof(struct strpool));
}

void strpool_free(struct strpool *sp)
{
	if (!sp)
		return;
	while (sp->chunks) {
		struct chunk *next = sp->chunks->next;

		free(sp->chunks);
		sp->chunks = next;
	}
	free(sp->entries);
	free(sp->slots);
	free(sp);
}

static char *chunk_alloc(struct strpool *sp, size_t n)
{
	if (!sp->chunks || n > sp->chunks->cap - sp->used) {
		size_t cap = n > CHUNK ? n : CHUNK;
		struct chunk *c = malloc(sizeof(*c) + cap);

		if (!c)
			return NULL;
		c->next = sp->chunks;
		c->cap = cap;
		sp->chunks = c;
		sp->used = 0;
		sp->chunk_bytes += sizeof(*c) + cap;
	}
	sp->used += n;
	return sp->chunks->data + sp->used - n;
}

static int grow_slots(struct strpool *sp)
{
	size_t n = sp->nslots ? sp->nslots * 2 : 256;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t id = 0; id < sp->count; id++) {
		size_t at = sp->entries[id].hash & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)id + 1;
	}
	free(sp->slots);
	sp->slots = slots;
	sp->nslots = n;
	return 0;
}

int strpool_intern(struct strpool *sp, const char *str, size_t len, uint32_t *ret)
{
	uint32_t hash = (uint32_t)hash_bytes(str, len);
	size_t at;
	char *copy;

	if (sp->count * 2 >= sp->nslots && grow_slots(sp))
		return -ENOMEM;
	for (at = hash & (sp->nslots - 1); sp->slots[at]; at = (at + 1) & (sp->nslots - 1)) {
		const struct entry *e = &sp->entries[sp->slots[at] - 1];

		if (e->hash == hash && e->len == len && memcmp(e->str, str, len) == 0) {
			*ret = sp->slots[at] - 1;
			return 0;
		}
	}
	if (len >= UINT32_MAX || sp->count >= UINT32_MAX - 1 ||
	    vec_reserve(&sp->entries, &sp->cap, sp->count + 1, sizeof(*sp->entries)))
		return -ENOMEM;
	copy = chunk_alloc(sp, len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, str, len);
	copy[len] = 0;
	sp->entries[sp->count] = (struct entry){ .str = copy, .len = (uint32_t)len, .hash = hash };
	*ret = (uint32_t)sp->count++;
	sp->slots[at] = *ret + 1;
	return 0;
}

const char *strpool_str(const struct strpool *sp, uint32_t id)
{
	return sp->entries[id].str;
}

uint32_t strpool_count(const struct strpool *sp)
{
	return (uint32_t)sp->count;
}

size_t strpool_bytes(const struct strpool *sp)
{
	return sizeof(*sp) + sp->chunk_bytes + sp->cap * sizeof(*sp->entries) + sp->nslots * sizeof(*sp->slots);
}
