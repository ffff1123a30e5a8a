/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: counters other than the sums by stack: histograms of block lengths, totals per thread,
 * and the cost of the programs.
 */
#ifndef SFBPF_OFF_DETAIL_BPF_H
#define SFBPF_OFF_DETAIL_BPF_H

#include "core/maps.bpf.h"
#include "offcpu/off_clock.bpf.h"
#include "border/sfbpf_shared.h"
#include "core/unwind.bpf.h"

#define OFF_COST_EVERY 64 /* one switch in this many is timed; a power of two */

__u64 off_threads_full = 0; /* blocks of threads that did not fit off_threads */

/* Same key as off_counts. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct sf_off_hist);
} off_hists SEC(".maps");

/* Keyed by thread id. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sf_off_thread);
} off_threads SEC(".maps");

static __always_inline u32 off_hist_slot(u64 ns)
{
	u64 us = ns / 1000;
	u32 slot = 0;

	if (us >> 32)
		return SF_OFF_HIST - 1;
	if (us >> 16) {
		slot += 16;
		us >>= 16;
	}
	if (us >> 8) {
		slot += 8;
		us >>= 8;
	}
	if (us >> 4) {
		slot += 4;
		us >>= 4;
	}
	if (us >> 2) {
		slot += 2;
		us >>= 2;
	}
	slot += us >> 1 ? 2 : us;
	return slot < SF_OFF_HIST ? slot : SF_OFF_HIST - 1;
}

static const struct sf_off_hist off_no_hist;

/* Adds `count` blocks of `each` ns. */
static __always_inline void off_add_hist(u64 key, u64 each, u64 count)
{
	struct sf_off_hist *h = bpf_map_lookup_elem(&off_hists, &key);

	if (!h) {
		bpf_map_update_elem(&off_hists, &key, &off_no_hist, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&off_hists, &key);
	}
	if (h)
		__sync_fetch_and_add(&h->slot[INDEX(off_hist_slot(each), SF_OFF_HIST)], count);
}

static const struct sf_off_thread off_no_thread; /* not on the stack, which is small */

/* The entry of a thread; NULL: there is no room. */
static __always_inline struct sf_off_thread *off_thread(u32 tid, u32 pid, const char *comm)
{
	struct sf_off_thread *t = bpf_map_lookup_elem(&off_threads, &tid);

	if (!t) {
		bpf_map_update_elem(&off_threads, &tid, &off_no_thread, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&off_threads, &tid);
	}
	if (!t) {
		__sync_fetch_and_add(&off_threads_full, 1);
		return NULL;
	}
	t->pid = pid;
	/* The newest name: sfbpf's child has sfbpf's name until it executes the command. */
	__builtin_memcpy(t->comm, comm, SF_COMM);
	return t;
}

/* Adds the time that a thread has run, from its arrival on the CPU to `until`, within the run. */
static __always_inline void off_add_running(struct task_struct *task, u64 until)
{
	u64 from = off_arrival(task);
	struct sf_off_thread *t;

	if (!off_begin)
		return;
	if (from < off_begin)
		from = off_begin;
	if (off_finish && until > off_finish)
		until = off_finish;
	if (until <= from)
		return;
	t = off_thread(task->pid, task->tgid, task->comm);
	if (t)
		__sync_fetch_and_add(&t->ran_ns, until - from);
}

/* Adds `count` blocks of the record's thread: `each` ns long, ns in total. */
static __always_inline void off_add_thread(const struct sf_sample *rec, u32 state, u64 ns, u64 each,
					   u64 count)
{
	struct sf_off_thread *t = off_thread(rec->tid, rec->pid, rec->comm);

	if (!t || state >= SF_OFF_STATES)
		return;
	/*
	 * Not concurrent: only the thread itself adds here, or the iterator when the thread no
	 * longer can.
	 */
	t->ns[state] += ns;
	t->count += count;
	if (each > t->max_ns)
		t->max_ns = each;
}

/*
 * One run in `every` (a power of two) is timed and represents the others, with cfg_want_cost.
 * Returns the start time of this run, or 0 if it is not timed. number: that of this run.
 */
static __always_inline u64 off_cost_begin(u64 number, u32 every)
{
	return cfg_want_cost && !(number & (every - 1)) ? bpf_ktime_get_ns() : 0;
}

static __always_inline void off_cost_end(struct sf_cpu_stats *st, u64 began, u32 every)
{
	if (began && st)
		__sync_fetch_and_add(&st->run_ns, (bpf_ktime_get_ns() - began) * every);
}

#endif
