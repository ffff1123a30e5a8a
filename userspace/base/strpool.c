/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/strpool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/slots.h"
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
	struct chunk *chunks; /* `used` bytes of the first are taken; the others are full */
	size_t used, chunk_bytes;
	struct entry *entries;
	size_t count, cap;
	struct slots slots;
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
	slots_free(&sp->slots);
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

static uint64_t hash_of(const void *ctx, size_t id)
{
	const struct strpool *sp = ctx;

	return sp->entries[id].hash;
}

uint32_t strpool_hash(const char *str, size_t len)
{
	return (uint32_t)hash_bytes(str, len);
}

void strpool_fetch(const struct strpool *sp, uint32_t hash, enum strpool_stage stage)
{
	size_t at = hash & (sp->slots.n - 1);

	if (!sp->count)
		return;
	if (stage == STRPOOL_SLOT)
		__builtin_prefetch(&sp->slots.ids[at]);
	else if (sp->slots.ids[at] && stage == STRPOOL_ENTRY)
		__builtin_prefetch(&sp->entries[sp->slots.ids[at] - 1]);
	else if (sp->slots.ids[at])
		__builtin_prefetch(sp->entries[sp->slots.ids[at] - 1].str);
}

int strpool_intern(struct strpool *sp, const char *str, size_t len, uint32_t *ret)
{
	uint32_t hash = strpool_hash(str, len);
	size_t at;
	char *copy;

	if (slots_reserve(&sp->slots, sp->count, hash_of, sp))
		return -ENOMEM;
	slots_each(&sp->slots, hash, at) {
		const struct entry *e = &sp->entries[sp->slots.ids[at] - 1];

		if (e->hash == hash && e->len == len && memcmp(e->str, str, len) == 0) {
			*ret = sp->slots.ids[at] - 1;
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
	sp->slots.ids[at] = *ret + 1;
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
	return sizeof(*sp) + sp->chunk_bytes + sp->cap * sizeof(*sp->entries) +
	       slots_bytes(&sp->slots);
}
