/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The row of a pc: from the cache, or by a search in the tables of its file. */
#ifndef SFBPF_ROW_BPF_H
#define SFBPF_ROW_BPF_H

#include "core/memory.bpf.h"
#include "core/regs.bpf.h"
#include "core/space.bpf.h"

/*
 * Return address -> rule: an exact cache. Module id (25 bits) and file offset (34) make a 59-bit
 * key. Multiplying it by an odd number modulo 2^59 is a bijection; the product is in the upper bits
 * of a word. Its upper 12 bits select the entry, and the other 47 are compared. The rules of an id
 * never change, not even if its tables are evicted and loaded again, and no id is reused.
 */
#define CACHE_FACTOR	     (0x4f1bbcdcbfa53e1ull << 5)
#define CACHE_KEY(v, offset) (((v)->word | (offset)) * CACHE_FACTOR)
#define CACHE_SLOT(key)	     ((key) >> 52)
#define CACHE_TAG(key)	     ((key) << 12 | 1 << 16) /* bit 16: differs from empty entries */

_Static_assert(SF_CACHE_BITS == 12 && SF_FRAME_MODULE_MASK < 1 << 25 && SF_FRAME_MODULE_SHIFT == 34,
	       "the cache's key is exact");

/*
 * Searches the row on a cache miss. Global: otherwise the verifier would verify the search once per
 * frame of the callback.
 */
__noinline int row_search(u32 slot, u32 i, u64 offset)
{
	struct sf_scratch *s = scratch_of(slot);

	return s ? row_find((struct sf_tables *)&vma_at(s, i)->first_page, offset) : SF_RULE_GAP;
}

static __always_inline u32 row_of(struct sf_scratch *s, struct sf_cache *c, u32 slot, u32 i,
				  u64 offset)
{
	const struct sf_vma *v = vma_at(s, i);
	u64 key, *entry, have;
	u32 code;

	/* Innermost pcs rarely repeat, so they are not cached. */
	if (!(s->regs.flags & SF_REGS_RA))
		return row_search(slot, i, offset) & 0xffff;
	key = CACHE_KEY(v, offset);
	entry = &c->entry[CACHE_SLOT(key)];
	have = *entry;
	if ((have & ~0xffffull) == CACHE_TAG(key)) {
		s->hits++;
		return have & 0xffff;
	}
	code = row_search(slot, i, offset) & 0xffff;
	*entry = CACHE_TAG(key) | code;
	return code;
}

#endif
