/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: how long threads were blocked, by the stack that they were blocked in.
 *
 * Leaving the CPU (sched_switch) is noted in the thread's own storage. The stack is taken when the thread is back
 * (sched_exit_tp, kernel 6.14): in its own context, and only for blocks that count. Kernels without that tracepoint
 * take it when it leaves (cfg_off_at_leave). Blocks are summed in maps by stack; frames cross the ring once.
 *
 * While a run is looked at, blocks that are open are cut now and then: what lies before the cut is counted, and the rest
 * goes on (OFF_PASS_CUT). A stack that does not change is read once.
 *
 * At both edges of the run an iterator visits all threads. At the start it finds those that are off already; at
 * the end those that still are, whose stacks nobody will come back to show: it reads their memory. That takes
 * a sleepable program and other helpers in the unwinder: remote.bpf.c.
 */
#ifndef SFBPF_OFFCPU_BPF_H
#define SFBPF_OFFCPU_BPF_H

#include "filter.bpf.h"
#include "off_count.bpf.h"

const volatile bool cfg_off_at_leave = false;	/* no sched_exit_tp: stacks are taken at sched_switch */
const volatile bool cfg_off_split = false;	/* the wait for a CPU after the wake-up is SF_OFF_R */
const volatile bool cfg_off_kthreads = true, cfg_off_users = true;
const volatile bool cfg_by_cpu = false;
const volatile __u32 cfg_off_states = ~0u;	/* 1 << enum sf_off_state */
const volatile __u64 cfg_off_min = 0, cfg_off_max = ~0ull;	/* ns, of the whole block */
const volatile __u64 cfg_cpu_mask[128] = {};

__u64 off_cut = 0;			/* OFF_PASS_CUT: up to when, CLOCK_MONOTONIC ns */
__u64 off_thin = 0;			/* not 0: short blocks are sampled, one for each so much of a thread's blocked time (ns) */
__u32 off_one_in = 0;			/* cfg_off_at_leave: above 1, one of so many blocks is taken */
__u32 off_pass = 0;			/* what off_last is run for */
#define OFF_PASS_STACKS 0	/* at the start, cfg_off_at_leave: the stacks of those that are off */
#define OFF_PASS_CLOSE 1	/* at the end: blocks whose files' tables are all there */
#define OFF_PASS_REST 2		/* and then the others */
#define OFF_PASS_AGAIN 3	/* off_first once more: storage is refused while the CPU is busy making some */
#define OFF_PASS_CUT 4		/* in between: what is open counts up to off_cut */

#define OFF_CUT_MIN 1000000000ull	/* ns: shorter blocks are left to whoever ends them */

/* sf_off_task.since, beside times */
#define OFF_UNSEEN 0	/* existed before us, and nobody has looked at it */
#define OFF_BEFORE 1	/* off the CPU since before us */
#define OFF_ON 2	/* on the CPU, or off for a reason that is not asked for */

struct sf_off_task {		/* what every switch needs comes first, in one cache line */
	u64 since;
	u64 woken;		/* when it was made runnable; 0: it was not */
	u32 state;		/* enum sf_off_state */
	u32 unwanted;		/* cfg_off_chains: it does not pass the filters */
	u64 acc;		/* blocked time that no sample stands for yet */
	u64 stack;		/* cfg_off_at_leave: hash of its own; 0: not taken */
	u32 unkept;		/* stack: see off_leave_stack */
	u32 stands_for;		/* cfg_off_at_leave: blocks that its own stands for; 0 is 1 */
	u64 wakers[SF_OFF_CHAIN];	/* hashes of stacks: who ended its last block, who that one's, ... */
	u64 cut_at, cut_stack;	/* while since is cut_at: its block was cut then, and that is the hash of its stack */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sf_off_task);
} off_tasks SEC(".maps");

#define OFF_SLOT(n) ((n) * cfg_ncpus + bpf_get_smp_processor_id())
#define OFF_SLOT_SELF OFF_SLOT(2)	/* back, or leaving: preemption is off */
#define OFF_SLOT_WAKER OFF_SLOT(3)	/* interrupts the former */
#define OFF_SLOT_ITER (4 * cfg_ncpus)

static __always_inline struct sf_off_task *off_task(struct task_struct *t)
{
	return bpf_task_storage_get(&off_tasks, t, NULL, 0);
}

static __always_inline void off_no_state(void)
{
	struct sf_cpu_stats *st = stats_here();

	if (st)
		__sync_fetch_and_add(&st->off_no_state, 1);
}

/* include/linux/sched.h, TASK_*. preempt: it did not want to leave, whatever the state says. */
static __always_inline u32 off_state(bool preempt, u32 state)
{
	if (preempt || !state)
		return SF_OFF_R;
	if (state & 1)
		return SF_OFF_S;
	if (state & 2)
		return state & 0x400 ? SF_OFF_I : SF_OFF_D;	/* TASK_NOLOAD: an idle kernel thread */
	if (state & 4)
		return SF_OFF_T;
	if (state & 8)
		return SF_OFF_TRACED;
	return state & 0x40 ? SF_OFF_P : SF_OFF_D;
}

#define OFF_TASK_DEAD 0x80

/* Blocks that begin in this state are of interest. */
static __always_inline bool off_tracks(u32 state)
{
	return cfg_off_split || (cfg_off_states >> state & 1);
}

static __always_inline bool off_kind_wanted(u64 task)
{
	if (cfg_off_kthreads && cfg_off_users)
		return true;
	return KLOAD32(task, struct task_struct, flags) & PF_KTHREAD ? cfg_off_kthreads : cfg_off_users;
}

/* ---- Blocks ---- */

struct off_block {
	u64 blocked, waiting;	/* ns; waiting: for a CPU, once woken */
	u64 times;		/* how many blocks it stands for */
};

/* What counts of a block that ends now: its part within the run, if that is neither too short nor too long. */
static __always_inline bool off_measure(const struct sf_off_task *t, u64 since, u64 now, struct off_block *b)
{
	u64 start = since > off_begin ? since : off_begin;
	u64 end = off_finish && now > off_finish ? off_finish : now;
	u64 woken = t->woken;

	if (!off_begin || end <= start || end - start < cfg_off_min || end - start > cfg_off_max)
		return false;
	b->blocked = end - start;
	b->waiting = 0;
	b->times = cfg_off_at_leave && t->stands_for > 1 ? t->stands_for : 1;
	if (cfg_off_split && woken && t->state != SF_OFF_R && woken < end) {
		b->waiting = woken > start ? end - woken : b->blocked;
		b->blocked -= b->waiting;
	}
	if (!(cfg_off_states >> t->state & 1))
		b->blocked = 0;
	if (!(cfg_off_states >> SF_OFF_R & 1))
		b->waiting = 0;
	if (cfg_off_at_leave) {
		b->blocked *= b->times;
		b->waiting *= b->times;
	}
	return b->blocked || b->waiting;
}

/* The frames are got when they are needed. */
static __always_inline void off_add_lazy(u32 slot, u32 how, u64 ns)
{
	if (off_add(slot, how, ns) && (how & OFF_LAZY)) {
		off_frames(slot);
		off_add(slot, how, ns);
	}
}

static __always_inline void off_count(struct sf_scratch *s, u32 slot, struct sf_off_task *t, const struct off_block *b, u32 how)
{
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		s->off_wakers[i] = cfg_off_wakers && t->state != SF_OFF_R ? t->wakers[i] : 0;
	s->off_acc = t->acc;
	s->off_times = b->times;
	if (b->blocked)
		off_add_lazy(slot, (t->state & 0xff) | how, b->blocked);
	if (b->waiting)
		off_add_lazy(slot, SF_OFF_R | how, b->waiting);
	t->acc = s->off_acc;
}

/* The block is whoever's who closes it first: the thread that is back, or the iterator at the end of the run. */
static __always_inline bool off_close(struct sf_off_task *t, u64 since)
{
	return __sync_val_compare_and_swap(&t->since, since, OFF_ON) == since;
}

static __always_inline bool off_here(u32 cpu)
{
	return !cfg_by_cpu || (cfg_cpu_mask[cpu / 64 & 127] >> (cpu & 63) & 1);
}

/*
 * Whether the block is taken. With off_thin, one that is shorter stands for others, by chance and by its length: sums of time and
 * numbers of blocks stay right on average, and a stack is unwound no more often than once in so much blocked time.
 */
static __always_inline bool off_chosen(struct sf_off_task *t, struct off_block *b)
{
	u64 period = off_thin, acc = t->acc, n;

	if (!period || b->waiting || !b->blocked)
		return true;
	if (!acc)
		acc = bpf_get_prandom_u32() % period;
	acc += b->blocked;
	n = acc / period;
	t->acc = acc - n * period;
	if (!n)
		return false;
	/* Rounded by chance: its mean is the quotient. */
	b->times = b->blocked < period ? (n * period + bpf_get_prandom_u32() % b->blocked) / b->blocked : 1;
	b->blocked = n * period;
	__sync_fetch_and_add(&off_sampled_ns, b->blocked);
	return true;
}

/* Whether the block of a task that is back since `now` counts, and what of it. */
static __always_inline bool off_over(struct sf_off_task *t, u64 now, struct off_block *b)
{
	u64 since = t->since;

	if (since == OFF_ON || !off_close(t, since) || since == OFF_UNSEEN || (cfg_off_chains && t->unwanted))
		return false;
	return off_measure(t, since, now, b) && off_here(bpf_get_smp_processor_id());
}

/* off_switched_to was not run for the current task: it does now what is left to do. false: nothing. */
static __always_inline bool off_back_unseen(struct sf_scratch *s, u32 slot, struct task_struct *task)
{
	struct sf_off_task *t = off_task(task);
	struct off_block b;

	if (!t || !off_over(t, off_arrival(task), &b) || !off_chosen(t, &b))
		return false;
	s->off_blocked = b.blocked;
	s->off_waiting = b.waiting;
	s->off_stands_for = b.times;
	s->off_state = t->state;
	off_kernel_of(s, slot, task);
	return true;
}

/*
 * ctx: whether another task ran meanwhile. Interrupts are on, preemption is off; current is the one that is back, and was
 * switched to on this CPU: off_switched_to has closed its block and taken the kernel part. Unless that switch was not shown to us:
 * there are kernels (Firecracker's guests, 6.18) in which some tasks leave without sched_switch.
 */
SEC("?tp_btf/sched_exit_tp")
int off_back(u64 *ctx)
{
	u64 task = bpf_get_current_task(), began;
	u32 slot = OFF_SLOT_SELF;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_off_task *t;
	struct off_block b;
	bool seen;

	if (!s)
		return 0;
	seen = s->off_next == task;
	if (seen && s->off_task != task)
		return 0;
	began = off_cost_begin(0, 1);
	s->off_next = task;
	s->off_task = 0;
	if (!seen && !off_back_unseen(s, slot, bpf_get_current_task_btf()))
		return 0;
	if (off_take_back(slot) == OFF_TAKEN) {
		t = off_task(bpf_get_current_task_btf());
		if (!t)
			return 0;
		b.blocked = s->off_blocked;
		b.waiting = s->off_waiting;
		b.times = s->off_stands_for;
		off_count(s, slot, t, &b, OFF_LAZY);
		if (cfg_off_sums && s->again_kind && s->off_key)
			again_begin_sum(slot);
	}
	off_cost_end(stats_here(), began, 1);
	return 0;
}

/*
 * The stack in the scratch stays behind as a hash. With no room for another one its frames go to user space all the same, to be known
 * for as long as the block lasts: how long that will be is not known, and samples are to be in proportion to it.
 */
static __always_inline void off_leave_stack(struct sf_scratch *s, u32 slot, struct sf_off_task *t)
{
	t->stack = s->off_hash;
	t->unkept = off_send_stack(slot) == OFF_FULL;
	if (t->unkept)
		off_send_unkept(s);
}

static __always_inline u32 off_by_hash(const struct sf_off_task *t)
{
	return OFF_BY_HASH | (t->stack && t->unkept ? OFF_UNKEPT : 0);
}

/* What is known of it when it is back: cfg_off_at_leave. */
static __always_inline void off_count_by_hash(struct sf_scratch *s, u32 slot, struct task_struct *next, struct sf_off_task *t,
					      const struct off_block *b)
{
	s->sample.pid = next->tgid;
	s->sample.tid = next->pid;
	__builtin_memcpy(s->sample.comm, next->comm, SF_COMM);
	s->off_hash = t->stack ? t->stack : SF_STACK_UNKNOWN;
	if (b->times > 1)
		__sync_fetch_and_add(&off_sampled_ns, b->blocked + b->waiting);
	off_count(s, slot, t, b, off_by_hash(t));
}

/*
 * The block of a task that will be back in a moment is over. Its kernel stack stands still now, which the kernel walks in
 * half the time of its own from inside of a BPF program; its user stack is not mapped yet.
 */
static __always_inline void off_switched_to(struct task_struct *next, u64 now)
{
	struct sf_off_task *t = next->pid ? off_task(next) : NULL;
	u32 slot = OFF_SLOT_SELF;
	struct sf_scratch *s = scratch_of(slot);
	struct off_block b;

	if (s && !cfg_off_at_leave)
		*(volatile u64 *)&s->off_next = (u64)next;
	if (!s || !t || !off_over(t, now, &b))
		return;
	if (cfg_off_at_leave) {
		off_count_by_hash(s, slot, next, t, &b);
		return;
	}
	if (!off_chosen(t, &b))
		return;
	*(volatile u64 *)&s->off_task = (u64)next;
	s->off_blocked = b.blocked;
	s->off_waiting = b.waiting;
	s->off_stands_for = b.times;
	s->off_state = t->state;
	off_kernel_of_next(s, slot, next);
}

/* Where the block's length is not known yet: all are equally likely, and stand for as many. */
static __always_inline bool off_leave_chosen(struct sf_off_task *t)
{
	u32 n = off_one_in;

	t->stands_for = n;
	return n <= 1 || bpf_get_prandom_u32() % n == 0;
}

static __always_inline void off_stack_at_leave(struct sf_off_task *t)
{
	u32 slot = OFF_SLOT_SELF;
	struct sf_scratch *s = scratch_of(slot);

	t->stack = 0;
	if (s && !off_take_own(slot))
		off_leave_stack(s, slot, t);
}

/*
 * ctx: preempt, prev, next, prev's state. current is still prev. One time for both: as the scheduler sees it, the CPU
 * passes from one to the other at once, so what its tracepoints cost belongs to next's running time.
 */
static __always_inline void off_switched(u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	u64 task = bpf_get_current_task();
	u32 state = off_state(ctx[0] & 1, ctx[3]);
	bool wanted, counts = off_tracks(state) && !(ctx[3] & OFF_TASK_DEAD);
	u64 now = off_clock(prev);
	struct sf_off_task *t;

	off_switched_to((struct task_struct *)ctx[2], now);
	if (!(counts || cfg_off_at_leave) || !prev->pid)
		return;
	wanted = off_kind_wanted(task) && task_wanted(task, prev->tgid, prev->pid);
	if (!wanted && !cfg_off_chains)
		return;
	t = off_task(prev);
	if (!t)
		return;
	if (cfg_off_at_leave && t->since != OFF_ON)	/* its way back was not seen: see off_back */
		off_switched_to(prev, off_arrival(prev));
	if (!counts)
		return;
	t->state = state;
	t->woken = 0;
	t->unwanted = !wanted;
	if (cfg_off_wakers && state != SF_OFF_R)	/* else it runs on for whoever woke it */
		for (u32 i = 0; i < SF_OFF_CHAIN; i++)
			t->wakers[i] = 0;
	if (cfg_off_at_leave && wanted) {
		if (!off_leave_chosen(t)) {
			t->since = OFF_ON;
			return;
		}
		off_stack_at_leave(t);
	}
	t->since = now;
}

SEC("?tp_btf/sched_switch")
int off_switch(u64 *ctx)
{
	struct sf_cpu_stats *st = cfg_want_cost ? stats_here() : NULL;
	u64 began = st ? off_cost_begin(st->off_switches++, OFF_COST_EVERY) : 0;

	off_switched(ctx);
	off_cost_end(st, began, OFF_COST_EVERY);
	return 0;
}

/* ---- Wakers ---- */

/*
 * The stack in the scratch is that of who wakes t, and behind it are those of who woke that one. With filters, too: whoever may
 * wake others is followed.
 */
static __always_inline void off_note_waker(const struct sf_scratch *s, struct sf_off_task *t)
{
	struct sf_off_task *its;
	u32 i;

	t->wakers[0] = s->off_hash;
	if (!cfg_off_chains || !s->sample.tid)	/* an interrupt begins the chain */
		return;
	its = off_task(bpf_get_current_task_btf());
	if (!its)
		return;
	for (i = 1; i < SF_OFF_CHAIN; i++)
		t->wakers[i] = its->wakers[i - 1];
}

/* ctx: the task that is about to be made runnable. current is its waker, or in the way of an interrupt. */
SEC("?tp_btf/sched_waking")
int off_waking(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct sf_off_task *t = off_task(task);
	struct sf_scratch *s;
	u64 since, now;
	u32 slot;

	if (!t || t->woken)
		return 0;
	since = t->since;
	if (since == OFF_ON || since == OFF_UNSEEN || task == bpf_get_current_task_btf())
		return 0;
	now = bpf_ktime_get_ns();
	t->woken = now;
	if (!cfg_off_wakers || t->state == SF_OFF_R)
		return 0;
	/* It may still become long enough while it waits for a CPU: then its waker is missing. */
	if (!off_begin || now - (since > off_begin ? since : off_begin) < cfg_off_min)
		return 0;
	slot = OFF_SLOT_WAKER;
	s = scratch_of(slot);
	if (s && !(u32)bpf_get_current_pid_tgid())
		off_take_idle_beside(s, ctx);
	if (!s || off_take_waker(slot) || off_send_stack(slot) == OFF_FULL)
		return 0;
	off_note_waker(s, t);
	return 0;
}

/* ---- Threads that begin, and the edges of the run ---- */

/* No allocation under the scheduler's locks: every thread gets its storage here, or from off_first. ctx: parent, child. */
SEC("?tp_btf/sched_process_fork")
int off_fork(u64 *ctx)
{
	struct sf_off_task *t = bpf_task_storage_get(&off_tasks, (struct task_struct *)ctx[1], NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (t)
		t->since = OFF_ON;
	else if (off_begin)	/* else off_first will see it */
		off_no_state();
	return 0;
}

static __always_inline bool off_in_cgroup(u64 task)
{
	u64 cgrp = KLOAD(KLOAD(task, struct task_struct, cgroups), struct css_set, dfl_cgrp);
	u64 at;

	if ((int)KLOAD32(cgrp, struct cgroup, level) < cfg_cgroup_level)
		return false;
	at = kload(KADDR(cgrp, struct cgroup, ancestors) + 8ull * cfg_cgroup_level);
	return KLOAD(KLOAD(at, struct cgroup, kn), struct kernfs_node, id) == cfg_cgroup;
}

/* task_wanted() for a task that is not current. */
static __always_inline bool off_task_wanted(u64 task)
{
	u32 pid = KLOAD32(task, struct task_struct, tgid), tid = KLOAD32(task, struct task_struct, pid);

	if (!pid_wanted(pid) || !tid_wanted(tid))
		return false;
	if (cfg_by_uid && KLOAD32(KLOAD(task, struct task_struct, cred), struct cred, uid.val) != cfg_uid)
		return false;
	if (cfg_by_cgroup && !off_in_cgroup(task))
		return false;
	if (cfg_by_comm && !comm_matches(task))
		return false;
	return off_kind_wanted(task);
}

/* The thread will not be seen any more by off_hand_in. */
SEC("?tp_btf/sched_process_exit")
int off_exit(u64 *ctx)
{
	struct sf_again *m = bpf_task_storage_get(&off_again, bpf_get_current_task_btf(), NULL, 0);

	if (m) {
		m->over = 1;
		again_hand_in(m);
	}
	return 0;
}

/* What threads have added up. */
SEC("?iter/task")
int off_hand_in(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sf_again *m = task ? bpf_task_storage_get(&off_again, task, NULL, 0) : NULL;

	if (m)
		again_hand_in(m);
	return 0;
}

/* Once the programs above run and before off_begin: what is off the CPU already. */
SEC("?iter/task")
int off_first(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sf_off_task *t;
	u64 addr = 0, since = OFF_ON;
	u32 state;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&off_tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		if (off_pass == OFF_PASS_AGAIN)
			off_no_state();
		return 0;
	}
	if (t->since != OFF_UNSEEN)
		return 0;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	state = off_state(false, KLOAD32(addr, struct task_struct, __state));
	if (!KLOAD32(addr, struct task_struct, on_cpu) && !KLOAD32(addr, struct task_struct, exit_state) &&
	    off_tracks(state) && (cfg_off_chains || off_task_wanted(addr))) {
		t->state = state;
		t->unwanted = cfg_off_chains && !off_task_wanted(addr);
		since = OFF_BEFORE;
	}
	__sync_val_compare_and_swap(&t->since, OFF_UNSEEN, since);
	return 0;
}

/* The thread is off, and its block belongs to the run. */
static __always_inline bool off_still(const struct sf_off_task *t, u64 since, u64 addr, struct off_block *b)
{
	if (since == OFF_ON || since == OFF_UNSEEN || t->unwanted)
		return false;
	if (off_pass == OFF_PASS_STACKS)
		return since == OFF_BEFORE;
	if (off_pass == OFF_PASS_CUT && (since > off_cut || off_cut - (since > off_begin ? since : off_begin) < OFF_CUT_MIN))
		return false;
	return off_measure(t, since, off_pass == OFF_PASS_CUT ? off_cut : off_finish, b) &&
	       off_here(KLOAD32(addr, struct task_struct, thread_info.cpu));
}

/* Counts the block up to off_cut, by the hash in the scratch. Only if it was open all the time does that stack belong to it. */
static __always_inline void off_cut_block(struct sf_scratch *s, u32 slot, struct sf_off_task *t, u64 since, const struct off_block *b,
					  u32 how)
{
	if (__sync_val_compare_and_swap(&t->since, since, off_cut) != since)
		return;
	off_count(s, slot, t, b, how | OFF_OPEN);
	t->cut_stack = s->off_hash;
	if (bpf_map_lookup_elem(&off_stacks, &s->off_hash))	/* else there was no room for it: read again the next time */
		t->cut_at = off_cut;
}

/* By the hash of a stack that was taken before. */
static __always_inline void off_cut_again(struct sf_scratch *s, u32 slot, struct sf_off_task *t, u64 since, u64 addr,
					  const struct off_block *b)
{
	s->sample.pid = KLOAD32(addr, struct task_struct, tgid);
	s->sample.tid = KLOAD32(addr, struct task_struct, pid);
	*(u64 *)&s->sample.comm[0] = kload(KADDR(addr, struct task_struct, comm));
	*(u64 *)&s->sample.comm[8] = kload(KADDR(addr, struct task_struct, comm) + 8);
	s->off_hash = t->stack ? t->stack : t->cut_stack;
	off_cut_block(s, slot, t, since, b, off_by_hash(t));
}

/* Whether its stack is known by its hash already. */
static __always_inline bool off_stack_known(const struct sf_off_task *t, u64 since)
{
	return off_pass == OFF_PASS_CUT && (t->stack || t->cut_at == since);
}

#ifdef SF_REMOTE
/* Blocks that are still open at the end of the run, after off_finish is set. */
SEC("?iter.s/task")
int off_last(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sf_off_task *t = task ? off_task(task) : NULL;
	u32 slot = OFF_SLOT_ITER;
	struct sf_scratch *s = scratch_of(slot);
	struct off_block b = {};
	u64 since, addr = 0;

	if (!task || !t || !s)
		return 0;
	since = t->since;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	if (!off_still(t, since, addr, &b))
		return 0;
	if (off_stack_known(t, since)) {
		off_cut_again(s, slot, t, since, addr, &b);
		return 0;
	}
	remote_tid = KLOAD32(addr, struct task_struct, pid);
	off_take(s, slot, task, addr);
	if (off_pass == OFF_PASS_STACKS) {
		if (t->since == since)
			off_leave_stack(s, slot, t);
		return 0;
	}
	if (off_pass == OFF_PASS_CUT) {
		off_cut_block(s, slot, t, since, &b, 0);
		return 0;
	}
	if (s->sample.stop == SF_STOP_NOT_LOADED && off_pass == OFF_PASS_CLOSE)
		return 0;
	if (off_close(t, since))
		off_count(s, slot, t, &b, 0);
	return 0;
}
#endif

/* The same for kernels that refuse it (before 6.2): what the thread left behind, or the kernel's part alone. */
SEC("?iter/task")
int off_last_blind(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sf_off_task *t = task ? off_task(task) : NULL;
	u32 slot = OFF_SLOT_ITER, how = 0;
	struct sf_scratch *s = scratch_of(slot);
	struct off_block b = {};
	u64 since, addr = 0;
	long got;

	if (!task || !t || !s)
		return 0;
	since = t->since;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	if (!off_still(t, since, addr, &b))
		return 0;
	if (off_stack_known(t, since)) {
		off_cut_again(s, slot, t, since, addr, &b);
		return 0;
	}
	if (off_pass != OFF_PASS_CUT && !off_close(t, since))
		return 0;
	sample_head(s, addr, 0, KLOAD32(addr, struct task_struct, tgid), KLOAD32(addr, struct task_struct, pid));
	s->sample.type = SF_REC_STACK;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	if (t->stack) {
		s->off_hash = t->stack;
		how = off_by_hash(t);
	} else {
		if (KLOAD(addr, struct task_struct, mm) && !(KLOAD32(addr, struct task_struct, flags) & PF_KTHREAD)) {
			s->sample.flags |= SF_SAMPLE_USER;
			s->sample.stop = SF_STOP_ASLEEP;
		}
		got = cfg_kernel ? bpf_get_task_stack(task, s->frames, SF_MAX_KERNEL * 8, 0) : 0;
		s->sample.n_kernel = got > 0 ? (u32)got / 8 : 0;
		s->user_hash = s->sample.stop;
		off_hash_kernel(s, slot, 0, s->sample.n_kernel);
		off_hash(s);
	}
	if (off_pass == OFF_PASS_CUT)
		off_cut_block(s, slot, t, since, &b, how);
	else
		off_count(s, slot, t, &b, how);
	return 0;
}

/* Once a generation is over: the hashes of stacks that threads still hold. Records are u64. */
SEC("?iter/task")
int off_held(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sf_off_task *t = task ? off_task(task) : NULL;
	u64 held[SF_OFF_CHAIN + 2];

	if (!t)
		return 0;
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		held[i] = t->wakers[i];
	held[SF_OFF_CHAIN] = t->stack;
	held[SF_OFF_CHAIN + 1] = t->cut_stack;
	bpf_seq_write(ctx->meta->seq, held, sizeof(held));
	return 0;
}

#endif
