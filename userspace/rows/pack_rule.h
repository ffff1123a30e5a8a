/* SPDX-License-Identifier: BSD-2-Clause */
/* A row's rule in 16 bits, for each architecture; the layouts are in sfbpf_shared.h. */
#ifndef SFBPF_ROWS_PACK_RULE_H
#define SFBPF_ROWS_PACK_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "rows/row.h"

/* SF_RULE_INDEXED: it does not fit. tracks_bx (x86-64): rows of this file say where rbx is. */
uint16_t pack_rule(enum row_arch arch, const struct row *r, bool tracks_bx);

/* Whether off is one of 0, 8, 16 ... max * 8; max is a power of two less one. */
static inline bool offset_packs(uint32_t off, uint32_t max)
{
	return !(off & ~(max << 3));
}

/* pack_rule() for x86-64 alone, inline for speed. */
static inline __attribute__((always_inline)) uint16_t pack_rule_x86(const struct row *r,
								    bool tracks_bx)
{
	uint32_t off = (uint32_t)r->cfa.off, slot = 0 - (uint32_t)r->fp.off, code;
	uint64_t base = rule_packed(&r->cfa) ^ rule_pack(RULE_NONE, 0, r->cfa.off);

	if (rule_packed(&r->ra) != rule_pack(RULE_CFA_MEM, 0, -8) || r->flags || r->plt_rep ||
	    !offset_packs(off, 511) || (tracks_bx && r->bx.kind != RULE_SAME))
		return r->ra.kind == RULE_UNDEF ? SF_RULE_END : SF_RULE_INDEXED;
	if (base == rule_pack(RULE_REG, X86_RSP, 0))
		code = 0;
	else if (base == rule_pack(RULE_REG, X86_RBP, 0))
		code = SF_RULE_BASE_FP;
	else
		return SF_RULE_INDEXED;
	code |= off << 2; /* / 8, from bit 5 on */
	if (r->fp.kind == RULE_CFA_MEM) {
		if (slot < 16 || !offset_packs(slot, 31))
			return SF_RULE_INDEXED;
		code |= slot / 8;
	} else if (r->fp.kind > RULE_SAME) { /* RULE_NONE counts as RULE_SAME */
		return SF_RULE_INDEXED;
	}
	return (uint16_t)code;
}

#endif
