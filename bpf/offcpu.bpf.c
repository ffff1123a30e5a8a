// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Off-CPU: how long threads were blocked, by stack.
 *
 * sched_switch records that a thread leaves, in its task storage. Its stack is taken when it comes
 * back (sched_exit_tp, kernel 6.14): in its own context, and only for blocks that count. On kernels
 * without that tracepoint, the stack is taken when the thread leaves (cfg_off_at_leave). Blocks are
 * summed up by stack in maps; frames are sent once. For the life of a block see off_block.bpf.h.
 *
 * During a run, user space may cut the open blocks: the time before the cut is counted, and the
 * block goes on (SF_OFF_PASS_CUT). A stack that has not changed is read only once.
 *
 * At the start and at the end of the run, an iterator visits all threads. At the start it finds the
 * threads that are off the CPU already; at the end, those that are still off. They are not running,
 * so the iterator has to read their memory. This needs a sleepable program and different helpers in
 * the unwinder: remote.bpf.c.
 *
 *   off_clock	the scheduler's clock		off_stack	stacks, hashes, wakers, sending
 *   off_memo	known user stacks		off_count	counts and samples
 *   off_detail	histograms, threads, cost	off_block	states and measuring of blocks
 *   off_single	blocks sent one by one		off_lock	futexes and their owners
 */
#include "core/call.bpf.h"
#include "core/filter.bpf.h"
#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "offcpu/off_block.bpf.h"
#include "offcpu/off_clock.bpf.h"
#include "offcpu/off_contention.bpf.h"
#include "offcpu/off_count.bpf.h"
#include "offcpu/off_detail.bpf.h"
#include "offcpu/off_lock.bpf.h"
#include "offcpu/off_scratch.bpf.h"
#include "offcpu/off_single.bpf.h"
#include "offcpu/off_stack.bpf.h"
#include "core/sample.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 off_cut = 0;  /* SF_OFF_PASS_CUT: time of the cut, CLOCK_MONOTONIC ns */
__u32 off_pass = 0; /* enum sf_off_pass */

/* ns; shorter blocks are not cut, as they will probably be closed soon */
#define OFF_CUT_MIN 1000000000ull

static __always_inline void off_no_state(void)
{
	struct sf_cpu_stats *st = stats_here();

	if (st)
		__sync_fetch_and_add(&st->off_no_state, 1);
}

/* ---- Coming back ---- */

/*
 * Does the work of off_switch, which did not run for the return of the current task. false: there
 * is nothing to count.
 */
static __always_inline bool off_back_unseen(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					    struct task_struct *task)
{
	struct off_task *t = off_task(task);

	if (!t || !off_close_back(t, off_arrival(task), &o->block) || !off_chosen(t, &o->block))
		return false;
	off_kernel_part(s, o, slot, task);
	return true;
}

/*
 * ctx: whether another task ran meanwhile. Interrupts are on, preemption is off. The current task
 * is back: off_switch closed its block and took the kernel part when this CPU switched to it. Some
 * kernels do not report that switch (6.18 as a Firecracker guest, where some tasks leave without
 * sched_switch).
 */
SEC("?tp_btf/sched_exit_tp")
int off_back(u64 *ctx)
{
	u64 task = bpf_get_current_task(), began;
	u32 slot = OFF_SLOT_SELF;
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	struct off_task *t;
	bool seen;

	if (!s || !o)
		return 0;
	seen = o->switched_to == task;
	began = off_cost_begin(0, 1);
	o->switched_to = task;
	o->due = 0;
	if (!seen && !off_back_unseen(s, o, slot, bpf_get_current_task_btf()))
		return 0;
	if (!off_take_back(slot)) {
		t = off_task(bpf_get_current_task_btf());
		if (!t)
			return 0;
		off_count(s, o, slot, t, &o->block, OFF_PENDING);
	}
	off_cost_end(stats_here(), began, 1);
	return 0;
}

/* off_back and off_waking, in the version that knows all languages that were met. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} off_back_walks SEC(".maps"), off_waking_walks SEC(".maps");

/* The program that is attached: skips off_back if it has nothing to do. */
SEC("?tp_btf/sched_exit_tp")
int off_back_jump(u64 *ctx)
{
	struct off_scratch *o = off_scratch_of(OFF_SLOT_SELF);
	u64 task = bpf_get_current_task();

	if (o && (o->switched_to != task || o->due == task))
		bpf_tail_call_static(ctx, &off_back_walks, 0);
	return 0;
}

/* ---- Switching ---- */

/*
 * cfg_off_at_leave: counts the block of a task that is back, by the hash that was stored on
 * leaving.
 */
static __always_inline void off_count_left(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					   struct task_struct *next, struct off_task *t,
					   const struct off_block *b)
{
	s->sample.pid = next->tgid;
	s->sample.tid = next->pid;
	__builtin_memcpy(s->sample.comm, next->comm, SF_COMM);
	o->hash = t->stack ? t->stack : SF_STACK_UNKNOWN;
	if (b->count > 1)
		__sync_fetch_and_add(&off_sampled_ns, b->blocked + b->waiting);
	off_count(s, o, slot, t, b, off_by_hash(t));
}

/*
 * Closes the block of a task that is being switched to. Its kernel stack does not change now, and
 * walking it here takes half the time that it takes from a BPF program inside the task. Its user
 * stack is not mapped yet, so off_back does the rest. Not inlined: its part of the BPF stack is
 * gone when off_open takes a stack. Otherwise programs of some compilers need more than 512 bytes.
 */
static __noinline int off_switched_to(struct task_struct *next, u64 now)
{
	struct off_task *t = next->pid ? off_task(next) : NULL;
	u32 slot = OFF_SLOT_SELF;
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);

	if (o && !cfg_off_at_leave)
		*(volatile u64 *)&o->switched_to = (u64)next;
	if (!s || !o || !t || !off_close_back(t, now, &o->block))
		return 0;
	if (cfg_off_at_leave) {
		off_count_left(s, o, slot, next, t, &o->block);
		return 0;
	}
	if (!off_chosen(t, &o->block))
		return 0;
	*(volatile u64 *)&o->due = (u64)next;
	off_kernel_part(s, o, slot, next);
	return 0;
}

static __always_inline void off_stack_at_leave(struct off_task *t)
{
	u32 slot = OFF_SLOT_SELF;
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);

	t->stack = 0;
	if (s && o && !off_take_own(slot))
		off_leave_stack(s, o, slot, t);
}

/* Opens the block of a task that leaves the CPU in a tracked state. */
static __always_inline void off_open(struct off_task *t, u32 state, bool wanted, u64 now)
{
	t->state = state;
	t->woken = 0;
	t->filtered = !wanted;
	/* A preempted task keeps the chain of its last wake-up. */
	if (cfg_off_wakers && state != SF_OFF_R)
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

/*
 * Whether a thread that leaves is in a call, which is that of its block then. Not inlined, see
 * off_switched_to.
 */
static __noinline int off_in_call(struct task_struct *prev)
{
	struct off_task *t = off_task(prev);

	if (!t)
		return 0;
	t->call = call_takes(prev);
	return t->call != 0;
}

/*
 * ctx: preempt, prev, next, prev's state. current is still prev. prev leaves and next returns at
 * the same time, as in the scheduler's accounting. The cost of the tracepoints is part of next's
 * running time.
 */
static __always_inline void off_switched(u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	u64 task = bpf_get_current_task();
	u32 state = off_state(ctx[0] & 1, ctx[3]);
	bool wanted, tracked = off_tracks(state) && !(ctx[3] & OFF_TASK_DEAD);
	u64 now = off_clock(prev);
	struct off_task *t;

	off_switched_to((struct task_struct *)ctx[2], now);
	if (cfg_off_running && prev->pid && off_kind_wanted(task) &&
	    task_wanted(task, prev->tgid, prev->pid))
		off_add_running(prev, now);
	if (!(tracked || cfg_off_at_leave) || !prev->pid)
		return;
	wanted = off_kind_wanted(task) && task_wanted(task, prev->tgid, prev->pid);
	if (!wanted && !cfg_off_chains)
		return;
	t = off_task(prev);
	if (!t)
		return;
	if (cfg_off_at_leave && t->since != OFF_ON) /* its return was not reported: see off_back */
		off_switched_to(prev, off_arrival(prev));
	if (cfg_calls && !off_in_call(prev))
		return;
	if (cfg_off_locks && off_may_lock(state))
		off_note_lock(prev, true);
	if (tracked)
		off_open(t, state, wanted, now);
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
 * Makes the stack in the scratch the first of t's chain of wakers. The waker's own chain follows.
 * With filters too, because any thread may wake one that passes them.
 */
static __always_inline void off_note_waker(const struct sf_scratch *s, const struct off_scratch *o,
					   struct off_task *t)
{
	struct off_task *waker;
	u32 i;

	t->wakers[0] = o->hash;
	t->waker_tid = s->sample.tid;
	if (!cfg_off_chains || !s->sample.tid) /* a chain ends at an interrupt */
		return;
	waker = off_task(bpf_get_current_task_btf());
	if (!waker)
		return;
	for (i = 1; i < SF_OFF_CHAIN; i++)
		t->wakers[i] = waker->wakers[i - 1];
}

/* Takes the stack of the waker. off_waking_jump, whose ctx it has, has noted the time. */
SEC("?tp_btf/sched_waking")
int off_waking(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct off_task *t = off_task(task);
	u32 slot = OFF_SLOT_WAKER;
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);

	if (!t || !s || !o)
		return 0;
	if (!(u32)bpf_get_current_pid_tgid())
		off_stage_idle(s, o, ctx);
	if (off_take_waker(slot) || off_send_stack(slot) == OFF_FULL)
		return 0;
	off_note_waker(s, o, t);
	return 0;
}

/*
 * The program that is attached. ctx: the task that is about to be made runnable. The current task
 * is its waker, or was interrupted by its waker.
 */
SEC("?tp_btf/sched_waking")
int off_waking_jump(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct off_task *t = off_task(task);
	u64 since, now;

	if (!t || t->woken)
		return 0;
	since = t->since;
	if (!off_is_open(since) || task == bpf_get_current_task_btf())
		return 0;
	now = bpf_ktime_get_ns();
	t->woken = now;
	if (cfg_off_locks && t->state == SF_OFF_S)
		off_lock_woken(&t->lock);
	if (!cfg_off_wakers || t->state == SF_OFF_R)
		return 0;
	/* If the block becomes long enough only while the task waits for a CPU, it has no waker. */
	if (off_begin && now - (since > off_begin ? since : off_begin) >=
				 (cfg_off_singles ? cfg_off_single_min : cfg_off_min))
		bpf_tail_call_static(ctx, &off_waking_walks, 0);
	return 0;
}

/* ---- New threads, and the edges of the run ---- */

/*
 * Nothing can be allocated under the scheduler's locks, so every thread gets its storage here or in
 * off_first. ctx: parent, child.
 */
SEC("?tp_btf/sched_process_fork")
int off_fork(u64 *ctx)
{
	struct off_task *t = bpf_task_storage_get(&off_tasks, (struct task_struct *)ctx[1], NULL,
						  BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (t)
		t->since = OFF_ON;
	else if (off_begin) /* off_first visits it before the run */
		off_no_state();
	return 0;
}

/*
 * Runs after the programs above are attached and before off_begin: finds the threads that are
 * already off the CPU.
 */
SEC("?iter/task")
int off_first(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct off_task *t;
	u64 addr = 0, since = OFF_ON;
	u32 state;

	if (!task)
		return 0;
	t = bpf_task_storage_get(&off_tasks, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		if (off_pass == SF_OFF_PASS_AGAIN)
			off_no_state();
		return 0;
	}
	if (t->since != OFF_UNSEEN)
		return 0;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	state = off_state(false, KLOAD32(addr, struct task_struct, __state));
	if (!KLOAD32(addr, struct task_struct, exit_state) && off_tracks(state) && !cfg_calls &&
	    (cfg_off_chains || off_task_wanted(addr))) {
		t->state = state;
		t->filtered = cfg_off_chains && !off_task_wanted(addr);
		if (cfg_off_locks && off_may_lock(state))
			off_note_lock(task, false);
		since = OFF_BEFORE;
	}
	__sync_val_compare_and_swap(&t->since, OFF_UNSEEN, since);
	return 0;
}

/* Whether the thread has an open block that this pass handles. */
static __always_inline bool off_still(const struct off_task *t, u64 since, u64 addr,
				      struct off_block *b)
{
	if (!off_is_open(since) || t->filtered)
		return false;
	if (off_pass == SF_OFF_PASS_STACKS)
		return since == OFF_BEFORE;
	if (off_pass == SF_OFF_PASS_CUT &&
	    (since > off_cut || off_cut - (since > off_begin ? since : off_begin) < OFF_CUT_MIN))
		return false;
	return off_measure(t, since, off_pass == SF_OFF_PASS_CUT ? off_cut : off_finish, b) &&
	       cpu_wanted(KLOAD32(addr, struct task_struct, thread_info.cpu));
}

/*
 * Counts the block up to off_cut, by the hash in the scratch. If the compare-and-swap fails, the
 * thread has come back meanwhile. The stack may then belong to its next block, so it is not used.
 */
static __always_inline void off_cut_block(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					  struct off_task *t, u64 since, const struct off_block *b,
					  u32 how)
{
	if (__sync_val_compare_and_swap(&t->since, since, off_cut) != since)
		return;
	off_count(s, o, slot, t, b, how | OFF_OPEN);
	t->cut_stack = o->hash;
	/* Else there was no room for the stack: the next cut reads it again. */
	if (bpf_map_lookup_elem(&off_stacks, &o->hash))
		t->cut_at = off_cut;
}

/* Whether the hash of the stack is known without reading the stack. */
static __always_inline bool off_stack_known(const struct off_task *t, u64 since)
{
	return off_pass == SF_OFF_PASS_CUT && (t->stack || t->cut_at == since);
}

/* Cuts a block, by the known hash. */
static __always_inline void off_cut_known(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					  struct off_task *t, u64 since, u64 addr,
					  const struct off_block *b)
{
	s->sample.pid = KLOAD32(addr, struct task_struct, tgid);
	s->sample.tid = KLOAD32(addr, struct task_struct, pid);
	*(u64 *)&s->sample.comm[0] = kload(KADDR(addr, struct task_struct, comm));
	*(u64 *)&s->sample.comm[8] = kload(KADDR(addr, struct task_struct, comm) + 8);
	o->hash = t->stack ? t->stack : t->cut_stack;
	off_cut_block(s, o, slot, t, since, b, off_by_hash(t));
}

/* ---- Memory that does not come ---- */

/*
 * A page of a thread's stack may lie in a file whose file system does not answer. off_last then
 * waits in the middle of a walk, and nothing can end it. User space gives that pass up, runs
 * off_fence and goes on without it. Later the program may go on, too, while another pass runs:
 *
 * - Each run of off_last has a slot to itself, from off_enter to off_leave.
 * - What it has read after it was given up is dropped. The memory may be that of the thread that
 *   the other pass is at (remote_tid), and the tables are not those that it began with.
 * - The other passes leave out that thread, and if its user is not root, all threads of that user.
 */
__u64 off_session = 0; /* iterators with smaller ids were given up; 0: none was */

/* Gives up all iterators that were made before this one. */
SEC("?iter/task")
int off_fence(struct bpf_iter__task *ctx)
{
	*(volatile u64 *)&off_session = ctx->meta->session_id;
	return 0;
}

#ifdef SF_REMOTE
#define OFF_BARRED 60000000000ull /* ns for which a thread or user is left out, at least */

static __always_inline bool off_given_up(u64 session)
{
	return session < *(volatile u64 *)&off_session;
}

/* Takes a slot to read a thread's memory in. 0: there is none, or this thread is left out. */
static __always_inline u32 off_enter(u64 session, u32 tid, u32 user)
{
	u64 now = bpf_ktime_get_ns();
	struct off_scratch *o;
	u32 slot = 0;

	for (u32 i = 0; i < OFF_READERS; i++) {
		o = off_scratch_of(OFF_SLOT_READ + i);
		if (!o)
			return 0;
		if (!*(volatile u64 *)&o->reader && now >= o->barred)
			slot = OFF_SLOT_READ + i;
		else if (o->read_tid == tid || (user && o->read_user == user))
			return 0;
	}
	o = off_scratch_of(slot);
	if (!slot || !o || __sync_val_compare_and_swap(&o->reader, 0, session))
		return 0;
	o->read_tid = tid;
	o->read_user = user;
	return slot;
}

static __always_inline void off_leave(struct off_scratch *o, u32 slot, u64 session)
{
	u32 blind = OFF_SLOT_ITER;
	struct sf_cache *empty = bpf_map_lookup_elem(&cache, &blind);

	if (off_given_up(session)) {
		o->barred = bpf_ktime_get_ns() + OFF_BARRED;
		/* Rules of tables that may have been evicted: off_last_blind has none. */
		if (empty)
			bpf_map_update_elem(&cache, &slot, empty, BPF_ANY);
	}
	__sync_val_compare_and_swap(&o->reader, session, 0);
}

static __always_inline void off_last_taken(struct sf_scratch *s, struct off_scratch *o, u32 slot,
					   struct off_task *t, u64 since, const struct off_block *b)
{
	if (off_pass == SF_OFF_PASS_STACKS) {
		if (t->since == since)
			off_leave_stack(s, o, slot, t);
	} else if (off_pass == SF_OFF_PASS_CUT) {
		off_cut_block(s, o, slot, t, since, b, 0);
	} else if (s->sample.stop != SF_STOP_NOT_LOADED || off_pass != SF_OFF_PASS_CLOSE) {
		if (off_close(t, since))
			off_count(s, o, slot, t, b, 0);
	}
}

/*
 * Prepares to read the stack of a thread, if this pass handles its block. Returns the slot; 0:
 * there is nothing to read. Not inlined, nor is off_last_end: their parts of the BPF stack are not
 * there while the stack is unwound.
 */
static __noinline u32 off_last_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct off_task *t = task ? off_task(task) : NULL;
	u64 since, addr = 0, session = ctx->meta->session_id;
	struct off_block b = {};
	struct off_scratch *o;
	struct sf_scratch *s;
	u32 slot;

	if (!task || !t || off_given_up(session))
		return 0;
	since = t->since;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	if (!off_still(t, since, addr, &b))
		return 0;
	slot = off_enter(session, KLOAD32(addr, struct task_struct, pid), task_owner(addr));
	s = scratch_of(slot);
	o = off_scratch_of(slot);
	if (!slot || !s || !o)
		return 0;
	if (off_stack_known(t, since)) {
		off_cut_known(s, o, slot, t, since, addr, &b);
		off_leave(o, slot, session);
		return 0;
	}
	o->since = since;
	o->block = b;
	remote_tid = o->read_tid;
	return slot;
}

/* Does with the stack that was read what the pass is for. */
static __noinline int off_last_end(struct bpf_iter__task *ctx, u32 slot)
{
	struct task_struct *task = ctx->task;
	struct off_task *t = task ? off_task(task) : NULL;
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	u64 session = ctx->meta->session_id;

	if (!s || !o)
		return 0;
	if (t && !off_given_up(session) && *(volatile u32 *)&remote_tid == o->read_tid)
		off_last_taken(s, o, slot, t, o->since, &o->block);
	off_leave(o, slot, session);
	return 0;
}

/*
 * Visits the open blocks and reads their stacks. off_pass is the purpose. Blocks that it leaves are
 * for off_last_blind.
 */
SEC("?iter.s/task")
int off_last(struct bpf_iter__task *ctx)
{
	u32 slot = off_last_begin(ctx);
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	struct task_struct *task = ctx->task;
	u64 addr = 0;

	if (!slot || !s || !o || !task)
		return 0;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	off_take(s, o, slot, task, addr);
	return off_last_end(ctx, slot);
}
#endif

/* Takes the kernel part of a sleeping thread whose memory cannot be read. */
static __always_inline void off_take_kernel_only(struct sf_scratch *s, struct off_scratch *o,
						 u32 slot, struct task_struct *task, u64 addr)
{
	long got;

	if (off_has_user_part(addr)) {
		s->sample.flags |= SF_SAMPLE_USER;
		s->sample.stop = SF_STOP_ASLEEP;
	}
	got = cfg_kernel ? bpf_get_task_stack(task, s->frames, SF_MAX_KERNEL * 8, 0) : 0;
	s->sample.n_kernel = got > 0 ? (u32)got / 8 : 0;
	o->user_hash = s->sample.stop;
	off_hash_kernel(s, o, slot, 0, s->sample.n_kernel);
	off_hash(s, o);
}

/*
 * off_last for kernels that refuse it (before 6.2), and for the threads that it left out: uses the
 * stack that was taken on leaving, or only the kernel part.
 */
SEC("?iter/task")
int off_last_blind(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct off_task *t = task ? off_task(task) : NULL;
	u32 slot = OFF_SLOT_ITER, how = 0;
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	struct off_block b = {};
	u64 since, addr = 0;

	if (!task || !t || !s || !o)
		return 0;
	since = t->since;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	if (!off_still(t, since, addr, &b))
		return 0;
	if (off_stack_known(t, since)) {
		off_cut_known(s, o, slot, t, since, addr, &b);
		return 0;
	}
	if (off_pass != SF_OFF_PASS_CUT && !off_close(t, since))
		return 0;
	sample_head(s, addr, 0, KLOAD32(addr, struct task_struct, tgid),
		    KLOAD32(addr, struct task_struct, pid));
	s->sample.type = SF_REC_STACK;
	s->sample.flags = SF_SAMPLE_IN_KERNEL;
	if (t->stack) {
		o->hash = t->stack;
		how = off_by_hash(t);
	} else {
		off_take_kernel_only(s, o, slot, task, addr);
	}
	if (off_pass != SF_OFF_PASS_CUT) {
		off_count(s, o, slot, t, &b, how);
		return 0;
	}
	off_cut_block(s, o, slot, t, since, &b, how);
	if (off_session) /* off_last may have more at the next cut */
		t->cut_at = 0;
	return 0;
}

/* cfg_off_running, at the end of the run: counts the threads that are on a CPU. */
SEC("?iter/task")
int off_still_running(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u64 addr = 0;

	if (!task || !task->on_cpu || !task->pid)
		return 0;
	bpf_probe_read_kernel(&addr, sizeof(addr), &ctx->task);
	if (off_task_wanted(addr))
		off_add_running(task, off_finish);
	return 0;
}

/*
 * Runs after a generation: lists the hashes of the stacks that threads still hold, SF_OFF_CHAIN + 2
 * per thread. Records are u64.
 */
SEC("?iter/task")
int off_held(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct off_task *t = task ? off_task(task) : NULL;
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
