/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * One step up the stack: from the registers in a frame and its row to the registers in its caller.
 * step_x86.h and step_arm64.h hold what differs. Pure apart from reading the stack; compiled for BPF and for the host
 * (tests on recorded memory).
 * The including file supplies, both returning 0 or non-zero for an address that cannot be read,
 *
 *   static int sf_read_user(struct sf_regs *r, sf_u64 addr, sf_u64 *val);
 *   static int sf_read_user_regs(sf_u64 addr, sf_u64 *dst);   SF_SIGCONTEXT_WORDS
 *   static int sf_read_frame(struct sf_regs *r, sf_u64 cfa, sf_u32 slot, sf_u64 *fp, sf_u64 *ra);
 *                                            *ra from CFA - 8; *fp from CFA - 8 * slot, left alone if slot is 0
 */
#ifndef SFBPF_ROW_STEP_H
#define SFBPF_ROW_STEP_H

#include "sfbpf_shared.h"

/* The first two in the order of the frame word's bits 59 and 60. */
#define SF_REGS_RA 1	/* pc is behind a call (or a system call): look up pc - 1 */
#define SF_REGS_BY_FP 2	/* pc was found by the frame pointer */
#define SF_REGS_FP_END 4	/* ... and the frame pointer saved there is 0: the chain ends by the ABI */
#define SF_REGS_FULL 8	/* all of r[] are known: innermost frame, or just above a signal frame */
#define SF_REGS_BX 16	/* bx is known */

#define SF_STEP_GO 255		/* the registers are now the caller's; any other value is an enum sf_stop */

#define SF_INLINE static __attribute__((always_inline)) inline

struct sf_regs;		/* pc, sp, fp, entry_sp, flags, and what else the architecture has */

SF_INLINE int sf_read_user(struct sf_regs *r, sf_u64 addr, sf_u64 *val);
SF_INLINE int sf_read_user_regs(sf_u64 addr, sf_u64 *dst);
SF_INLINE int sf_read_frame(struct sf_regs *r, sf_u64 cfa, sf_u32 slot, sf_u64 *fp, sf_u64 *ra);
SF_INLINE int step_fp(struct sf_regs *r);

#ifdef __TARGET_ARCH_arm64
#include "step_arm64.h"
#else
#include "step_x86.h"
#endif

/* By the frame pointer: code without a row. The caller decides what a failure means. */
SF_INLINE int step_fp(struct sf_regs *r)
{
	sf_u64 fp = 0, ra = 0;

	if (r->fp < r->sp || (r->fp & 7))
		return SF_STOP_BAD_CFA;
	if (sf_read_user(r, r->fp, &fp) || sf_read_user(r, r->fp + 8, &ra))
		return SF_STOP_READ_FAULT;
	r->sp = r->fp + 16;
	r->fp = fp;
	r->pc = STEP_RA(r, ra);
	r->flags = SF_REGS_RA | SF_REGS_BY_FP | (fp ? 0 : SF_REGS_FP_END);
	return ra ? SF_STEP_GO : SF_STOP_COMPLETE;
}

SF_INLINE int step_cfa(struct sf_regs *r, const struct sf_rule *rule, sf_u32 offset, sf_u64 *cfa)
{
	sf_u64 base = 0;
	int err;

	if (rule->cfa_kind != SF_K_REG && rule->cfa_kind != SF_K_REG_MEM)
		return SF_STOP_NO_RULE;
	err = step_reg(r, rule->cfa_reg, &base);
	if (err != SF_STEP_GO)
		return err;
	*cfa = base + (sf_u64)(long long)rule->cfa_off;
	if (rule->cfa_kind == SF_K_REG_MEM) {
		if (sf_read_user(r, *cfa, cfa))
			return SF_STOP_READ_FAULT;
		*cfa += (sf_u64)(long long)rule->cfa_off2;
	} else if ((rule->flags & SF_RULE_PLT) && (offset & 15) >= rule->plt_at) {
		*cfa += (sf_u64)(long long)rule->cfa_off2;
	}
	return SF_STEP_GO;
}

/* A value rule: RA or FP. *val is left alone when the rule is SAME, UNDEF or NONE. */
SF_INLINE int step_value(struct sf_regs *r, sf_u32 kind, sf_u32 reg, sf_s32 off, sf_u64 cfa, sf_u64 *val)
{
	sf_u64 at = cfa;
	int err;

	if (kind < SF_K_CFA)
		return SF_STEP_GO;
	if (kind >= SF_K_REG) {
		err = step_reg(r, reg, &at);
		if (err != SF_STEP_GO)
			return err;
	}
	at += (sf_u64)(long long)off;
	if (kind == SF_K_CFA_MEM || kind == SF_K_REG_MEM) {
		if (sf_read_user(r, at, val))
			return SF_STOP_READ_FAULT;
	} else {
		*val = at;
	}
	return SF_STEP_GO;
}

/* Any rule that is not packed. offset: of the pc in its file. */
SF_INLINE int step_rule(struct sf_regs *r, const struct sf_rule *rule, sf_u32 offset, sf_u32 module_flags)
{
	sf_u64 cfa = 0, ra = 0, fp = r->fp;
	int err;

	if (rule->ra_kind == SF_K_UNDEF)
		return SF_STOP_COMPLETE;
	if (rule->ra_kind < SF_K_CFA)
		return SF_STOP_NO_RULE;
	/* Register 0 has what a system call returns: to the new thread, whose first frame this is, nothing else. */
	if ((rule->flags & SF_RULE_CHILD) && step_reg(r, 0, &ra) == SF_STEP_GO && !ra)
		return SF_STOP_COMPLETE;
	if ((rule->flags & SF_RULE_SIGNAL) && rule->cfa_kind == SF_K_REG_MEM && rule->cfa_reg == SF_REG_SP &&
	    rule->ra_kind == SF_K_REG_MEM && rule->ra_reg == SF_REG_SP && rule->ra_off == rule->cfa_off + 8)
		return step_sigcontext(r, rule);
	if (!step_sp_known(r, rule))
		return step_fp(r);
	err = step_cfa(r, rule, offset, &cfa);
	if (err != SF_STEP_GO)
		return err;
	/*
	 * Code that switches stacks says so with a CFA loaded from memory; everything else must move up. vfork() keeps its
	 * return address in a register, on a stack that is empty.
	 */
	if (cfa < r->sp + (rule->ra_kind != SF_K_REG) && rule->cfa_kind == SF_K_REG && !(rule->flags & SF_RULE_SIGNAL))
		return SF_STOP_BAD_CFA;
	if (rule->ra_kind == SF_K_CFA_MEM && step_is_entry(r, cfa))
		return SF_STOP_COMPLETE;
	err = step_value(r, rule->ra_kind, rule->ra_reg, rule->ra_off, cfa, &ra);
	if (err == SF_STEP_GO)
		err = step_value(r, rule->fp_kind, rule->fp_reg, rule->fp_off, cfa, &fp);
	if (err != SF_STEP_GO)
		return err;
	r->flags = (rule->flags & SF_RULE_SIGNAL ? 0 : SF_REGS_RA) | step_keep(r, rule, cfa, module_flags);
	r->pc = STEP_RA(r, ra);
	r->sp = cfa;
	r->fp = fp;
	return r->pc ? SF_STEP_GO : SF_STOP_COMPLETE;
}

#endif
