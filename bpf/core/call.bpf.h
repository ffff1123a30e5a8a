/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Calls of the functions that `sfbpf slow` is asked about. Probes at the entries and the exits of
 * the functions run on_call. A call lasts from an entry to the exit of the same activation; calls
 * inside it are parts of it. Samples and blocks of a thread outside calls are not taken.
 *
 *   NONE --entry--> OPEN --exit of its activation--> NONE
 *                    OPEN --entry, exit of an inner activation--> OPEN
 *                    OPEN --entry of an activation that cannot be inside--> OPEN, one was abandoned
 *
 * An activation is known by the stack pointer at its entry. longjmp(3) and exceptions leave
 * activations without an exit. The next entry shows it: its stack pointer is not below, or the
 * return address of the open call is gone from the stack.
 *
 * In a Go program the call is the goroutine's, which changes threads and stacks: its state is found
 * by the address of its descriptor g, and stack pointers count from the upper end of its stack. The
 * thread's current g is in thread-local storage.
 *
 * What was taken in a call has its number. A call's own record (struct sf_call) follows when it
 * ends, if it was slow or if something was taken in it. The others are only counted.
 */
#ifndef SFBPF_CALL_BPF_H
#define SFBPF_CALL_BPF_H

#include "core/call_hist.h"
#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "core/regs.bpf.h"

struct call_task {
	u64 start; /* CLOCK_MONOTONIC ns; 0: no call is open */
	u64 sp;	   /* the stack pointer at the entry */
	u64 ra;	   /* the word there; 0: it tells nothing */
	u32 depth; /* SF_CALL_PAIR: entries inside the call that have no exit yet */
	u32 number, taken;
	u32 zero;
	u64 parked; /* when the goroutine began to wait; 0: it runs */
};

struct call_g {
	u64 g;
	u32 pid, zero;
};

/* Calls of goroutines. Shared by both objects. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct call_g);
	__type(value, struct call_task);
} calls_of_g SEC(".maps");

/* Shared by both objects. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call_task);
} calls SEC(".maps");

/*
 * Where Go keeps g on x86-64, from the thread pointer. In a program with C code that has
 * thread-local variables, it may be elsewhere: call_make compares it with the register at entries.
 */
#define CALL_G_AT	  (-8ull)
#define CALL_G_STACK_HIGH 8

/* The goroutine that the current task runs. */
static __always_inline struct call_g call_current_g(u64 task)
{
	struct call_g g = { .pid = KLOAD32(task, struct task_struct, tgid) };

	bpf_probe_read_user(&g.g, sizeof(g.g), (void *)(TASK_TP(task) + CALL_G_AT));
	return g;
}

/* The state of the current task's calls; NULL: it has none. */
static __always_inline struct call_task *call_state(struct task_struct *task)
{
	struct call_g g;

	if (!cfg_call_g)
		return bpf_task_storage_get(&calls, task, NULL, 0);
	g = call_current_g(bpf_get_current_task());
	return bpf_map_lookup_elem(&calls_of_g, &g);
}

/*
 * The number of the current task's call, in which something is about to be taken; 0: it is in none.
 * Not inlined: its part of the BPF stack is gone when the caller takes a stack.
 */
static __attribute__((noinline)) u32 call_takes(struct task_struct *task)
{
	struct call_task *c = call_state(task);

	if (!c || !c->start)
		return 0;
	c->taken = 1;
	return c->number;
}

/* ---- Probes ---- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sf_call_stats);
} call_stats SEC(".maps");

/* ns; written by user space: calls of this length or more are slow. */
__u64 calls_over = 0;

/* Another task's program may preempt this one on the CPU, so it adds to counters at once. */
static __always_inline void call_count(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

/* Whether an entry with this stack pointer is inside the open call. base: see call_base */
static __always_inline bool call_holds(const struct call_task *c, u64 sp, u64 base)
{
	u64 word = 0;

	if (sp >= c->sp)
		return false;
	if (!cfg_call_words || !c->ra)
		return true;
	return bpf_probe_read_user(&word, sizeof(word), (void *)(base + c->sp)) || word == c->ra;
}

static __always_inline void call_begins(struct call_task *c, struct sf_call_stats *st, u64 sp,
					u64 base, bool pair)
{
	if (c->start && pair) {
		c->depth++;
		return;
	}
	if (c->start && call_holds(c, sp, base))
		return;
	if (c->start)
		call_count(&st->abandoned, 1);
	c->number = __sync_fetch_and_add(&st->begun, 1) * cfg_ncpus + bpf_get_smp_processor_id() +
		    1;
	if (!c->number) /* after 2^32 calls */
		c->number = 1;
	c->taken = c->depth = 0;
	c->parked = 0;
	c->sp = sp;
	c->ra = 0;
	if (cfg_call_words)
		bpf_probe_read_user(&c->ra, sizeof(c->ra), (void *)(base + sp));
	c->start = bpf_ktime_get_ns();
}

static __always_inline void call_longest(struct sf_call_stats *st, u64 ns)
{
	u64 most = st->max_ns;

	if (ns > most) /* another task's program may have a longer one: it tries once more */
		if (__sync_val_compare_and_swap(&st->max_ns, most, ns) != most && ns > st->max_ns)
			st->max_ns = ns;
}

static __always_inline void call_send(const struct call_task *c, struct sf_call_stats *st, u64 end)
{
	u64 ids = bpf_get_current_pid_tgid();
	struct sf_call rec = { .type = SF_REC_CALL,
			       .number = c->number,
			       .start_ns = c->start,
			       .end_ns = end,
			       .pid = ids >> 32,
			       .tid = ids };
	u64 flags = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= cfg_wake_bytes
			    ? BPF_RB_FORCE_WAKEUP
			    : BPF_RB_NO_WAKEUP;

	bpf_get_current_comm(rec.comm, sizeof(rec.comm));
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), flags))
		call_count(&st->lost, 1);
}

static __always_inline void call_ends(struct call_task *c, struct sf_call_stats *st, u64 sp,
				      bool pair)
{
	u64 now = bpf_ktime_get_ns(), ns;

	if (!c) /* the call began before the run */
		return;
	if (!c->start) {
		call_count(&st->alone, 1);
		return;
	}
	if (pair && c->depth) {
		c->depth--;
		return;
	}
	if (!pair && sp < c->sp)
		return;
	ns = now - c->start;
	call_count(&st->ended, 1);
	call_count(&st->ns, ns);
	call_longest(st, ns);
	call_count(&st->hist[INDEX(call_hist_place(ns), SF_CALL_HIST)], 1);
	if (c->taken || ns >= calls_over)
		call_send(c, st, now);
	c->start = 0;
}

/* ---- Hits ---- */

static const struct call_task call_none;

/* The state of the current task's calls, made if there is none; NULL: no room. */
static __always_inline struct call_task *call_make(u64 g)
{
	struct call_g key;

	if (!cfg_call_g)
		return bpf_task_storage_get(&calls, bpf_get_current_task_btf(), NULL,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	key = call_current_g(bpf_get_current_task());
	if (key.g != g)
		return NULL;
	bpf_map_update_elem(&calls_of_g, &key, &call_none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&calls_of_g, &key);
}

/* What stack pointers count from: 0, or the upper end of the goroutine's stack. */
static __always_inline u64 call_base(u64 g)
{
	u64 high = 0;

	if (cfg_call_g)
		bpf_probe_read_user(&high, sizeof(high), (void *)(g + CALL_G_STACK_HIGH));
	return high;
}

/* A hit of a probe of calls. ctx: the user registers */
static __always_inline void call_hit(void *ctx, struct sf_call_stats *st, u32 site)
{
	u64 sp = 0, g = 0, base;
	struct call_task *c;

	bpf_probe_read_kernel(&sp, sizeof(sp), (void *)((u64)ctx + REGS_SP_AT));
	if (cfg_call_g)
		bpf_probe_read_kernel(&g, sizeof(g), (void *)((u64)ctx + REGS_G_AT));
	base = call_base(g);
	sp -= base;
	if (site == SF_CALL_ENTRY || site == SF_CALL_PAIR_ENTRY) {
		c = call_make(g);
		if (c)
			call_begins(c, st, sp, base, site == SF_CALL_PAIR_ENTRY);
		else
			call_count(&st->no_room, 1);
		return;
	}
	c = call_state(bpf_get_current_task_btf());
	if (site != SF_CALL_PARK)
		call_ends(c, st, sp, site == SF_CALL_PAIR_EXIT);
	else if (c && c->start)
		c->parked = bpf_ktime_get_ns();
}

/*
 * The weight of the sample of a goroutine that has waited and runs again (struct sf_sample); 0: it
 * is in no call.
 */
static __always_inline u64 call_woken(void)
{
	struct call_task *c = call_state(bpf_get_current_task_btf());
	u64 us;

	if (!c || !c->start || !c->parked)
		return 0;
	us = (bpf_ktime_get_ns() - c->parked) / 1000;
	c->parked = 0;
	c->taken = 1;
	return us ? AT_MOST(us, 0x7fffffff) << 32 | c->number : 0;
}

#endif
