/* SPDX-License-Identifier: BSD-2-Clause */
#include "rows/pack_rule.h"

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
		return pack_rule_x86(r, tracks_bx);
	if (r->ra.kind == RULE_UNDEF)
		return SF_RULE_END;
	if ((r->flags & (ROW_SIGNAL | ROW_CHILD | ROW_LOST | ROW_LEADS)) || r->plt_rep ||
	    r->cfa.kind != RULE_REG)
		return SF_RULE_INDEXED;
	return arch == ROW_ARCH_AARCH64 ? pack_arm64(r, row_arch_regs(arch)) : SF_RULE_INDEXED;
}
