/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The user registers of a task, AArch64. */
#ifndef SFBPF_REGS_ARM64_BPF_H
#define SFBPF_REGS_ARM64_BPF_H

#include "core/kload.bpf.h"

/* pstate, arch/arm64/include/uapi/asm/ptrace.h */
#define PSR_MODE_MASK  0xf
#define PSR_MODE32_BIT 0x10

/*
 * The ASID with its generation (arch/arm64/mm/context.c). An address space is given a new one from
 * time to time, but a value is never reused. 0 before it first runs.
 */
#define MM_ID(mm) KLOAD(mm, struct mm_struct, context.id.counter)

/* The thread pointer of a task, which its thread-local storage is relative to. */
#define TASK_TP(task) KLOAD(task, struct task_struct, thread.uw.tp_value)

/* Offsets in pt_regs. */
#define REGS_PC_AT __builtin_offsetof(struct user_pt_regs, pc)
#define REGS_SP_AT __builtin_offsetof(struct user_pt_regs, sp)
#define REGS_G_AT  (28 * 8) /* Go: the goroutine's descriptor, x28 */

/* A register other than pc, sp and fp that packed rows use in the innermost frame. */
#define REGS_MORE(r) ((r)->r[SF_ARM64_LR])

/* The kernel clears the registers for a new image. x8 is the number of a system call. */
#define REGS_CLEARED(regs) (!((regs)->r[8] | (regs)->r[SF_ARM64_FP] | (regs)->r[SF_ARM64_LR]))

/* Sets the other fields from r[]. SF_STEP_GO or a stop. */
static __always_inline int regs_finish(struct sf_regs *r, u32 flags)
{
	r->fp = r->r[SF_ARM64_FP];
	r->sp = r->r[SF_ARM64_SP];
	r->pc = r->r[32];
	r->flags = SF_REGS_FULL | flags;
	if (r->r[33] & PSR_MODE32_BIT)
		return SF_STOP_COMPAT;
	return r->pc ? SF_STEP_GO : SF_STOP_NO_REGS;
}

static __always_inline bool regs_user_mode(const struct bpf_perf_event_data *ctx)
{
	return !(ctx->regs.pstate & PSR_MODE_MASK);
}

/* The task was interrupted in user mode. SF_STEP_GO or a stop. */
static __always_inline int regs_of_event(struct sf_regs *r, const struct bpf_perf_event_data *ctx)
{
#pragma unroll
	for (int i = 0; i < 31; i++)
		r->r[i] = ctx->regs.regs[i];
	r->r[31] = ctx->regs.sp;
	r->r[32] = ctx->regs.pc;
	r->r[33] = ctx->regs.pstate;
	return regs_finish(r, 0);
}

/* -1: the kernel was not entered by a system call */
static __always_inline int syscall_number(const struct pt_regs *p)
{
	int n = -1;

	bpf_probe_read_kernel(&n, sizeof(n), &p->syscallno);
	return n;
}

/* Whether p is of execve(2) or execveat(2): include/uapi/asm-generic/unistd.h */
static __always_inline bool is_execve(const struct pt_regs *p)
{
	int n = syscall_number(p);

	return n == 221 || n == 281;
}

/*
 * The registers that the task saved on kernel entry, at the head of its pt_regs. SF_STEP_GO or a
 * stop.
 */
static __always_inline int regs_of_entry(struct sf_regs *r, const struct pt_regs *p)
{
	if (!p || bpf_probe_read_kernel(r->r, sizeof(r->r), p) || (r->r[33] & PSR_MODE_MASK))
		return SF_STOP_NO_REGS;
	/* The pc of a system call points after the svc instruction. */
	return regs_finish(r, syscall_number(p) >= 0 ? SF_REGS_RA : 0);
}

static __always_inline int regs_of_task(struct sf_regs *r, struct task_struct *task)
{
	return regs_of_entry(r, (struct pt_regs *)bpf_task_pt_regs(task));
}

/* The registers of the current task, which was interrupted in the kernel. */
static __always_inline int regs_of_current(struct sf_regs *r)
{
	return regs_of_task(r, bpf_get_current_task_btf());
}

#define NR_FUTEX 98 /* include/uapi/asm-generic/unistd.h */

/* The first two arguments of futex(2). false: the task is not in that system call. */
static __always_inline bool futex_args(struct task_struct *task, u64 *ret_addr, u32 *ret_op)
{
	const struct pt_regs *p = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 regs[2];

	if (!p || syscall_number(p) != NR_FUTEX || bpf_probe_read_kernel(regs, sizeof(regs), p))
		return false;
	*ret_addr = regs[0];
	*ret_op = regs[1];
	return true;
}

/*
 * Sets the fields that depend on the address space. A 32-bit process has a task_size below 4 GiB;
 * it is not unwound.
 */
static __always_inline void regs_of_mm(struct sf_regs *r, u64 mm)
{
	r->entry_sp = KLOAD(mm, struct mm_struct, start_stack);
	r->ra_mask = KLOAD(mm, struct mm_struct, task_size) - 1;
}

#endif
