/* SPDX-License-Identifier: BSD-2-Clause */
/* What BPF relies on in packed tables, looked at independently of the code that checks them. */
#ifndef SFBPF_TESTS_SOUND_H
#define SFBPF_TESTS_SOUND_H

#include <string.h>

#include "space.h"

#define SOUND_PIECES 4096

/* Memory for tables that knows what was asked for. */
struct sound_space {
	struct space space;
	uint32_t n, locs[SOUND_PIECES], sizes[SOUND_PIECES];
};

static inline void sound_clear(struct sound_space *s)
{
	space_clear(&s->space);
	s->n = 0;
}

/* pack_space.alloc with a struct sound_space */
static inline void *sound_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct sound_space *s = ctx;
	void *mem = s->n < SOUND_PIECES ? space_alloc(&s->space, size, ret_loc) : NULL;

	if (mem) {
		s->locs[s->n] = *ret_loc;
		s->sizes[s->n++] = size;
	}
	return mem;
}

static inline uint32_t sound_size(const struct sound_space *s, uint32_t loc)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->locs[i] == loc)
			return s->sizes[i];
	return 0;
}

/* Inside, ascending, with rules that are there. */
static inline bool sound_page(const uint8_t *page, uint32_t size, uint64_t nrules)
{
	uint32_t n = size < SF_PAGE_ROWS ? 0 : (size - SF_PAGE_ROWS) / 4, row;
	uint16_t last = 0, at;

	for (uint32_t i = 0; i < SF_PAGE_INDEX; i++, last = at) {
		memcpy(&at, page + 2 * i, 2);
		if (at < last || at > n || (!i && at) || (i + 1 == SF_PAGE_INDEX && at != n))
			return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&row, page + SF_PAGE_ROWS + 4ul * i, 4);
		if ((!i && (row & 0xffff)) ||
		    ((row >> 16) >= SF_RULE_INDEXED + nrules && (row >> 16) < SF_RULE_END))
			return false;
	}
	return n != 0;
}

static inline bool sound_tables(const struct sound_space *s, const struct pack_result *p)
{
	const uint32_t *dir = space_at(&s->space, p->tables.dir);

	if (!p->tables.npages || sound_size(s, p->tables.dir) < 4 * p->tables.npages ||
	    p->tables.nrules != p->rules ||
	    (p->rules && sound_size(s, p->tables.rules) < p->rules * sizeof(struct sf_rule)))
		return false;
	for (uint32_t i = 0; i < p->tables.npages; i++)
		if (dir[i] &&
		    !sound_page(space_at(&s->space, dir[i]), sound_size(s, dir[i]), p->rules))
			return false;
	for (uint32_t i = 0; i < p->nranges; i++)
		if (p->ranges[i].start >= p->ranges[i].end ||
		    (i && p->ranges[i].start < p->ranges[i - 1].end))
			return false;
	return true;
}

#endif
