/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: which lock a thread waits for, and which thread has it.
 *
 * Futexes. The address is an argument of the system call, which the kernel keeps with the thread.
 * Who has the lock stands in the lock's memory, which is read when the waiter leaves the CPU: the
 * owner may be another one when the waiter returns. Whether the futex is a lock at all is not known
 * here. The waiter's stack tells that, in user space (prof/lock_kinds.h).
 *
 * Locks of the kernel. Its tracepoints say when a thread begins to wait for one, and for which
 * (since 5.19, commit 16edd9b511a1). Mutexes and semaphores for reading and writing have their
 * owner in themselves. With PREEMPT_RT they are other types, and not seen.
 */
#ifndef SFBPF_OFF_LOCK_BPF_H
#define SFBPF_OFF_LOCK_BPF_H

#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "core/regs.bpf.h"
#include "border/sfbpf_shared.h"

const volatile bool cfg_off_locks = false;

/* include/uapi/linux/futex.h */
#define OFF_FUTEX_WAIT		  0
#define OFF_FUTEX_WAKE		  1
#define OFF_FUTEX_WAKE_OP	  5
#define OFF_FUTEX_LOCK_PI	  6
#define OFF_FUTEX_UNLOCK_PI	  7
#define OFF_FUTEX_WAIT_BITSET	  9
#define OFF_FUTEX_WAKE_BITSET	  10
#define OFF_FUTEX_WAIT_REQUEUE_PI 11
#define OFF_FUTEX_LOCK_PI2	  13
#define OFF_FUTEX_OPS		  0x7f /* without the flags PRIVATE and CLOCK_REALTIME */
#define OFF_FUTEX_WAITERS	  0x80000000u
#define OFF_FUTEX_TID_MASK	  0x3fffffffu

#define OFF_FUTEX_WAITS                                                                 \
	(1u << OFF_FUTEX_WAIT | 1u << OFF_FUTEX_LOCK_PI | 1u << OFF_FUTEX_WAIT_BITSET | \
	 1u << OFF_FUTEX_WAIT_REQUEUE_PI | 1u << OFF_FUTEX_LOCK_PI2)
#define OFF_FUTEX_WAKES                                                               \
	(1u << OFF_FUTEX_WAKE | 1u << OFF_FUTEX_WAKE_OP | 1u << OFF_FUTEX_UNLOCK_PI | \
	 1u << OFF_FUTEX_WAKE_BITSET)

/* glibc, sysdeps/nptl/bits/struct_mutex.h: the beginning of a pthread_mutex_t */
struct off_mutex {
	u32 word, count, owner, users, kind;
};

#define OFF_MUTEX_CONTENDED 2
#define OFF_MUTEX_KINDS	    0x400 /* all kinds with their flags are below */

static const struct sf_off_lock off_no_lock;

/* The futex of a task that is in futex(2) for one of the operations; 0: it is not. */
static __always_inline u64 off_futex_of(struct task_struct *task, u32 operations)
{
	u64 addr;
	u32 op;

	if (!futex_args(task, &addr, &op) || !(operations >> (op & 31) & 1) ||
	    (op & OFF_FUTEX_OPS) > 31)
		return 0;
	return addr;
}

/* What the lock's memory says of its owner. Memory that is no mutex seldom looks like one. */
static __always_inline void off_owner_of(struct sf_off_lock *l, const struct off_mutex *m)
{
	if (m->word & OFF_FUTEX_WAITERS && m->word & OFF_FUTEX_TID_MASK) {
		l->owner = m->word & OFF_FUTEX_TID_MASK;
		l->how = SF_OWNER_WORD;
	} else if (m->word == OFF_MUTEX_CONTENDED && m->owner && m->users &&
		   !(m->owner & ~OFF_FUTEX_TID_MASK) && m->kind < OFF_MUTEX_KINDS) {
		l->owner = m->owner;
		l->how = SF_OWNER_FIELD;
	}
}

/* The futex of a task. leaves: the task is the current one, and its memory can be read. */
static __always_inline void off_lock_of(struct sf_off_lock *l, struct task_struct *task,
					bool leaves)
{
	struct off_mutex m = {};

	*l = off_no_lock;
	l->addr = off_futex_of(task, OFF_FUTEX_WAITS);
	if (leaves && l->addr && !bpf_probe_read_user(&m, sizeof(m), (void *)l->addr))
		off_owner_of(l, &m);
}

/* The current task wakes a thread that waits for the lock. */
static __always_inline void off_lock_woken(struct sf_off_lock *l)
{
	struct task_struct *waker = bpf_get_current_task_btf();

	if (!l->addr || l->how != SF_OWNER_UNKNOWN ||
	    off_futex_of(waker, OFF_FUTEX_WAKES) != l->addr)
		return;
	l->owner = (u32)bpf_get_current_pid_tgid();
	l->how = SF_OWNER_WAKER;
}

/* include/trace/events/lock.h */
#define OFF_LCB_READ  2
#define OFF_LCB_WRITE 4
#define OFF_LCB_MUTEX 32

/* The low bits of the owner are flags: kernel/locking/mutex.h, rwsem.c (bit 0: readers own it) */
#define OFF_OWNER_FLAGS	 7ull
#define OFF_READER_OWNED 1ull

static __always_inline void off_kernel_owner(struct sf_off_lock *l, u64 owner)
{
	u64 task = owner & ~OFF_OWNER_FLAGS;

	l->owner = task ? KLOAD32(task, struct task_struct, pid) : 0;
	l->how = l->owner ? SF_OWNER_KERNEL : SF_OWNER_UNKNOWN;
}

/* The current task begins to wait for a lock, with the flags of the tracepoint. */
static __always_inline void off_kernel_lock(struct sf_off_lock *l, u64 lock, u64 flags)
{
	u32 kind = SF_LOCK_MUTEX;
	u64 owner = 0;

	if (flags == OFF_LCB_MUTEX) {
		if (bpf_core_field_exists(struct mutex, owner))
			owner = kload(KADDR(lock, struct mutex, owner));
	} else if (flags == OFF_LCB_READ || flags == OFF_LCB_WRITE) {
		kind = SF_LOCK_RWSEM;
		if (bpf_core_field_exists(struct rw_semaphore, owner))
			owner = kload(KADDR(lock, struct rw_semaphore, owner));
		if (owner & OFF_READER_OWNED)
			owner = 0;
	} else { /* a lock that spins, or of an unknown type */
		return;
	}
	*l = off_no_lock;
	l->addr = lock;
	l->kind = kind;
	off_kernel_owner(l, owner);
}

#endif
