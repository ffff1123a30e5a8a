/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: stacks of threads that block and of those that wake them, their hashes, and their way to user space. */
#ifndef SFBPF_OFF_STACK_BPF_H
#define SFBPF_OFF_STACK_BPF_H

#include "unwind.bpf.h"

const volatile __u64 cfg_irq_start = 0, cfg_irq_len = 0;	/* the code by which interrupts enter the kernel */
const volatile __u64 cfg_softirq_start = 0, cfg_softirq_len = 0;	/* the function that runs softirqs */
__u32 off_generation = 0;		/* written by user space */

/* Hashes of the stacks whose frames have been sent, and in which generation. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u32);
} off_stacks SEC(".maps");

#define OFF_MUL1 0x9fb21c651e98df25ull
#define OFF_MUL2 0xd6e8feb86659fd93ull
#define OFF_FOLD(h, w, k) ({ (h) = ((h) ^ (w)) * (k); (h) ^= (h) >> 32; })

static int off_hash_block(u32 i, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	u32 at = i * SF_HASH_BLOCK;
	u64 *f, a, b;

	if (!s || at > SF_MAX_USER + SF_MAX_KERNEL)
		return 1;
	f = &s->frames[at];
	asm volatile("" : "+r"(f));	/* else offsets become `at | k`, whose bounds the verifier loses */
	a = s->lane[0];
	b = s->lane[1];
#pragma unroll
	for (u32 k = 0; k < SF_HASH_BLOCK; k += 2) {
		OFF_FOLD(a, f[k], OFF_MUL1);
		OFF_FOLD(b, f[k + 1], OFF_MUL2);
	}
	s->lane[0] = a;
	s->lane[1] = b;
	return 0;
}

/* Of everything that makes two stacks of a profile different. Larger than the values that are no hashes. */
static __always_inline void off_hash(struct sf_scratch *s, u32 slot)
{
	u32 n = (u32)s->sample.n_user + s->sample.n_kernel;
	u64 h;

	s->off_hash = SF_STACK_UNKNOWN;
	if (n > SF_MAX_USER + SF_MAX_KERNEL)
		return;
#pragma unroll
	for (u32 k = 0; k < SF_HASH_BLOCK; k++)
		s->frames[n + k] = 0;
	s->lane[0] = (u64)s->sample.n_user << 32 | s->sample.n_kernel;
	s->lane[1] = (u64)s->sample.pid << 16 | s->sample.stop << 8 | s->sample.flags;
	bpf_loop((n + SF_HASH_BLOCK - 1) / SF_HASH_BLOCK, off_hash_block, &slot, 0);
	h = s->lane[0];
	OFF_FOLD(h, s->lane[1], OFF_MUL2);
	OFF_FOLD(h, *(u64 *)&s->sample.comm[0], OFF_MUL1);
	OFF_FOLD(h, *(u64 *)&s->sample.comm[8], OFF_MUL2);
	OFF_FOLD(h, s->sample.cgroup_id, OFF_MUL1);
	s->off_hash = h > SF_STACK_UNKNOWN ? h : SF_STACK_UNKNOWN + 1;
}

static __always_inline void off_user_part(struct sf_scratch *s, u32 slot, struct task_struct *t, u64 mm)
{
	int err;

	s->mm = mm;
	s->vdso = KLOAD(mm, struct mm_struct, context.vdso);
	s->pid = s->sample.pid;
	err = regs_of_task(&s->regs, t);
	regs_of_mm(&s->regs, mm);
	sample_unwind(s, slot, err);
}

static __always_inline void off_head(struct sf_scratch *s, u64 task)
{
	sample_head(s, task, bpf_get_smp_processor_id(), KLOAD32(task, struct task_struct, tgid),
		    KLOAD32(task, struct task_struct, pid));
	s->sample.type = SF_REC_STACK;
	s->sample.weight = 0;
	s->sample.state = 0;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	if (KLOAD(task, struct task_struct, mm) && !(KLOAD32(task, struct task_struct, flags) & PF_KTHREAD))
		s->sample.flags |= SF_SAMPLE_USER;
}

/* The stack of a task into the slot's scratch, as a record without weight. t and task are the same. */
static __always_inline void off_take(struct sf_scratch *s, u32 slot, struct task_struct *t, u64 task)
{
	u32 n;
	long got;

	off_head(s, task);
	if (cfg_user && (s->sample.flags & SF_SAMPLE_USER))
		off_user_part(s, slot, t, KLOAD(task, struct task_struct, mm));
	n = s->sample.n_user;
	if (cfg_kernel && n <= SF_MAX_USER) {
		got = bpf_get_task_stack(t, &s->frames[n], SF_MAX_KERNEL * 8, 0);
		if (got > 0)
			s->sample.n_kernel = got / 8;
	}
	off_hash(s, slot);
}

/* The kernel part of a task that is about to be switched to, beside the record: where its user part cannot reach. */
static __always_inline void off_take_kernel_beside(struct sf_scratch *s, struct task_struct *next)
{
	long got = cfg_kernel ? bpf_get_task_stack(next, &s->frames[SF_MAX_USER], SF_MAX_KERNEL * 8, 0) : 0;

	s->n_beside = got > 0 ? (u32)got / 8 : 0;
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

/* Global: verified once for the programs that take their own stack. beside: its kernel part is there already. */
__noinline int off_take_own(u32 slot, u32 beside)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 task = bpf_get_current_task();

	if (!s)
		return -1;
	if (!beside) {
		off_take(s, slot, bpf_get_current_task_btf(), task);
		return 0;
	}
	off_head(s, task);
	if (cfg_user && (s->sample.flags & SF_SAMPLE_USER))
		off_user_part(s, slot, bpf_get_current_task_btf(), KLOAD(task, struct task_struct, mm));
	off_kernel_from_beside(s);
	off_hash(s, slot);
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
	off_kernel_from_beside(s);
	off_hash(s, slot);
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
