/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Finds the row that covers a file offset of a module. Reads are plain and bounded; only sf_chunk
 * may call helpers. Compiled for BPF and for the host (tests). The including file defines
 *
 *   static const unsigned char *sf_chunk(sf_u32 id);   SF_CHUNK readable bytes, or NULL
 */
#ifndef SFBPF_ROW_FIND_H
#define SFBPF_ROW_FIND_H

#include "core/bounds.h"
#include "border/sfbpf_shared.h"

/* Where a module's tables are, their sizes and the module's flags: copied from struct sf_module. */
struct sf_tables {
	sf_u32 first_page, npages, dir, rules, nrules, flags;
};

/* The mask keeps every access inside the chunk, whatever the tables contain. */
#define SF_AT16(chunk, off) (*(const sf_u16 *)((chunk) + MASKED(off, SF_CHUNK - 2)))
#define SF_AT32(chunk, off) (*(const sf_u32 *)((chunk) + MASKED(off, SF_CHUNK - 4)))

/*
 * Returns the rule's 16 bits, or SF_RULE_GAP if no row covers the offset.
 *
 * Invariant of the search: rows below lo start at or before `low`, rows from hi on start after it.
 * It holds at the beginning because the index is a lower bound per 256 bytes. At most 256 rows lie
 * between, so 9 halvings are enough. Row lo - 1 then covers `low`. It exists, as the first row of a
 * page has offset 0, unless the tables are damaged.
 */
static __attribute__((always_inline)) inline sf_u32 row_find(const struct sf_tables *t,
							     sf_u64 offset)
{
	sf_u32 page = (sf_u32)(offset >> SF_PAGE_SHIFT) - t->first_page;
	sf_u32 low = offset & 0xffff;
	sf_u32 loc, base, rows, lo, hi;
	const unsigned char *chunk;

	if (page >= t->npages)
		return SF_RULE_GAP;
	chunk = sf_chunk(SF_LOC_CHUNK(t->dir));
	if (!chunk)
		return SF_RULE_GAP;
	loc = SF_AT32(chunk, SF_LOC_OFFSET(t->dir) + page * 4);
	if (!loc)
		return SF_RULE_GAP;
	chunk = sf_chunk(SF_LOC_CHUNK(loc));
	if (!chunk)
		return SF_RULE_GAP;
	base = SF_LOC_OFFSET(loc);
	lo = SF_AT16(chunk, base + (low >> 8) * 2);
	hi = SF_AT16(chunk, base + (low >> 8) * 2 + 2);
	rows = base + SF_PAGE_ROWS;
	/* Halving has no branch: half would be mispredicted, and the verifier tries both ways. */
	for (int i = 0; i < 9 && lo < hi; i++) {
		sf_u32 mid = (lo + hi) >> 1;
		sf_u64 ahead = (sf_u64)low - (SF_AT32(chunk, rows + mid * 4) & 0xffff);
		sf_u32 after = OPAQUE((sf_u32)(ahead >> 32)); /* all ones if the row starts after */

		lo += (mid + 1 - lo) & ~after;
		hi -= (hi - mid) & after;
	}
	if (!lo)
		return SF_RULE_GAP;
	return SF_AT32(chunk, rows + (lo - 1) * 4) >> 16;
}

/* An indexed rule, or NULL. */
static __attribute__((always_inline)) inline const struct sf_rule *rule_find(
	const struct sf_tables *t, sf_u32 code)
{
	sf_u32 i = code & ~SF_RULE_INDEXED;
	sf_u32 off = SF_LOC_OFFSET(t->rules) + i * (sf_u32)sizeof(struct sf_rule);
	const unsigned char *chunk;

	if (i >= t->nrules)
		return 0;
	chunk = sf_chunk(SF_LOC_CHUNK(t->rules));
	if (!chunk || off > SF_CHUNK - sizeof(struct sf_rule))
		return 0;
	return (const struct sf_rule *)(chunk + off);
}

#endif
