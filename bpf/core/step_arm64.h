/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The AArch64 part of row_step.h. */
#ifndef SFBPF_STEP_ARM64_H
#define SFBPF_STEP_ARM64_H

/* DWARF register numbers, AADWARF64 table 4.1. */
#define SF_ARM64_FP 29
#define SF_ARM64_LR 30
#define SF_ARM64_SP 31
#define SF_REG_SP   SF_ARM64_SP
#define SF_REG_FP   SF_ARM64_FP

#define SF_SIGCONTEXT_WORDS 33 /* x0..x30 sp pc */
#define STEP_KEPT_REGS	    16 /* x0..x15 */

struct sf_regs {
	sf_u64 pc, sp, fp;
	/*
	 * mm->task_size - 1: the address bits. Above them is the authentication code of a signed
	 * pointer.
	 */
	sf_u64 ra_mask;
	sf_u64 entry_sp; /* mm->start_stack: the process's stack pointer at its entry */
	sf_u32 flags, zero;
	sf_u64 r[34]; /* struct user_pt_regs: x0..x30 sp pc pstate */
};

/*
 * A return address as saved, signed or not. Rows tell whether it is signed, but no user address has
 * bits above the mask. Always stripping them is equally correct, and does not depend on the
 * annotations of assembler files.
 */
#define STEP_RA(r, ra) ((ra) & (r)->ra_mask)

/* Never needed: the kernel starts a process with x29 and x30 0 (zero_check). */
SF_INLINE int step_is_entry(const struct sf_regs *r, sf_u64 cfa)
{
	(void)r, (void)cfa;
	return 0;
}

/*
 * Finds sp after a step by frame pointer. It is unknown then (r->sp is a lower bound), because a
 * frame record can be anywhere in its frame. But if the caller's row says where its record is, sp
 * follows from fp, which points to that record.
 */
SF_INLINE int step_find_sp(struct sf_regs *r, sf_u64 cfa_off, sf_u64 fp_off)
{
	sf_u64 sp = r->fp - fp_off - cfa_off;

	if (sp < r->sp || sp > r->fp)
		return 0;
	r->sp = sp;
	return 1;
}

SF_INLINE int step_sp_known(struct sf_regs *r, const struct sf_rule *rule)
{
	if (!(r->flags & SF_REGS_BY_FP) || rule->cfa_reg != SF_REG_SP)
		return 1;
	return rule->cfa_kind == SF_K_REG && rule->fp_kind == SF_K_CFA_MEM &&
	       step_find_sp(r, (sf_u64)(long long)rule->cfa_off, (sf_u64)(long long)rule->fp_off);
}

SF_INLINE int step_reg(const struct sf_regs *r, sf_u32 reg, sf_u64 *val)
{
	if (reg == SF_ARM64_SP)
		*val = r->sp;
	else if (reg == SF_ARM64_FP)
		*val = r->fp;
	else if (reg < 31 && (r->flags & SF_REGS_FULL))
		*val = r->r[INDEX(reg, 32)];
	else if (reg == SF_ARM64_LR &&
		 /* AAPCS64 6.4.6: the end of the chain, e.g. above a makecontext() function */
		 !r->fp)
		return SF_STOP_COMPLETE;
	else
		return SF_STOP_REG_UNKNOWN;
	return SF_STEP_GO;
}

/* The RA is still in LR: in the innermost frame, or in a frame that a signal interrupted. */
SF_INLINE int step_leaf(struct sf_regs *r, sf_u64 cfa)
{
	sf_u64 ra = 0;
	int err = step_reg(r, SF_ARM64_LR, &ra);

	if (err != SF_STEP_GO)
		return err;
	r->pc = STEP_RA(r, ra);
	r->sp = cfa;
	r->flags = SF_REGS_RA;
	return r->pc ? SF_STEP_GO : SF_STOP_ZERO_RA;
}

SF_INLINE int step_packed(struct sf_regs *r, sf_u32 code, sf_u32 module_flags)
{
	sf_u64 cfa_off = (code >> 2) & 0xff0, slot = (code & SF_A64_SLOT) * 16, cfa, fp = r->fp,
	       ra = 0;
	int alone = !!(code & SF_A64_RA_ALONE);

	(void)module_flags;
	if (slot == SF_A64_SLOT * 16)
		slot = cfa_off;
	if ((r->flags & SF_REGS_BY_FP) && !(code & SF_RULE_BASE_FP) &&
	    (alone || !slot || !step_find_sp(r, cfa_off, -slot)))
		return step_fp(r);
	cfa = (code & SF_RULE_BASE_FP ? r->fp : r->sp) + cfa_off;
	if (cfa < r->sp + slot)
		return SF_STOP_BAD_CFA;
	if (!slot)
		return step_leaf(r, cfa);
	/* The end of the record, or of the return address alone. */
	if (sf_read_frame(r, cfa - slot + (alone ? 8 : 16), alone ? 0 : 2, &fp, &ra))
		return SF_STOP_READ_FAULT;
	r->pc = STEP_RA(r, ra);
	r->sp = cfa;
	r->fp = fp;
	r->flags = SF_REGS_RA;
	return r->pc ? SF_STEP_GO : SF_STOP_ZERO_RA;
}

/*
 * The kernel's rt_sigframe (arch/arm64/include/uapi/asm/sigcontext.h) holds x0..x30, sp and pc in a
 * row. The rule gives the position of sp.
 */
SF_INLINE int step_sigcontext(struct sf_regs *r, const struct sf_rule *rule)
{
	if (sf_read_user_regs(r->sp + (sf_u64)(long long)(rule->cfa_off - 31 * 8), r->r))
		return SF_STOP_READ_FAULT;
	r->fp = r->r[SF_ARM64_FP];
	r->sp = r->r[SF_ARM64_SP];
	r->pc = r->r[32];
	r->flags = SF_REGS_FULL;
	return SF_STEP_GO;
}

SF_INLINE sf_u32 step_keep(struct sf_regs *r, const struct sf_rule *rule, sf_u64 cfa,
			   sf_u32 module_flags)
{
	(void)r, (void)rule, (void)cfa, (void)module_flags;
	return 0;
}

#endif
