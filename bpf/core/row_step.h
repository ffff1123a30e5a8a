/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * One step up the stack: from the registers in a frame and its row to the registers in its caller.
 * step_x86.h and step_arm64.h hold the parts that differ, and step_packed, which most frames take.
 * Pure apart from reading the stack. Compiled for BPF and for the host (tests on recorded memory).
 * The including file defines __TARGET_ARCH_x86 or __TARGET_ARCH_arm64, and these functions, which
 * return 0, or non-zero if the address cannot be read:
 *
 *   static int sf_read_user(struct sf_regs *r, sf_u64 addr, sf_u64 *val);
 *   static int sf_read_user_regs(sf_u64 addr, sf_u64 *dst);
 *        reads SF_SIGCONTEXT_WORDS
 *   static int sf_read_frame(struct sf_regs *r, sf_u64 cfa, sf_u32 slot, sf_u64 *fp, sf_u64 *ra);
 *        reads *ra from CFA - 8, and *fp from CFA - 8 * slot; leaves *fp unchanged if slot is 0
 */
#ifndef SFBPF_ROW_STEP_H
#define SFBPF_ROW_STEP_H

#include "core/bounds.h"
#include "border/sfbpf_shared.h"

/* The first two are in the order of the frame word's bits 59 and 60. */
#define SF_REGS_RA    1 /* pc is after a call (or a system call): look up pc - 1 */
#define SF_REGS_BY_FP 2 /* pc was found by frame pointer */
/* pc may be wrong, because the step used a register that code may have changed: guess_check() */
#define SF_REGS_GUESS 4
#define SF_REGS_FULL  8	 /* all of r[] is known: innermost frame, or just above a signal frame */
#define SF_REGS_BX    16 /* bx is known */
/*
 * The CFA is below the last one: a frame pointer led to another stack, as where Rust's stacker or
 * gcc's -fsplit-stack has switched to a new one. pc may be wrong: guess_check()
 */
#define SF_REGS_DOWN  32

/* Bytes: the largest frame whose CFA is a guess */
#define SF_GUESS_MAX (1u << 20)

/* The registers are now those of the caller. Any other value is an enum sf_stop */
#define SF_STEP_GO 255

#define SF_INLINE static __attribute__((always_inline)) inline

struct sf_regs; /* pc, sp, fp, entry_sp, flags, and other registers by architecture */

SF_INLINE int sf_read_user(struct sf_regs *r, sf_u64 addr, sf_u64 *val);
SF_INLINE int sf_read_user_regs(sf_u64 addr, sf_u64 *dst);
SF_INLINE int sf_read_frame(struct sf_regs *r, sf_u64 cfa, sf_u32 slot, sf_u64 *fp, sf_u64 *ra);
SF_INLINE int step_fp(struct sf_regs *r);

#if defined(__TARGET_ARCH_x86)
#include "core/step_x86.h"
#elif defined(__TARGET_ARCH_arm64)
#include "core/step_arm64.h"
#else
#error "no step_ARCH.h for this architecture"
#endif

/* Steps by frame pointer, for code without a row. The caller decides what a failure means. */
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
	r->flags = SF_REGS_RA | SF_REGS_BY_FP | SF_REGS_GUESS;
	return ra ? SF_STEP_GO : SF_STOP_ZERO_RA;
}

/*
 * *guess: the CFA depends on a register that is not tracked. Its value is that of the innermost
 * frame, or of the frame that a signal interrupted: DWARF's same-value rule, if no frame between
 * has changed it. Hand-written ciphers keep the caller's sp in r11 or rax while they call helpers.
 */
SF_INLINE int step_cfa(struct sf_regs *r, const struct sf_rule *rule, sf_u32 offset, sf_u64 *cfa,
		       sf_u32 *guess)
{
	sf_u64 base = 0;
	int err;

	if (rule->cfa_kind < SF_K_REG)
		return SF_STOP_NO_RULE;
	err = step_reg(r, rule->cfa_reg, &base);
	if (err == SF_STOP_REG_UNKNOWN && rule->cfa_reg < STEP_KEPT_REGS) {
		base = r->r[INDEX(rule->cfa_reg, STEP_KEPT_REGS)];
		*guess = SF_REGS_GUESS;
	} else if (err != SF_STEP_GO) {
		return err;
	}
	if (rule->cfa_kind == SF_K_INDEX_MEM)
		base = r->sp + 8 * base;
	*cfa = base + (sf_u64)(long long)rule->cfa_off;
	if (rule->cfa_kind != SF_K_REG) {
		if (sf_read_user(r, *cfa, cfa))
			return SF_STOP_READ_FAULT;
		*cfa += (sf_u64)(long long)rule->cfa_off2;
	} else if ((rule->flags & SF_RULE_PLT) && (offset & 15) >= rule->plt_at) {
		*cfa += (sf_u64)(long long)rule->cfa_off2;
	}
	return SF_STEP_GO;
}

/*
 * A caller's frame pointer that is lost, as the function has changed the register for good. Nothing
 * can be read there, so a caller whose row needs the frame pointer ends the walk.
 */
#define STEP_FP_LOST 1

/* A value rule, for RA or FP. *val is unchanged if the rule is SAME or NONE. */
SF_INLINE int step_value(struct sf_regs *r, sf_u32 kind, sf_u32 reg, sf_s32 off, sf_u64 cfa,
			 sf_u64 *val)
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
SF_INLINE int step_rule(struct sf_regs *r, const struct sf_rule *rule, sf_u32 offset,
			sf_u32 module_flags)
{
	sf_u64 cfa = 0, ra = 0, fp = r->fp;
	sf_u32 guess = 0;
	int err;

	if (rule->ra_kind == SF_K_UNDEF)
		return SF_STOP_COMPLETE;
	if (rule->ra_kind < SF_K_CFA)
		return SF_STOP_NO_RULE;
	/*
	 * Register 0 holds the result of a system call. It is 0 in the new thread, whose outermost
	 * frame this is.
	 */
	if ((rule->flags & SF_RULE_CHILD) && step_reg(r, 0, &ra) == SF_STEP_GO && !ra)
		return SF_STOP_COMPLETE;
	if ((rule->flags & SF_RULE_SIGNAL) && rule->cfa_kind == SF_K_REG_MEM &&
	    rule->cfa_reg == SF_REG_SP && rule->ra_kind == SF_K_REG_MEM &&
	    rule->ra_reg == SF_REG_SP && rule->ra_off == rule->cfa_off + 8)
		return step_sigcontext(r, rule);
	if (!step_sp_known(r, rule))
		return step_fp(r);
	err = step_cfa(r, rule, offset, &cfa, &guess);
	if (err != SF_STEP_GO)
		return err;
	if (guess && (cfa - r->sp - 1 >= SF_GUESS_MAX || rule->ra_kind != SF_K_CFA_MEM))
		return SF_STOP_REG_UNKNOWN;
	/*
	 * The CFA of code that switches stacks is loaded from memory; all other code must move up.
	 * vfork() keeps its return address in a register, and its stack frame is empty. Go's gogo()
	 * loads it from memory before it jumps.
	 */
	if (cfa < r->sp + (rule->ra_kind < SF_K_REG) && rule->cfa_kind == SF_K_REG &&
	    !(rule->flags & SF_RULE_SIGNAL))
		return SF_STOP_BAD_CFA;
	if (rule->ra_kind == SF_K_CFA_MEM && step_is_entry(r, cfa))
		return guess ? SF_STOP_REG_UNKNOWN : SF_STOP_COMPLETE;
	err = step_value(r, rule->ra_kind, rule->ra_reg, rule->ra_off, cfa, &ra);
	if (err == SF_STEP_GO)
		err = step_value(r, rule->fp_kind, rule->fp_reg, rule->fp_off, cfa, &fp);
	if (err != SF_STEP_GO)
		return err;
	if (rule->fp_kind == SF_K_UNDEF)
		fp = STEP_FP_LOST;
	r->flags = (rule->flags & SF_RULE_SIGNAL ? 0 : SF_REGS_RA) | guess |
		   step_keep(r, rule, cfa, module_flags);
	r->pc = STEP_RA(r, ra);
	r->sp = cfa;
	r->fp = fp;
	if (r->pc)
		return SF_STEP_GO;
	return guess ? SF_STOP_REG_UNKNOWN : SF_STOP_ZERO_RA;
}

#endif
