/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What probes of other tools change in a process (kernel/events/uprobes.c).
 *
 * A return probe replaces the return address of its function by that of a trampoline, which is at
 * the start of a page of the process, [uprobes]. The kernel keeps the real return addresses in a
 * list of the task, innermost first, each with the stack pointer that its function began with. The
 * instruction under a probe runs as a copy in that page.
 */
#ifndef SFBPF_PROBE_BPF_H
#define SFBPF_PROBE_BPF_H

#include "lang/code.bpf.h"

#define PROBE_RETURNS	 64 /* returns that a task has at most (MAX_URETPROBE_DEPTH) */
#define PROBE_INSN	 16 /* bytes of a copied instruction, at most */
#define PROBE_TRAMPOLINE 64 /* bytes of the trampoline, at most */

#ifdef __TARGET_ARCH_x86
#define PROBE_RA_SIZE 8	  /* a call has pushed the return address */
#define PROBE_PUSHED  24  /* bytes that the trampoline pushes, at most */
int leave_step(u32 slot); /* leave.bpf.h */
#define PROBE_LEAVES(slot) (leave_step(slot) == SF_STEP_GO)
#else
#define PROBE_RA_SIZE	   0
#define PROBE_PUSHED	   0
#define PROBE_LEAVES(slot) false
#endif

/* The address of the page; 0: the process has none. */
static __always_inline u64 probe_page(const struct sf_scratch *s)
{
	u64 area;

	if (!bpf_core_field_exists(struct mm_struct, uprobes_state.xol_area) ||
	    !bpf_core_field_exists(struct xol_area, vaddr))
		return 0;
	area = KLOAD(s->mm, struct mm_struct, uprobes_state.xol_area);
	return area ? KLOAD(area, struct xol_area, vaddr) : 0;
}

/* Whether a return address is that of the trampoline. */
static __always_inline bool probe_replaced(const struct sf_scratch *s, u64 ra)
{
	return ra && ra == probe_page(s);
}

/* struct uprobe_task of the task whose stack is read; 0: it has met no probe. */
static __always_inline u64 probe_task(void)
{
	if (!bpf_core_field_exists(struct task_struct, utask))
		return 0;
#ifdef SF_REMOTE
	struct task_struct *task = bpf_task_from_pid(remote_tid);
	u64 utask;

	if (!task)
		return 0;
	utask = KLOAD(task, struct task_struct, utask);
	bpf_task_release(task);
	return utask;
#else
	return KLOAD(bpf_get_current_task(), struct task_struct, utask);
#endif
}

/*
 * Goes on from the real return address of the function that began with the stack pointer `sp`, or
 * at most `slack` bytes above it. ri: the list, or a part of it.
 */
static __always_inline int probe_return(struct sf_scratch *s, u64 ri, u64 sp, u64 slack)
{
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < PROBE_RETURNS && ri; i++) {
		u64 began = KLOAD(ri, struct return_instance, stack);

		if (began - sp <= slack) {
			s->regs.pc = KLOAD(ri, struct return_instance, orig_ret_vaddr);
			s->regs.sp = began + PROBE_RA_SIZE;
			s->regs.flags = (s->regs.flags & ~SF_REGS_FULL) | SF_REGS_RA;
			return SF_STEP_GO;
		}
		ri = KLOAD(ri, struct return_instance, next);
	}
	return NOT_MINE;
}

/*
 * Steps out of the trampoline. Once the kernel has taken the real address from the list, it is
 * where the trampoline returns to; before it is written there, it is in an entry that is free.
 */
static __always_inline int probe_leave(struct sf_scratch *s, u32 slot, u64 utask)
{
	u64 ri = KLOAD(utask, struct uprobe_task, return_instances);
	u64 sp = s->regs.sp - PROBE_RA_SIZE;

	if (PROBE_LEAVES(slot) || probe_return(s, ri, sp, PROBE_PUSHED) == SF_STEP_GO)
		return SF_STEP_GO;
	if (!bpf_core_field_exists(struct uprobe_task, ri_pool))
		return NOT_MINE;
	ri = KLOAD(utask, struct uprobe_task, ri_pool);
	return probe_return(s, ri, sp, PROBE_PUSHED);
}

/*
 * Sets the pc that the current frame would have without probes. SF_STEP_GO, or NOT_MINE: no probe
 * has changed it. Global: not in the hot path, and verified once.
 */
__noinline int probe_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 page, utask, pc, copy;

	if (!s)
		return NOT_MINE;
	page = probe_page(s);
	utask = page ? probe_task() : 0;
	pc = s->regs.pc;
	if (!utask || pc - page >= SF_PAGE_MIN)
		return NOT_MINE;
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	if (pc == page && (s->regs.flags & SF_REGS_RA))
		return probe_return(s, KLOAD(utask, struct uprobe_task, return_instances),
				    s->regs.sp - PROBE_RA_SIZE, 0);
	if (pc - page < PROBE_TRAMPOLINE)
		return probe_leave(s, slot, utask);
	copy = pc - KLOAD(utask, struct uprobe_task, xol_vaddr);
	if (copy > PROBE_INSN)
		return NOT_MINE;
	s->regs.pc = KLOAD(utask, struct uprobe_task, vaddr) + copy;
	return SF_STEP_GO;
}

#ifdef __TARGET_ARCH_x86
#define PROBE_INT3 0xcc

/*
 * Sets the pc back to a breakpoint that the kernel has not handled yet: it points after the
 * breakpoint, and the instruction there is not done. If the instruction is, because the kernel has
 * emulated it, the pc is right. At a function's first instruction sp tells which. The byte before a
 * function may be int3, too, though nothing has hit it: linkers pad with it, and a jump's
 * displacement may end with it. Then the pc is at the breakpoint that the kernel handles. Global:
 * its variables are on the BPF stack only while it runs. Always 0.
 */
__noinline int probe_hit(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u8 insn[2]; /* before pc, and at it */
	u64 ra;

	if (!s || (s->regs.flags & SF_REGS_RA) || !probe_task() ||
	    copy_user(insn, sizeof(insn), s->regs.pc - 1) || insn[0] != PROBE_INT3 ||
	    insn[1] == PROBE_INT3 || copy_user(&ra, sizeof(ra), s->regs.sp))
		return 0;
	if (probe_replaced(s, ra) || follows_call(ra))
		s->regs.pc--;
	return 0;
}

#define PROBE_CALL_LEN 5 /* bytes of a direct call */

/*
 * Undoes what the kernel has pushed to emulate the instruction at a breakpoint, while the pc is
 * still there: a register, or a return address. Only for a walk whose first step failed, and whose
 * next try checks all return addresses. Global: not in the hot path, and verified once. Always 0.
 */
__noinline int probe_pushed(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	bool same;
	u64 word;
	u8 insn;

	if (!s || (s->regs.flags & SF_REGS_RA) || !probe_task() ||
	    copy_user(&insn, sizeof(insn), s->regs.pc) || insn != PROBE_INT3 ||
	    copy_user(&word, sizeof(word), s->regs.sp))
		return 0;
	same = word == s->regs.pc + PROBE_CALL_LEN;
#pragma clang loop unroll(disable)
	for (u32 i = 0; i < STEP_KEPT_REGS; i++)
		same |= word == s->regs.r[INDEX(i, STEP_KEPT_REGS)];
	if (same)
		s->regs.sp += 8;
	return 0;
}
#else
static __always_inline int probe_pushed(u32 slot)
{
	return 0;
}

static __always_inline int probe_hit(u32 slot)
{
	return 0;
}
#endif

#endif
