/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: the stacks of blocked threads and of their wakers, their hashes, and sending them to
 * user space.
 *
 * The hash of a stack is computed from the hashes of its two parts, so a part that the memo knows
 * needs no frames. Its frames are then `pending`: off_frames fetches them if user space does not
 * have the stack yet.
 */
#ifndef SFBPF_OFF_STACK_BPF_H
#define SFBPF_OFF_STACK_BPF_H

#include "core/fold.bpf.h"
#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "offcpu/off_memo.bpf.h"
#include "offcpu/off_scratch.bpf.h"
#include "core/sample.bpf.h"
#include "core/unwind.bpf.h"

/* off_scratch.pending */
#define OFF_PENDING_USER   1
#define OFF_PENDING_KERNEL 2

/* What tells of interrupts: see userspace/kern/irq_code.h. */
const volatile __u64 cfg_irq_start = 0, cfg_irq_len = 0;
const volatile __u64 cfg_softirq_start = 0, cfg_softirq_len = 0;

__u32 off_generation = 0; /* written by user space */

/*
 * Hash of a stack whose frames were sent -> the generation in which they were sent. Sized by user
 * space.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} off_stacks SEC(".maps");

/* ---- Hashes ---- */

static int off_hash_block(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct off_scratch *o = off_scratch_of(*(u32 *)ctx);
	u64 *f, a, b;
	u32 at;

	if (!s || !o)
		return 1;
	at = o->hash_at + i * SF_HASH_BLOCK;
	if (at > SF_MAX_USER + SF_MAX_KERNEL)
		return 1;
	/* Opaque, or clang computes offsets as `at | k`, whose bounds the verifier loses. */
	f = OPAQUE(&s->frames[AT_MOST(at, SF_MAX_USER + SF_MAX_KERNEL)]);
	a = o->lane[0];
	b = o->lane[1];
#pragma unroll
	for (u32 k = 0; k < SF_HASH_BLOCK; k += 2) {
		FOLD(a, f[k], FOLD_MUL1);
		FOLD(b, f[k + 1], FOLD_MUL2);
	}
	o->lane[0] = a;
	o->lane[1] = b;
	return 0;
}

/* The hash of n frames at frames[first]. Overwrites the SF_HASH_BLOCK words after them. */
static __always_inline u64 off_hash_frames(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					   u64 first, u64 n, u64 seed)
{
	u64 *after, h;

	if (first > SF_MAX_USER || n > SF_MAX_USER || first + n > SF_MAX_USER + SF_MAX_KERNEL)
		return 0;
	/* Opaque: see off_hash_block */
	after = OPAQUE(&s->frames[AT_MOST(first + n, SF_MAX_USER + SF_MAX_KERNEL)]);
#pragma unroll
	for (u32 k = 0; k < SF_HASH_BLOCK; k++)
		after[k] = 0;
	o->lane[0] = n ^ cfg_hash_key; /* else collisions could be computed in advance */
	o->lane[1] = seed;
	o->hash_at = first;
	bpf_loop((n + SF_HASH_BLOCK - 1) / SF_HASH_BLOCK, off_hash_block, &slot, 0);
	h = o->lane[0];
	FOLD(h, o->lane[1], FOLD_MUL2);
	return h;
}

static __always_inline void off_hash_kernel(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					    u32 first, u32 n)
{
	o->kernel_hash = n ? off_hash_frames(s, o, slot, first, n, 0) : 0;
}

/*
 * The hash of everything that distinguishes two stacks in a profile. Never 0 or SF_STACK_UNKNOWN.
 */
static __always_inline void off_hash(struct sf_scratch *s, struct off_scratch *o)
{
	u64 h = o->user_hash;

	FOLD(h, o->kernel_hash, FOLD_MUL1);
	FOLD(h, (u64)s->sample.pid << 16 | (u64)s->sample.lang_stop << 8 | s->sample.flags,
	     FOLD_MUL2);
	FOLD(h, *(u64 *)&s->sample.comm[0], FOLD_MUL1);
	FOLD(h, *(u64 *)&s->sample.comm[8], FOLD_MUL2);
	FOLD(h, s->sample.cgroup_id, FOLD_MUL1);
	o->hash = h > SF_STACK_UNKNOWN ? h : SF_STACK_UNKNOWN + 1;
}

/* ---- The parts of a stack ---- */

static __always_inline bool off_has_user_part(u64 task)
{
	return KLOAD(task, struct task_struct, mm) &&
	       !(KLOAD32(task, struct task_struct, flags) & PF_NO_USER);
}

/* Fills the head of an SF_REC_STACK. */
static __always_inline void off_head(struct sf_scratch *s, struct off_scratch *o, u64 task)
{
	sample_head(s, task, bpf_get_smp_processor_id(), KLOAD32(task, struct task_struct, tgid),
		    KLOAD32(task, struct task_struct, pid));
	s->sample.type = SF_REC_STACK;
	s->sample.weight = 0;
	s->sample.state = 0;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	o->user_hash = 0;
	o->pending = 0;
	if (off_has_user_part(task))
		s->sample.flags |= SF_SAMPLE_USER;
}

/* Unwinds and hashes the user part of t. */
static __always_inline void off_user_part(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					  struct task_struct *t, u64 mm)
{
	int err;

	s->mm = mm;
	s->pid = s->sample.pid;
	err = regs_of_task(&s->regs, t);
	regs_of_mm(&s->regs, mm);
	sample_unwind(s, slot, err);
	o->user_hash = off_hash_frames(s, o, slot, 0, s->sample.n_user, s->sample.stop);
}

/* Stages the kernel frames of t. */
static __always_inline void off_stage_kernel(struct sf_scratch *s, struct off_scratch *o,
					     struct task_struct *t)
{
	long got = bpf_get_task_stack(t, &s->frames[SF_MAX_USER], SF_MAX_KERNEL * 8, 0);

	o->n_staged = got > 0 ? (u32)got / 8 : 0;
}

/*
 * Stages the kernel frames of the idle task when an interrupt runs in it. bpf_get_task_stack fails
 * for that on some CPUs (seen on 6.18, on the second CPU of a guest). ctx: of the program.
 */
static __always_inline void off_stage_idle(struct sf_scratch *s, struct off_scratch *o, void *ctx)
{
	long got = bpf_get_stack(ctx, &s->frames[SF_MAX_USER], SF_MAX_KERNEL * 8, 0);

	o->n_staged = got > 0 ? (u32)got / 8 : 0;
}

/* Stages and hashes the kernel part of a task that is about to be switched to, or is back. */
static __always_inline void off_kernel_part(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					    struct task_struct *task)
{
	o->pending = OFF_PENDING_KERNEL;
	o->n_staged = 0;
	if (cfg_kernel)
		off_stage_kernel(s, o, task);
	off_hash_kernel(s, o, slot, SF_MAX_USER, o->n_staged);
}

/* Moves staged frames to their final position, after the user part. */
static __always_inline void off_unstage_kernel(struct sf_scratch *s, struct off_scratch *o)
{
	u32 n = s->sample.n_user, n_kernel = o->n_staged;

	if (!cfg_kernel || !n_kernel || n_kernel > SF_MAX_KERNEL || n > SF_MAX_USER)
		return;
	bpf_probe_read_kernel(&s->frames[AT_MOST(n, SF_MAX_USER)],
			      AT_MOST(n_kernel, SF_MAX_KERNEL) * 8, &s->frames[SF_MAX_USER]);
	s->sample.n_kernel = n_kernel;
}

/* ---- Whole stacks ---- */

/* Takes the stack of a task into the slot's scratch. t and task are the same task. */
static __always_inline void off_take(struct sf_scratch *s, struct off_scratch *o, u32 slot,
				     struct task_struct *t, u64 task)
{
	u64 n;
	long got;

	off_head(s, o, task);
	if (cfg_user && (s->sample.flags & SF_SAMPLE_USER))
		off_user_part(s, o, slot, t, KLOAD(task, struct task_struct, mm));
	n = s->sample.n_user;
	if (cfg_kernel && n <= SF_MAX_USER) {
		got = bpf_get_task_stack(t, &s->frames[AT_MOST(n, SF_MAX_USER)], SF_MAX_KERNEL * 8,
					 0);
		if (got > 0)
			s->sample.n_kernel = got / 8;
	}
	off_hash_kernel(s, o, slot, n, s->sample.n_kernel);
	off_hash(s, o);
}

/* Takes the whole stack of the current task. A global function, so it is verified once. */
__noinline int off_take_own(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);

	if (!s || !o)
		return -1;
	off_take(s, o, slot, bpf_get_current_task_btf(), bpf_get_current_task());
	return 0;
}

/* Unwinds the user part of the current task. store: after a miss in off_memo_lookup. */
__noinline int off_take_user(u32 slot, u32 store)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	struct off_memo *m;

	if (!s || !o)
		return 0;
	off_user_part(s, o, slot, bpf_get_current_task_btf(),
		      KLOAD(bpf_get_current_task(), struct task_struct, mm));
	if (cfg_note_words && store && o->memo_key) {
		m = bpf_task_storage_get(&off_memos, bpf_get_current_task_btf(), NULL,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (m)
			off_memo_store(s, o, slot, m);
	}
	return 0;
}

/*
 * Computes the hash of the current task's stack, after off_kernel_part. Frames that this does not
 * need stay pending.
 */
__noinline int off_take_back(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	u64 task = bpf_get_current_task();
	bool user = cfg_user && off_has_user_part(task);
	u32 pending, hit = 0;

	if (!s || !o)
		return -1;
	pending = o->pending;
	if (user && cfg_note_words)
		hit = off_memo_lookup(slot);
	off_head(s, o, task);
	if (hit) {
		o->user_hash = o->memo_hash;
		pending |= OFF_PENDING_USER;
	} else if (user) {
		off_take_user(slot, 1);
	}
	o->pending = pending;
	off_hash(s, o);
	return 0;
}

/* Fetches the frames that off_take_back left pending. */
__noinline int off_frames(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);

	if (!s || !o)
		return -1;
	if (o->pending & OFF_PENDING_USER)
		off_take_user(slot, 0);
	off_unstage_kernel(s, o);
	o->pending = 0;
	return 0;
}

/* ---- Wakers ---- */

#define OFF_SOFTIRQ 0x100
#define OFF_EITHER  0x200 /* the interrupt itself, or a softirq on its way out */

#ifdef __TARGET_ARCH_arm64

/* arch/arm64/include/asm/thread_info.h */
struct thread_info___count {
	u64 preempt_count;
} __attribute__((preserve_access_index));

#define SOFTIRQ_OFFSET 0x100 /* preempt_count: softirqs are run; include/linux/preempt.h */

#endif

/*
 * How many of the n staged kernel frames belong to an interrupt; the frames after them belong to
 * the interrupted context. OFF_SOFTIRQ is set if the interrupt ran softirqs on its way out,
 * OFF_EITHER (AArch64) if that is possible. 0: no interrupt. A global function: if it were inlined,
 * the verifier would walk all following code once per result.
 */
__noinline int off_irq_frames(u32 slot, u32 n)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 i, soft = 0;

#ifdef __TARGET_ARCH_arm64
	if (KLOAD(KADDR(bpf_get_current_task(), struct task_struct, thread_info),
		  struct thread_info___count, preempt_count) &
	    SOFTIRQ_OFFSET) /* the interrupt's, or the interrupted context's */
		soft = OFF_EITHER;
#endif
	if (!s)
		return 0;
	for (i = 0; i < SF_MAX_KERNEL; i++) {
		u64 addr = s->frames[SF_MAX_USER + i];

		if (i >= n)
			break;
		if (addr - cfg_irq_start < cfg_irq_len)
			return (i + 1) | soft;
		if (addr - cfg_softirq_start < cfg_softirq_len)
#ifdef __TARGET_ARCH_arm64
			return (i + 1) | soft; /* entered from user mode */
#else
			soft = OFF_SOFTIRQ;
#endif
	}
	return 0;
}

enum off_waker { OFF_TASK, OFF_INTERRUPT, OFF_NOT_KNOWN };

/*
 * Whether the frames cannot tell an interrupt from the current task. irq: off_irq_frames(). user:
 * the task has a user part.
 */
static __always_inline bool off_irq_hidden(u32 irq, bool user)
{
	struct pt_regs *p = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (!cfg_irq_len || !p)
		return true;
#ifdef __TARGET_ARCH_arm64
	u64 pstate = 0;

	/* 32-bit code is interrupted by entries that are in neither range. */
	if (irq || !user || syscall_number(p) >= 0)
		return false;
	bpf_probe_read_kernel(&pstate, sizeof(pstate), &((struct user_pt_regs *)p)->pstate);
	return pstate & PSR_MODE32_BIT;
#else
	/*
	 * FRED lets exceptions enter by the same code as interrupts, and system calls from user
	 * mode, too. The kernel sets orig_ax to -1 except for these.
	 */
	return cfg_softirq_start == cfg_irq_start && (irq || (user && (long long)p->orig_ax < 0));
#endif
}

/* Who wakes: enum off_waker. */
static __always_inline u32 off_who(u32 irq, bool user)
{
	if (off_irq_hidden(irq, user))
		return OFF_NOT_KNOWN;
	return irq ? OFF_INTERRUPT : OFF_TASK;
}

const char off_irq_comm[SF_COMM] = "[interrupt]", off_hardirq_comm[SF_COMM] = "[hardirq]",
	   off_softirq_comm[SF_COMM] = "[softirq]";

/*
 * Attributes the record to an interrupt instead of the interrupted thread. irq: off_irq_frames();
 * 0: the kind of interrupt is not known.
 */
static __always_inline void off_irq_head(struct sf_scratch *s, u32 irq)
{
	s->sample.pid = s->sample.tid = 0;
	s->sample.cgroup_id = 0;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	if (!irq || irq & OFF_EITHER)
		__builtin_memcpy(s->sample.comm, off_irq_comm, SF_COMM);
	else if (irq & OFF_SOFTIRQ)
		__builtin_memcpy(s->sample.comm, off_softirq_comm, SF_COMM);
	else
		__builtin_memcpy(s->sample.comm, off_hardirq_comm, SF_COMM);
}

/*
 * Takes the stack of a waker: the current task, or an interrupt in it. An interrupt is recorded
 * with its own frames only and under a separate name, because the interrupted task did not cause
 * the wake-up. (A softirq at the end of a system call counts as part of the task.) For the idle
 * task, call off_stage_idle first. 0; -1: the waker is not known.
 */
__noinline int off_take_waker(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	u64 task = bpf_get_current_task();
	u32 irq, who = OFF_INTERRUPT; /* the idle task itself wakes no thread */

	if (!s || !o)
		return -1;
	off_head(s, o, task);
	if (s->sample.tid)
		off_stage_kernel(s, o, bpf_get_current_task_btf());
	irq = off_irq_frames(slot, o->n_staged);
	if (s->sample.tid)
		who = off_who(irq, s->sample.flags & SF_SAMPLE_USER);
	if (who == OFF_NOT_KNOWN)
		return -1;
	if (who == OFF_INTERRUPT) {
		off_irq_head(s, irq);
		o->n_staged = irq & 0xff;
	} else if (cfg_user && (s->sample.flags & SF_SAMPLE_USER)) {
		off_user_part(s, o, slot, bpf_get_current_task_btf(),
			      KLOAD(task, struct task_struct, mm));
	}
	if (!cfg_kernel)
		o->n_staged = 0;
	off_hash_kernel(s, o, slot, SF_MAX_USER, o->n_staged);
	off_unstage_kernel(s, o);
	off_hash(s, o);
	return 0;
}

/* ---- To user space ---- */

enum off_sent {
	OFF_SENT,  /* user space has the stack, or will */
	OFF_FULL,  /* no room for another stack */
	OFF_RETRY, /* the ring is full: the stack's next block sends it */
};

/*
 * Sends the scratch's stack unless it was already sent in this generation. Returns enum off_sent.
 */
__noinline int off_send_stack(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	u32 now = off_generation, *sent;
	u64 hash;

	if (!s || !o)
		return OFF_FULL;
	hash = o->hash;
	sent = bpf_map_lookup_elem(&off_stacks, &hash);
	if (sent && *sent == now)
		return OFF_SENT;
	if (bpf_map_update_elem(&off_stacks, &hash, &now, BPF_ANY))
		return OFF_FULL;
	s->sample.type = SF_REC_STACK;
	s->sample.weight = 0;
	s->sample.hash = hash;
	if (!record_send(s, 0))
		return OFF_SENT;
	bpf_map_delete_elem(&off_stacks, &hash);
	return OFF_RETRY;
}

/*
 * Sends the scratch's stack for the current block of its thread only. If that fails, samples of the
 * block have no stack.
 */
static __always_inline void off_send_transient(struct sf_scratch *s, const struct off_scratch *o)
{
	s->sample.type = SF_REC_STACK;
	s->sample.weight = 0;
	s->sample.hash = o->hash;
	s->sample.flags |= SF_SAMPLE_TRANSIENT;
	record_send(s, 0);
}

#endif
