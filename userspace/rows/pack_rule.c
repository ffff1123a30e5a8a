/* SPDX-License-Identifier: BSD-2-Clause */
#include "rows/pack_rule.h"

/* Whether off is one of 0, 8, 16 ... max * 8; max is a power of two less one. */
static bool offset_packs(uint32_t off, uint32_t max)
{
	return !(off & ~(max << 3));
}

static uint16_t pack_x86(const struct row *r, bool tracks_bx)
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

/* Whether off is 0 to max times unit. */
static bool fits(int32_t off, int32_t unit, int32_t max)
{
	return off >= 0 && off % unit == 0 && off / unit <= max;
}

static uint16_t pack_arm64(const struct row *r, const struct row_regs *regs)
{
	bool same_fp = r->fp.kind == RULE_SAME || r->fp.kind == RULE_NONE;
	int32_t slot = same_fp ? r->ra.off : r->fp.off;
	uint32_t code;

	if (!fits(r->cfa.off, 16, 255))
		return SF_RULE_INDEXED;
	if (r->cfa.reg == regs->sp)
		code = 0;
	else if (r->cfa.reg == regs->fp)
		code = SF_RULE_BASE_FP;
	else
		return SF_RULE_INDEXED;
	code |= (uint32_t)r->cfa.off / 16 << 6;
	if (r->ra.kind == RULE_REG)
		return r->ra.reg == regs->ra && !r->ra.off && same_fp ? (uint16_t)code
								      : SF_RULE_INDEXED;
	if (r->ra.kind != RULE_CFA_MEM || slot >= 0 || slot < -4096 ||
	    (!same_fp && (r->fp.kind != RULE_CFA_MEM || r->ra.off != r->fp.off + 8)))
		return SF_RULE_INDEXED;
	if (same_fp)
		code |= SF_A64_RA_ALONE;
	if (slot == -r->cfa.off)
		return (uint16_t)(code | SF_A64_SLOT);
	return fits(-slot, 16, SF_A64_SLOT - 1) ? (uint16_t)(code | (uint32_t)-slot / 16)
						: SF_RULE_INDEXED;
}

uint16_t pack_rule(enum row_arch arch, const struct row *r, bool tracks_bx)
{
	if (arch == ROW_ARCH_X86_64)
		return pack_x86(r, tracks_bx);
	if (r->ra.kind == RULE_UNDEF)
		return SF_RULE_END;
	if ((r->flags & (ROW_SIGNAL | ROW_CHILD | ROW_LOST | ROW_LEADS)) || r->plt_rep ||
	    r->cfa.kind != RULE_REG)
		return SF_RULE_INDEXED;
	return arch == ROW_ARCH_AARCH64 ? pack_arm64(r, row_arch_regs(arch)) : SF_RULE_INDEXED;
}
