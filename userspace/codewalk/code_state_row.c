/* SPDX-License-Identifier: BSD-2-Clause */
/* The row that follows from what is known between two instructions. */
#include "codewalk/code_state.h"

static struct rule by_reg(uint8_t reg, int64_t off)
{
	return (struct rule){ .kind = RULE_REG, .reg = reg, .off = (int32_t)off };
}

/* The CFA from a word in memory that a register leads to: sp, unless fp is a frame pointer. */
static bool cfa_in_memory(const struct code_state *s, const struct code_arch *arch, struct row *ret)
{
	const struct code_val *fp = &s->reg[arch->fp];
	const struct code_val *link = code_state_slot(s, fp->sym, fp->off);
	const bool framed = fp->kind == VAL_STACK && link && val_is_orig(link, arch->fp);
	const uint8_t bases[] = { framed ? arch->fp : arch->sp, framed ? arch->sp : arch->fp };

	for (size_t k = 0; k < 2; k++) {
		const struct code_val *base = &s->reg[bases[k]];

		for (uint32_t i = 0; i < s->nslots && base->kind == VAL_STACK; i++) {
			const struct code_slot *slot = &s->slot[i];

			if (slot->sym != base->sym || !val_from_cfa(&slot->val))
				continue;
			ret->cfa = (struct rule){ .kind = RULE_REG_MEM,
						  .reg = bases[k],
						  .off = (int32_t)(slot->off - base->off) };
			ret->cfa_off2 = (int32_t)-slot->val.off;
			return true;
		}
	}
	return false;
}

/*
 * The register that unwind tables use: fp if it is set up as a frame pointer, else sp, as long as
 * it is known. by_fp: fp as long as it is known.
 */
static bool cfa_of(const struct code_state *s, const struct code_arch *arch, bool by_fp,
		   struct row *ret)
{
	const struct code_val *fp = &s->reg[arch->fp], *sp = &s->reg[arch->sp];
	const bool framed = val_from_cfa(fp) && arch->ra_bytes && fp->off == -2 * arch->ra_bytes;

	if (val_from_cfa(sp) && !framed && !(by_fp && val_from_cfa(fp)))
		ret->cfa = by_reg(arch->sp, -sp->off);
	else if (val_from_cfa(fp))
		ret->cfa = by_reg(arch->fp, -fp->off);
	else if (!cfa_in_memory(s, arch, ret)) {
		for (uint8_t i = 0; i < arch->nregs; i++)
			if (val_from_cfa(&s->reg[i])) {
				ret->cfa = by_reg(i, -s->reg[i].off);
				return true;
			}
		return false;
	}
	return true;
}

/* Where the caller's value of reg is. */
static struct rule saved(const struct code_state *s, const struct code_arch *arch, uint8_t reg)
{
	const uint8_t bases[] = { arch->fp, arch->sp };

	for (uint32_t i = 0; i < s->nslots; i++)
		if (!s->slot[i].sym && val_is_orig(&s->slot[i].val, reg))
			return (struct rule){ .kind = RULE_CFA_MEM,
					      .off = (int32_t)s->slot[i].off };
	for (size_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < s->nslots; i++)
			if (s->reg[bases[k]].kind == VAL_STACK &&
			    s->slot[i].sym == s->reg[bases[k]].sym &&
			    val_is_orig(&s->slot[i].val, reg))
				return (struct rule){ .kind = RULE_REG_MEM,
						      .reg = bases[k],
						      .off = (int32_t)(s->slot[i].off -
								       s->reg[bases[k]].off) };
	if (val_is_orig(&s->reg[reg], reg))
		return (struct rule){ .kind = RULE_SAME };
	for (uint8_t i = 0; i < arch->nregs; i++)
		if (val_is_orig(&s->reg[i], reg))
			return by_reg(i, 0);
	return (struct rule){ .kind = RULE_NONE };
}

/*
 * Where the return address is on AArch64. Programs also store it as data: the word of the frame
 * record, after the caller's fp, is the one that stays.
 */
static struct rule saved_ra(const struct code_state *s, const struct code_arch *arch)
{
	for (uint32_t i = 0; i < s->nslots; i++) {
		const struct code_slot *slot = &s->slot[i];
		const struct code_val *next = code_state_slot(s, 0, slot->off + 8);

		if (!slot->sym && val_is_orig(&slot->val, arch->fp) && next &&
		    val_is_orig(next, arch->ra))
			return (struct rule){ .kind = RULE_CFA_MEM,
					      .off = (int32_t)(slot->off + 8) };
	}
	return saved(s, arch, arch->ra);
}

static bool signed_ra(const struct code_state *s, const struct code_arch *arch)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (val_is_orig(&s->slot[i].val, arch->ra))
			return s->slot[i].val.n;
	return val_is_orig(&s->reg[arch->ra], arch->ra) && s->reg[arch->ra].n;
}

/*
 * x86-64: a function that has popped its return address has it in a register. vfork() does, because
 * the child overwrites what is below sp.
 */
static struct rule return_address(const struct code_state *s, const struct code_arch *arch)
{
	const struct code_val *sp = &s->reg[arch->sp];

	if (!val_from_cfa(sp) || sp->off <= -arch->ra_bytes)
		return (struct rule){ .kind = RULE_CFA_MEM, .off = -arch->ra_bytes };
	for (uint8_t i = 0; i < arch->nregs; i++)
		if (val_is_orig(&s->reg[i], VAL_RETURN_ADDRESS))
			return by_reg(i, 0);
	return (struct rule){ .kind = RULE_NONE };
}

bool code_state_gives_cfa(const struct code_state *s, uint8_t reg)
{
	return val_from_cfa(&s->reg[reg]);
}

bool code_state_row(const struct code_state *s, const struct code_arch *arch, bool by_fp,
		    struct row *ret)
{
	*ret = (struct row){ .source = ROW_CODE };
	if (!cfa_of(s, arch, by_fp, ret))
		return false;
	ret->fp = saved(s, arch, arch->fp);
	if (arch->ra == CODE_NO_REG) {
		ret->ra = return_address(s, arch);
		ret->bx = saved(s, arch, X86_RBX);
		if (ret->bx.kind != RULE_SAME && ret->bx.kind != RULE_CFA_MEM)
			ret->bx = (struct rule){ .kind = RULE_NONE };
	} else {
		ret->ra = saved_ra(s, arch);
		if (ret->ra.kind == RULE_CFA_MEM && ret->ra.off >= 0)
			return false; /* the caller's frame: the function does not start here */
		if (ret->ra.kind == RULE_SAME)
			ret->ra = by_reg(arch->ra, 0);
		ret->flags = signed_ra(s, arch) ? ROW_PAC : 0;
	}
	return ret->ra.kind != RULE_NONE;
}
