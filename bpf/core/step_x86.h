/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The x86-64 part of row_step.h. */
#ifndef SFBPF_STEP_X86_H
#define SFBPF_STEP_X86_H

/* DWARF register numbers, x86-64 psABI figure 3.36. */
#define SF_X86_RBX 3
#define SF_X86_RBP 6
#define SF_X86_RSP 7
#define SF_REG_SP  SF_X86_RSP
#define SF_REG_FP  SF_X86_RBP

#define SF_SIGCONTEXT_WORDS 17
#define STEP_KEPT_REGS	    16

struct sf_regs {
	sf_u64 pc, sp, fp, bx;
	sf_u64 entry_sp; /* mm->start_stack: the process's stack pointer at its entry */
	sf_u64 left;	 /* SF_REGS_DOWN: sp on the stack that was left */
	sf_u32 flags, zero;
	sf_u64 r[16]; /* registers by DWARF number */
};

/* A return address as saved. */
#define STEP_RA(r, ra) (ra)

/*
 * The RA slot is at the address of argc or just above, so this was the first frame of the process.
 * (Only the main stack reaches that address. _start pops argc.)
 */
SF_INLINE int step_is_entry(const struct sf_regs *r, sf_u64 cfa)
{
	return cfa - r->entry_sp - 1 < 64 && r->sp <= r->entry_sp;
}

/* sp is known even after a step by frame pointer: FP is saved next to the return address. */
SF_INLINE int step_sp_known(struct sf_regs *r, const struct sf_rule *rule)
{
	(void)r, (void)rule;
	return 1;
}

SF_INLINE int step_reg(const struct sf_regs *r, sf_u32 reg, sf_u64 *val)
{
	if (reg == SF_X86_RSP)
		*val = r->sp;
	else if (reg == SF_X86_RBP)
		*val = r->fp;
	else if (reg == SF_X86_RBX && (r->flags & SF_REGS_BX))
		*val = r->bx;
	else if (reg < 16 && (r->flags & SF_REGS_FULL))
		*val = r->r[INDEX(reg, 16)];
	else
		return SF_STOP_REG_UNKNOWN;
	return SF_STEP_GO;
}

SF_INLINE int step_packed(struct sf_regs *r, sf_u32 code, sf_u32 module_flags)
{
	sf_u64 cfa = (code & SF_RULE_BASE_FP ? r->fp : r->sp) + ((code >> 2) & 0xff8);
	sf_u64 fp = r->fp, ra = 0;
	sf_u32 down = 0;

	if (cfa <= r->sp) {
		if (!(code & SF_RULE_BASE_FP))
			return SF_STOP_BAD_CFA;
		down = SF_REGS_DOWN;
		r->left = r->sp;
	}
	if (step_is_entry(r, cfa))
		return SF_STOP_COMPLETE;
	if (sf_read_frame(r, cfa, code & 31, &fp, &ra))
		return down ? SF_STOP_BAD_CFA : SF_STOP_READ_FAULT;
	r->pc = ra;
	r->sp = cfa;
	r->fp = fp;
	r->flags = SF_REGS_RA | down |
		   (module_flags & SF_MODULE_TRACKS_BX ? r->flags & SF_REGS_BX : 0);
	if (ra)
		return SF_STEP_GO;
	return down ? SF_STOP_BAD_CFA : SF_STOP_ZERO_RA;
}

/*
 * The kernel's rt_sigframe (arch/x86/include/uapi/asm/sigcontext.h) holds r8..r15 rdi rsi rbp rbx
 * rdx rax rcx rsp rip in a row. The restorer's rule gives the position of rsp.
 */
SF_INLINE int step_sigcontext(struct sf_regs *r, const struct sf_rule *rule)
{
	static const sf_u8 order[16] = { 8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7 };
	sf_u64 saved[SF_SIGCONTEXT_WORDS];

	if (sf_read_user_regs(r->sp + (sf_u64)(long long)(rule->cfa_off - 15 * 8), saved))
		return SF_STOP_READ_FAULT;
	for (int i = 0; i < 16; i++)
		r->r[order[i]] = saved[i];
	r->pc = saved[16];
	r->sp = saved[15];
	r->fp = saved[10];
	r->bx = saved[11];
	r->flags = SF_REGS_FULL | SF_REGS_BX;
	return SF_STEP_GO;
}

/* Sets r->bx to the caller's rbx and returns SF_REGS_BX, if it is known; else returns 0. */
SF_INLINE sf_u32 step_keep(struct sf_regs *r, const struct sf_rule *rule, sf_u64 cfa,
			   sf_u32 module_flags)
{
	if (rule->bx_kind == SF_K_CFA_MEM)
		return sf_read_user(r, cfa + (sf_u64)(long long)rule->bx_off, &r->bx) ? 0
										      : SF_REGS_BX;
	if (rule->bx_kind != SF_K_SAME || !(module_flags & SF_MODULE_TRACKS_BX))
		return 0;
	return r->flags & SF_REGS_BX;
}

#endif
