/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for pack_file, in one piece, as the profiler's chunks are laid out. */
#ifndef SFBPF_TESTS_SPACE_H
#define SFBPF_TESTS_SPACE_H

#include <stdint.h>
#include <stdlib.h>

#include "tables/pack.h"

struct space {
	uint8_t *mem;
	uint32_t size, used;
};

/* Location 0 means "nothing", so the first cell is left out. */
static inline void space_clear(struct space *s)
{
	s->used = 16;
}

static inline bool space_init(struct space *s, uint32_t size)
{
	*s = (struct space){ .mem = malloc(size), .size = size };
	space_clear(s);
	return s->mem != NULL;
}

/* pack_space.alloc with a struct space */
static inline void *space_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct space *s = ctx;
	void *mem;

	size = (size + 15) & ~15u;
	if ((s->used & (SF_CHUNK - 1)) + size > SF_CHUNK)
		s->used = (s->used + SF_CHUNK - 1) & ~(SF_CHUNK - 1);
	if (size > s->size - s->used)
		return NULL;
	mem = s->mem + s->used;
	*ret_loc = s->used >> SF_CHUNK_SHIFT << 16 | (s->used & (SF_CHUNK - 1)) >> 4;
	s->used += size;
	return mem;
}

static inline const void *space_at(const struct space *s, uint32_t loc)
{
	return s->mem + ((size_t)SF_LOC_CHUNK(loc) << SF_CHUNK_SHIFT) + SF_LOC_OFFSET(loc);
}

#endif
