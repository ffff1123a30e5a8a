/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: the state of a thread, and the life of a block.
 *
 * off_task.since is the thread's state. It is one of enum off_where or, while a block is open, the
 * time at which the block began.
 *
 *   from             event                            program                   to
 *   a new thread     fork                             off_fork                  OFF_ON
 *   OFF_UNSEEN       visited on the CPU, or off in    off_first                 OFF_ON
 *                    a state that is not tracked
 *   OFF_UNSEEN       visited off in a tracked state   off_first                 OFF_BEFORE
 *   OFF_UNSEEN       switched to: nothing is counted  off_switch, off_back      OFF_ON
 *   OFF_ON, _UNSEEN  leaves in a tracked state        off_switch                open
 *   open, _BEFORE    switched to: close               off_switch, off_back      OFF_ON
 *   open, _BEFORE    the run ends: close              off_last, off_last_blind  OFF_ON
 *   open, _BEFORE    cut                              off_last, off_last_blind  open since off_cut
 *
 * off_back closes a block only if no sched_switch event was seen for the switch. The thread and the
 * iterator may close or cut the same block at the same time. Both use compare-and-swap on `since`,
 * so exactly one of them succeeds, and that one counts the block.
 */
#ifndef SFBPF_OFF_BLOCK_BPF_H
#define SFBPF_OFF_BLOCK_BPF_H

#include "core/filter.bpf.h"
#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "offcpu/off_clock.bpf.h"
#include "offcpu/off_count.bpf.h"
#include "offcpu/off_lock.bpf.h"
#include "offcpu/off_scratch.bpf.h"
#include "offcpu/off_single.bpf.h"
#include "offcpu/off_stack.bpf.h"

/* The kernel has no sched_exit_tp: stacks are taken when threads leave. */
const volatile bool cfg_off_at_leave = false;
const volatile bool cfg_off_split = false; /* the wait for a CPU after the wake-up is SF_OFF_R */
const volatile bool cfg_off_kthreads = true, cfg_off_users = true;
const volatile __u32 cfg_off_states = ~0u;		   /* 1 << enum sf_off_state */
const volatile __u64 cfg_off_min = 0, cfg_off_max = ~0ull; /* ns, of the whole block */

/* Written by user space. */
/*
 * ns. Shorter blocks are sampled, one per off_thin of a thread's blocked time; 0: all are counted.
 */
__u64 off_thin = 0;
__u32 off_one_in = 0; /* cfg_off_at_leave: one block in this many is counted; 0 and 1: all */

/* off_task.since: special values; larger ones are times. */
enum off_where {
	OFF_UNSEEN, /* it existed before the programs were attached, and none has seen it yet */
	OFF_BEFORE, /* its block began before the run */
	OFF_ON,	    /* it is on the CPU, or off in a state that is not tracked */
};

struct off_task { /* the first cache line has the fields that every switch needs */
	u64 since;
	u64 woken;     /* time of the wake-up; 0: not woken yet */
	u32 state;     /* enum sf_off_state of the block */
	u32 filtered;  /* cfg_off_chains: the thread does not pass the filters */
	u64 acc;       /* blocked time that no sample represents yet */
	u64 stack;     /* cfg_off_at_leave: hash of the block's stack; 0: not taken */
	u32 transient; /* user space keeps the frames of `stack` for this block only */
	u32 count;     /* cfg_off_at_leave: number of blocks that this one represents; 0 means 1 */
	/*
	 * Hashes of stacks: the waker of its last block, the waker of that waker's last block, and
	 * so on
	 */
	u64 wakers[SF_OFF_CHAIN];
	u32 waker_tid;	       /* the thread that wakers[0] is a stack of; 0: an interrupt */
	u32 call;	       /* cfg_calls: the number of the call that the block is in */
	u64 cut_at, cut_stack; /* cut_stack: hash of the block's stack; valid if since == cut_at */
	/* cfg_off_locks: what a block in state S or D waits for; the kernel's lock that it is at */
	struct sf_off_lock lock, contended;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct off_task);
} off_tasks SEC(".maps");

static __always_inline struct off_task *off_task(struct task_struct *t)
{
	return bpf_task_storage_get(&off_tasks, t, NULL, 0);
}

static __always_inline bool off_is_open(u64 since)
{
	return since != OFF_ON && since != OFF_UNSEEN;
}

/* ---- States ---- */

/* include/linux/sched.h: TASK_* */
#define OFF_TASK_INTERRUPTIBLE	 0x1
#define OFF_TASK_UNINTERRUPTIBLE 0x2
#define OFF_TASK_STOPPED	 0x4
#define OFF_TASK_TRACED		 0x8
#define OFF_TASK_PARKED		 0x40
#define OFF_TASK_DEAD		 0x80
#define OFF_TASK_NOLOAD		 0x400 /* an idle kernel thread */

/* preempt: the thread left involuntarily, whatever its state. */
static __always_inline u32 off_state(bool preempt, u32 state)
{
	if (preempt || !state)
		return SF_OFF_R;
	if (state & OFF_TASK_INTERRUPTIBLE)
		return SF_OFF_S;
	if (state & OFF_TASK_UNINTERRUPTIBLE)
		return state & OFF_TASK_NOLOAD ? SF_OFF_I : SF_OFF_D;
	if (state & OFF_TASK_STOPPED)
		return SF_OFF_T;
	if (state & OFF_TASK_TRACED)
		return SF_OFF_TRACED;
	return state & OFF_TASK_PARKED ? SF_OFF_P : SF_OFF_D;
}

/* Whether blocks that begin in this state are tracked. */
static __always_inline bool off_tracks(u32 state)
{
	return cfg_off_split || (cfg_off_states >> state & 1);
}

/* ---- Filters ---- */

/* Whether this kind of thread (user or kernel) is wanted. */
static __always_inline bool off_kind_wanted(u64 task)
{
	if (cfg_off_kthreads && cfg_off_users)
		return true;
	return KLOAD32(task, struct task_struct, flags) & PF_KTHREAD ? cfg_off_kthreads
								     : cfg_off_users;
}

static __always_inline bool off_task_wanted(u64 task)
{
	return off_kind_wanted(task) && task_wanted(task, KLOAD32(task, struct task_struct, tgid),
						    KLOAD32(task, struct task_struct, pid));
}

/* ---- Locks ---- */

/* Whether a thread in that state may wait for a lock. */
static __always_inline bool off_may_lock(u32 state)
{
	return state == SF_OFF_S || state == SF_OFF_D;
}

/*
 * Notes what a thread that leaves, or is asleep, waits for. The memory of a thread can be read when
 * it leaves. Not inlined: see off_switched_to.
 */
static __noinline int off_note_lock(struct task_struct *task, bool leaves)
{
	struct off_task *t = off_task(task);

	if (!t)
		return 0;
	if (t->contended.addr)
		t->lock = t->contended;
	else
		off_lock_of(&t->lock, task, leaves);
	return 0;
}

/* ---- What counts of a block ---- */

/*
 * Measures the part of the block that lies within the run, if the block ends now. false: it does
 * not count (outside the run, too short or too long, or not in a chosen state).
 */
static __always_inline bool off_measure(const struct off_task *t, u64 since, u64 now,
					struct off_block *b)
{
	u64 start = since > off_begin ? since : off_begin;
	u64 end = off_finish && now > off_finish ? off_finish : now;
	u64 woken = t->woken;

	if (!off_begin || end <= start || end - start < cfg_off_min || end - start > cfg_off_max)
		return false;
	b->start = start;
	b->end = end;
	b->blocked = end - start;
	b->waiting = 0;
	b->count = cfg_off_at_leave && t->count > 1 ? t->count : 1;
	if (cfg_off_split && woken && t->state != SF_OFF_R && woken < end) {
		b->waiting = woken > start ? end - woken : b->blocked;
		b->blocked -= b->waiting;
	}
	if (!(cfg_off_states >> t->state & 1))
		b->blocked = 0;
	if (!(cfg_off_states >> SF_OFF_R & 1))
		b->waiting = 0;
	if (cfg_off_at_leave) {
		b->blocked *= b->count;
		b->waiting *= b->count;
	}
	return b->blocked || b->waiting;
}

/*
 * Whether the block is counted. With off_thin, a shorter block is chosen with a probability
 * proportional to its length, and represents others. Total time and number of blocks stay correct
 * on average, and a thread's stack is taken at most once per off_thin of its blocked time.
 */
static __always_inline bool off_chosen(struct off_task *t, struct off_block *b)
{
	u64 period = off_thin, acc = t->acc, n;

	if (!period || b->waiting || !b->blocked)
		return true;
	if (!acc)
		acc = bpf_get_prandom_u32() % period;
	acc += b->blocked;
	n = acc / period;
	t->acc = acc - n * period;
	if (!n) {
		if (off_is_single(b))
			__sync_fetch_and_add(&off_singles_lost, 1);
		return false;
	}
	/* Rounded up or down at random, so that the mean is the exact quotient. */
	b->count = b->blocked < period
			   ? (n * period + bpf_get_prandom_u32() % b->blocked) / b->blocked
			   : 1;
	b->blocked = n * period;
	__sync_fetch_and_add(&off_sampled_ns, b->blocked);
	return true;
}

/*
 * Whether the block is counted if stacks are taken on leaving. Its length is not known then, so all
 * blocks are equally likely.
 */
static __always_inline bool off_leave_chosen(struct off_task *t)
{
	u32 n = off_one_in;

	t->count = n;
	return n <= 1 || bpf_get_prandom_u32() % n == 0;
}

/* ---- The end of a block ---- */

/* Claims the block. false: another program has closed or cut it. */
static __always_inline bool off_close(struct off_task *t, u64 since)
{
	return __sync_val_compare_and_swap(&t->since, since, OFF_ON) == since;
}

/*
 * Closes the block of a task that is back on this CPU. Returns whether it counts; *b is what
 * counts.
 */
static __always_inline bool off_close_back(struct off_task *t, u64 now, struct off_block *b)
{
	u64 since = t->since;

	if (since == OFF_ON || !off_close(t, since) || since == OFF_UNSEEN ||
	    (cfg_off_chains && t->filtered))
		return false;
	return off_measure(t, since, now, b) && cpu_wanted(bpf_get_smp_processor_id());
}

/* Sends the block by itself. The hash of its stack is in the scratch. */
static __always_inline void off_single(const struct sf_sample *rec, struct off_scratch *o, u32 slot,
				       const struct off_task *t, const struct off_block *b)
{
	struct sf_off_single *one = &o->single;
	u64 woken = t->woken;

	one->type = SF_REC_SINGLE;
	one->state = t->state;
	one->start_ns = b->start;
	one->end_ns = one->woken_ns = b->end;
	if (b->waiting) {
		one->woken_ns = woken > b->start ? woken : b->start;
		if (!b->blocked) /* its state was not chosen */
			one->start_ns = one->woken_ns;
	}
	one->stack = o->hash;
	one->waker = t->state == SF_OFF_R ? 0 : t->wakers[0];
	one->waker_tid = one->waker ? t->waker_tid : 0;
	one->call = cfg_calls ? t->call : 0;
	one->pid = rec->pid;
	one->tid = rec->tid;
	__builtin_memcpy(one->comm, rec->comm, SF_COMM);
	off_send_single(slot);
}

/* Adds the block to the counts, with the stack in the scratch. how: OFF_* of off_count.bpf.h. */
static __always_inline void off_count(struct sf_scratch *s, struct off_scratch *o, u32 slot,
				      struct off_task *t, const struct off_block *b, u32 how)
{
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		o->wakers[i] = cfg_off_wakers && !cfg_off_singles && t->state != SF_OFF_R
				       ? t->wakers[i]
				       : 0;
	o->acc = t->acc;
	o->count = b->count;
	o->lock = cfg_off_locks && off_may_lock(t->state) ? t->lock : off_no_lock;
	if (b->blocked)
		off_add_block(slot, (t->state & OFF_STATE) | how, b->blocked);
	o->lock = off_no_lock; /* a wait for a CPU is none for the lock */
	if (b->waiting)
		off_add_block(slot, SF_OFF_R | how, b->waiting);
	t->acc = o->acc;
	if (off_is_single(b) && !(how & OFF_OPEN))
		off_single(&s->sample, o, slot, t, b);
}

/* The OFF_* flags for a block that is counted by the hash in t->stack. */
static __always_inline u32 off_by_hash(const struct off_task *t)
{
	return OFF_BY_HASH | (t->stack && t->transient ? OFF_TRANSIENT : 0);
}

/*
 * Stores the hash of the scratch's stack in the thread's state. If there is no room for another
 * stack, its frames are sent anyway, for this block only: samples must be proportional to the
 * length of the block, which is not known yet.
 */
static __always_inline void off_leave_stack(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					    struct off_task *t)
{
	t->stack = o->hash;
	t->transient = off_send_stack(slot) == OFF_FULL;
	if (t->transient)
		off_send_transient(s, o);
}

#endif
