/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: stacks of threads that block and of those that wake them, their hashes, and their way to user space. */
#ifndef SFBPF_OFF_STACK_BPF_H
#define SFBPF_OFF_STACK_BPF_H

#include "off_again.bpf.h"
#include "off_again_kernel.bpf.h"
#include "unwind.bpf.h"

/* off_lazy: the frames of a part are not there yet. */
#define OFF_LAZY_USER 1
#define OFF_LAZY_KERNEL 2

const volatile __u64 cfg_irq_start = 0, cfg_irq_len = 0;	/* the code by which interrupts enter the kernel */
const volatile __u64 cfg_softirq_start = 0, cfg_softirq_len = 0;	/* the function that runs softirqs */

/* Hashes of the stacks whose frames have been sent, and in which generation. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} off_stacks SEC(".maps");

static int off_hash_block(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	u64 *f, a, b;
	u32 at;

	if (!s)
		return 1;
	at = s->hash_at + i * SF_HASH_BLOCK;
	if (at > SF_MAX_USER + SF_MAX_KERNEL)
		return 1;
	f = &s->frames[at];
	asm volatile("" : "+r"(f));	/* else offsets become `at | k`, whose bounds the verifier loses */
	a = s->lane[0];
	b = s->lane[1];
#pragma unroll
	for (u32 k = 0; k < SF_HASH_BLOCK; k += 2) {
		FOLD(a, f[k], FOLD_MUL1);
		FOLD(b, f[k + 1], FOLD_MUL2);
	}
	s->lane[0] = a;
	s->lane[1] = b;
	return 0;
}

/* Of n frames at frames[first], behind which something is overwritten. */
static __always_inline u64 off_hash_frames(struct sf_scratch *s, u32 slot, u64 first, u64 n, u64 seed)
{
	u64 h;

	asm volatile("" : "+r"(first), "+r"(n));	/* see vma_at */
	if (first > SF_MAX_USER || n > SF_MAX_USER || first + n > SF_MAX_USER + SF_MAX_KERNEL)
		return 0;
#pragma unroll
	for (u32 k = 0; k < SF_HASH_BLOCK; k++)
		s->frames[first + n + k] = 0;
	s->lane[0] = n;
	s->lane[1] = seed;
	s->hash_at = first;
	bpf_loop((n + SF_HASH_BLOCK - 1) / SF_HASH_BLOCK, off_hash_block, &slot, 0);
	h = s->lane[0];
	FOLD(h, s->lane[1], FOLD_MUL2);
	return h;
}

/* Of the kernel frames, n of them at frames[first]. */
static __always_inline void off_hash_kernel(struct sf_scratch *s, u32 slot, u32 first, u32 n)
{
	s->kernel_hash = n ? off_hash_frames(s, slot, first, n, 0) : 0;
}

/* Of everything that makes two stacks of a profile different. Larger than the values that are no hashes. */
static __always_inline void off_hash(struct sf_scratch *s)
{
	u64 h = s->user_hash;

	FOLD(h, s->kernel_hash, FOLD_MUL1);
	FOLD(h, (u64)s->sample.pid << 16 | s->sample.flags, FOLD_MUL2);
	FOLD(h, *(u64 *)&s->sample.comm[0], FOLD_MUL1);
	FOLD(h, *(u64 *)&s->sample.comm[8], FOLD_MUL2);
	FOLD(h, s->sample.cgroup_id, FOLD_MUL1);
	s->off_hash = h > SF_STACK_UNKNOWN ? h : SF_STACK_UNKNOWN + 1;
}

/* The frames of the user part, which is t's, and its hash. */
static __always_inline void off_user_part(struct sf_scratch *s, u32 slot, struct task_struct *t, u64 mm)
{
	int err;

	s->mm = mm;
	s->pid = s->sample.pid;
	err = regs_of_task(&s->regs, t);
	regs_of_mm(&s->regs, mm);
	sample_unwind(s, slot, err);
	s->user_hash = off_hash_frames(s, slot, 0, s->sample.n_user, s->sample.stop);
}

static __always_inline void off_head(struct sf_scratch *s, u64 task)
{
	sample_head(s, task, bpf_get_smp_processor_id(), KLOAD32(task, struct task_struct, tgid),
		    KLOAD32(task, struct task_struct, pid));
	s->sample.type = SF_REC_STACK;
	s->sample.weight = 0;
	s->sample.state = 0;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	s->user_hash = 0;
	s->off_lazy = 0;
	if (KLOAD(task, struct task_struct, mm) && !(KLOAD32(task, struct task_struct, flags) & PF_KTHREAD))
		s->sample.flags |= SF_SAMPLE_USER;
}

/* The stack of a task into the slot's scratch, as a record without weight. t and task are the same. */
static __always_inline void off_take(struct sf_scratch *s, u32 slot, struct task_struct *t, u64 task)
{
	u64 n;
	long got;

	off_head(s, task);
	if (cfg_user && (s->sample.flags & SF_SAMPLE_USER))
		off_user_part(s, slot, t, KLOAD(task, struct task_struct, mm));
	n = s->sample.n_user;
	asm volatile("" : "+r"(n));	/* see vma_at */
	if (cfg_kernel && n <= SF_MAX_USER) {
		got = bpf_get_task_stack(t, &s->frames[n], SF_MAX_KERNEL * 8, 0);
		if (got > 0)
			s->sample.n_kernel = got / 8;
	}
	off_hash_kernel(s, slot, n, s->sample.n_kernel);
	off_hash(s);
}

/* The kernel part of a task beside the record: where its user part cannot reach. */
static __always_inline void off_take_kernel_beside(struct sf_scratch *s, struct task_struct *t)
{
	long got = cfg_kernel ? bpf_get_task_stack(t, &s->frames[SF_MAX_USER], SF_MAX_KERNEL * 8, 0) : 0;

	s->n_beside = got > 0 ? (u32)got / 8 : 0;
}

/* The kernel part of a task that is off the CPU or has just come back: its hash, and its frames beside the record. */
static __always_inline void off_kernel_of(struct sf_scratch *s, u32 slot, struct task_struct *task)
{
	s->off_lazy = OFF_LAZY_KERNEL;
	off_take_kernel_beside(s, task);
	off_hash_kernel(s, slot, SF_MAX_USER, s->n_beside);
}

/* The same of a task that is about to be switched to, which is s->off_task, too; without frames if it is known. */
static __always_inline void off_kernel_of_next(struct sf_scratch *s, u32 slot, struct task_struct *next)
{
	if (cfg_note_words && cfg_kernel && again_kernel(slot)) {
		s->off_lazy = OFF_LAZY_KERNEL;
		s->n_beside = 0;
		return;
	}
	off_kernel_of(s, slot, next);
	if (cfg_note_words && cfg_kernel)
		again_keep_kernel(slot);
}

/* Behind the user part of the current task. */
static __always_inline void off_kernel_from_beside(struct sf_scratch *s)
{
	u32 n = s->sample.n_user, n_kernel = s->n_beside;

	asm volatile("" : "+r"(n), "+r"(n_kernel));	/* see vma_at */
	if (!cfg_kernel || !n_kernel || n_kernel > SF_MAX_KERNEL || n > SF_MAX_USER)
		return;
	bpf_probe_read_kernel(&s->frames[n], n_kernel * 8, &s->frames[SF_MAX_USER]);
	s->sample.n_kernel = n_kernel;
}

/* Global: verified once for the programs that take their own stack. */
__noinline int off_take_own(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (!s)
		return -1;
	off_take(s, slot, bpf_get_current_task_btf(), bpf_get_current_task());
	return 0;
}

/* The user part of the current task: its frames and their hash. keep: again_user, which did not know it, is to know it from now on. */
__noinline int off_take_user(u32 slot, u32 keep)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_again *m;

	if (!s)
		return 0;
	off_user_part(s, slot, bpf_get_current_task_btf(), KLOAD(bpf_get_current_task(), struct task_struct, mm));
	if (cfg_note_words && keep && s->again_key) {
		m = bpf_task_storage_get(&off_again, bpf_get_current_task_btf(), NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (m)
			again_keep_user(s, slot, m);
	}
	return 0;
}

#define OFF_TAKEN 0
#define OFF_ADDED 1	/* the block is added up: nothing is left to do */

/* The stack of the current task, whose kernel part off_kernel_of_next has seen: its hash. Its frames when they are asked for. */
__noinline int off_take_back(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 task = bpf_get_current_task();
	bool user = cfg_user && KLOAD(task, struct task_struct, mm) && !(KLOAD32(task, struct task_struct, flags) & PF_KTHREAD);
	u32 lazy, known = 0;

	if (!s)
		return -1;
	lazy = s->off_lazy;
	s->again_kind = 0;
	if (user && cfg_note_words)
		known = again_user(slot);
	if (known == AGAIN_ADDED)
		return OFF_ADDED;
	off_head(s, task);
	if (known) {
		s->user_hash = s->again_hash;
		lazy |= OFF_LAZY_USER;
	} else if (user) {
		off_take_user(slot, 1);
	}
	s->off_lazy = lazy;
	off_hash(s);
	return OFF_TAKEN;
}

/* The frames that off_take_back has left out. */
__noinline int off_frames(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_again_kernel *k;
	u32 n, n_kernel, i;

	if (!s)
		return -1;
	if (s->off_lazy & OFF_LAZY_USER)
		off_take_user(slot, 0);
	if (s->n_beside) {
		off_kernel_from_beside(s);
	} else {
		k = kernel_at(s->again_kernel);
		n = s->sample.n_user;
		n_kernel = k && k->hash == s->kernel_hash ? k->n_frames : 0;
		asm volatile("" : "+r"(n), "+r"(n_kernel));	/* see vma_at */
		if (k && n_kernel && n_kernel <= AGAIN_FRAMES && n <= SF_MAX_USER) {
			for (i = 0; i < AGAIN_FRAMES; i++)
				s->frames[n + i] = k->frames[i] | 0xffffffff00000000ull;
			s->sample.n_kernel = n_kernel;
		}
	}
	s->off_lazy = 0;
	return 0;
}

#define OFF_SOFTIRQ 0x100

/*
 * How many of the n kernel frames at frames[SF_MAX_USER] an interrupt ran on top of what it interrupted, with OFF_SOFTIRQ
 * if it was on its way out; 0: there is none. Global: inlined, the verifier would go through all that follows once for
 * each result.
 */
__noinline int off_irq_frames(u32 slot, u32 n)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 i, soft = 0;

	if (!s)
		return 0;
	for (i = 0; i < SF_MAX_KERNEL; i++) {
		u64 addr = s->frames[SF_MAX_USER + i];

		if (i >= n)
			break;
		if (addr - cfg_irq_start < cfg_irq_len)
			return (i + 1) | soft;
		if (addr - cfg_softirq_start < cfg_softirq_len)
			soft = OFF_SOFTIRQ;
	}
	return 0;
}

const char off_irq_comm[SF_COMM] = "[interrupt]", off_hardirq_comm[SF_COMM] = "[hardirq]", off_softirq_comm[SF_COMM] = "[softirq]";

/* An interrupt, not a thread. irq: as above; 0: what it did is not known. */
static __always_inline void off_irq_head(struct sf_scratch *s, u32 irq)
{
	s->sample.pid = s->sample.tid = 0;
	s->sample.cgroup_id = 0;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	if (!irq)
		__builtin_memcpy(s->sample.comm, off_irq_comm, SF_COMM);
	else if (irq & OFF_SOFTIRQ)
		__builtin_memcpy(s->sample.comm, off_softirq_comm, SF_COMM);
	else
		__builtin_memcpy(s->sample.comm, off_hardirq_comm, SF_COMM);
}

/*
 * The frames of an interrupt of the idle task, which off_take_waker finds beside. Asked for by task, its stack
 * cannot be had on some CPUs (seen on 6.18, a guest's second CPU). ctx: the program's.
 */
static __always_inline void off_take_idle_beside(struct sf_scratch *s, void *ctx)
{
	long got = cfg_kernel ? bpf_get_stack(ctx, &s->frames[SF_MAX_USER], SF_MAX_KERNEL * 8, 0) : 0;

	s->n_beside = got > 0 ? (u32)got / 8 : 0;
}

/*
 * The stack of a waker, which is the current task, or an interrupt in it: then its frames alone, under a name of their
 * own, since what was interrupted has nothing to do with it. (A softirq on the way out of a system call is the task's.)
 */
__noinline int off_take_waker(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 task = bpf_get_current_task();
	u32 irq;

	if (!s)
		return -1;
	off_head(s, task);
	if (s->sample.tid)
		off_take_kernel_beside(s, bpf_get_current_task_btf());
	irq = off_irq_frames(slot, s->n_beside);
	/* The idle task wakes nobody itself. */
	if (irq || !s->sample.tid) {
		off_irq_head(s, irq);
		s->n_beside = irq & 0xff;
	} else if (cfg_user && (s->sample.flags & SF_SAMPLE_USER)) {
		off_user_part(s, slot, bpf_get_current_task_btf(), KLOAD(task, struct task_struct, mm));
	}
	off_hash_kernel(s, slot, SF_MAX_USER, s->n_beside);
	off_kernel_from_beside(s);
	off_hash(s);
	return 0;
}

/* The record, and `more` words behind its frames. */
static __always_inline long off_output(struct sf_scratch *s, u32 more)
{
	u32 len = sizeof(struct sf_sample) + 8 * ((u32)s->sample.n_user + s->sample.n_kernel + more);
	u64 flags = BPF_RB_NO_WAKEUP;

	if (len > sizeof(struct sf_sample) + 8 * (SF_MAX_USER + SF_MAX_KERNEL + SF_OFF_CHAIN))
		return -1;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= cfg_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	return bpf_ringbuf_output(&ring, &s->sample, len, flags);
}

#define OFF_FULL 1	/* no room for another stack */
#define OFF_LATER 2	/* the ring is full: try again at the next sight */

/* The scratch's stack to user space, unless it is there already. 0, OFF_FULL or OFF_LATER. */
__noinline int off_send_stack(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 now = off_generation, *sent;
	u64 hash;

	if (!s)
		return OFF_FULL;
	hash = s->off_hash;
	sent = bpf_map_lookup_elem(&off_stacks, &hash);
	if (sent && *sent == now)
		return 0;
	if (bpf_map_update_elem(&off_stacks, &hash, &now, BPF_ANY))
		return OFF_FULL;
	s->sample.time_ns = hash;
	s->sample.weight = 0;
	if (!off_output(s, 0))
		return 0;
	bpf_map_delete_elem(&off_stacks, &hash);
	return OFF_LATER;
}

/* The scratch's stack for as long as its thread's block lasts. If that fails, samples of it will have no stack. */
static __always_inline void off_send_unkept(struct sf_scratch *s)
{
	s->sample.time_ns = s->off_hash;
	s->sample.weight = 0;
	s->sample.flags |= SF_SAMPLE_UNKEPT;
	off_output(s, 0);
}

#endif
