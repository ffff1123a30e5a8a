/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The user registers of a task, x86-64. */
#ifndef SFBPF_REGS_X86_BPF_H
#define SFBPF_REGS_X86_BPF_H

#include "core/kload.bpf.h"

#define USER32_CS 0x23 /* arch/x86/include/asm/segment.h */

/* Identifies an address space; never reused. */
#define MM_ID(mm) KLOAD(mm, struct mm_struct, context.ctx_id)

/* The thread pointer of a task, which its thread-local storage is relative to. */
#define TASK_TP(task) KLOAD(task, struct task_struct, thread.fsbase)

/* Offsets in pt_regs. */
#define REGS_PC_AT __builtin_offsetof(struct pt_regs, ip)
#define REGS_SP_AT __builtin_offsetof(struct pt_regs, sp)
#define REGS_G_AT  __builtin_offsetof(struct pt_regs, r14) /* Go: the goroutine's descriptor */

/* The register besides pc, sp and fp that packed rows use in the innermost frame; 0: none. */
#define REGS_MORE(r) 0

/*
 * Whether the registers are those of a new image: execve(2) clears them, except rax. SYSCALL sets
 * rcx and r11, so they are not 0 in another system call. An entry by FRED leaves them as they were:
 * so rbx, rbp and r12 are tested, too.
 */
#define REGS_CLEARED(regs) \
	(!((regs)->r[2] | (regs)->r[3] | (regs)->r[6] | (regs)->r[11] | (regs)->r[12]))

/* Copies registers by DWARF number. p: pt_regs in any address space that the verifier knows. */
#define REGS_FROM(dst, p)                \
	do {                             \
		(dst)->r[0] = (p)->ax;   \
		(dst)->r[1] = (p)->dx;   \
		(dst)->r[2] = (p)->cx;   \
		(dst)->r[3] = (p)->bx;   \
		(dst)->r[4] = (p)->si;   \
		(dst)->r[5] = (p)->di;   \
		(dst)->r[6] = (p)->bp;   \
		(dst)->r[7] = (p)->sp;   \
		(dst)->r[8] = (p)->r8;   \
		(dst)->r[9] = (p)->r9;   \
		(dst)->r[10] = (p)->r10; \
		(dst)->r[11] = (p)->r11; \
		(dst)->r[12] = (p)->r12; \
		(dst)->r[13] = (p)->r13; \
		(dst)->r[14] = (p)->r14; \
		(dst)->r[15] = (p)->r15; \
		(dst)->pc = (p)->ip;     \
	} while (0)

static __always_inline void regs_finish(struct sf_regs *r, u32 flags)
{
	r->sp = r->r[SF_X86_RSP];
	r->fp = r->r[SF_X86_RBP];
	r->bx = r->r[SF_X86_RBX];
	r->flags = SF_REGS_FULL | SF_REGS_BX | flags;
}

static __always_inline bool regs_user_mode(const struct bpf_perf_event_data *ctx)
{
	return ctx->regs.cs & 3;
}

/* The task was interrupted in user mode. SF_STEP_GO or a stop. */
static __always_inline int regs_of_event(struct sf_regs *r, const struct bpf_perf_event_data *ctx)
{
	REGS_FROM(r, &ctx->regs);
	regs_finish(r, 0);
	return (u16)ctx->regs.cs == USER32_CS ? SF_STOP_COMPAT : SF_STEP_GO;
}

#define INSN_SYSCALL  0x050f
#define INSN_SYSENTER 0x340f
#define INSN_INT80    0x80cd

/*
 * Whether ip follows the instruction of a system call. orig_ax is -1 if no system call entered the
 * kernel. The kernel may since have set ip to a signal handler. SYSCALL leaves ip in rcx. Where rcx
 * differs, as with FRED, the bytes before ip tell; remote.bpf.c cannot read them, and says yes.
 * After execve(2) rcx and r11 are 0 and the instruction is gone: that counts as yes.
 */
static __always_inline bool after_syscall(const struct pt_regs *p)
{
	u16 insn = INSN_SYSCALL;

	if ((long long)p->orig_ax < 0)
		return false;
#ifndef SF_REMOTE
	if (p->cx != p->ip && (p->cx | p->r11))
		bpf_probe_read_user(&insn, sizeof(insn), (void *)(p->ip - sizeof(insn)));
#endif
	return insn == INSN_SYSCALL || insn == INSN_SYSENTER || insn == INSN_INT80;
}

/* Whether p is of execve(2) or execveat(2): arch/x86/entry/syscalls/syscall_64.tbl */
static __always_inline bool is_execve(const struct pt_regs *p)
{
	return p->orig_ax == 59 || p->orig_ax == 322;
}

/* The registers that the task saved on kernel entry. SF_STEP_GO or a stop. */
static __always_inline int regs_of_entry(struct sf_regs *r, const struct pt_regs *p)
{
	REGS_FROM(r, p);
	regs_finish(r, after_syscall(p) ? SF_REGS_RA : 0);
	if ((u16)p->cs == USER32_CS)
		return SF_STOP_COMPAT;
	return r->pc ? SF_STEP_GO : SF_STOP_NO_REGS;
}

static __always_inline int regs_of_task(struct sf_regs *r, struct task_struct *task)
{
	struct pt_regs *p = (struct pt_regs *)bpf_task_pt_regs(task);

	return p ? regs_of_entry(r, p) : SF_STOP_NO_REGS;
}

/* The registers of the current task, which was interrupted in the kernel. */
static __always_inline int regs_of_current(struct sf_regs *r)
{
	return regs_of_task(r, bpf_get_current_task_btf());
}

#define NR_FUTEX 202 /* arch/x86/entry/syscalls/syscall_64.tbl */

/* The first two arguments of futex(2). false: the task is not in that system call. */
static __always_inline bool futex_args(struct task_struct *task, u64 *ret_addr, u32 *ret_op)
{
	const struct pt_regs *p = (struct pt_regs *)bpf_task_pt_regs(task);

	if (!p || p->orig_ax != NR_FUTEX || (u16)p->cs == USER32_CS)
		return false;
	*ret_addr = p->di;
	*ret_op = p->si;
	return true;
}

/* Sets the fields that depend on the address space. */
static __always_inline void regs_of_mm(struct sf_regs *r, u64 mm)
{
	r->entry_sp = KLOAD(mm, struct mm_struct, start_stack);
}

#endif
