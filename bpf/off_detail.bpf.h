/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: what is counted beside the sums by stack: lengths of blocks, threads, and what all of it costs. each: one block of those that ns is of. */
#ifndef SFBPF_OFF_DETAIL_BPF_H
#define SFBPF_OFF_DETAIL_BPF_H

#include "unwind.bpf.h"

#define OFF_COST_EVERY 64	/* a power of two: of so many switches one is timed */

__u64 off_threads_full = 0;		/* blocks of threads for which off_threads had no room */

/* Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct sf_off_hist);
} off_hists SEC(".maps");

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
	if (us >> 16) { slot += 16; us >>= 16; }
	if (us >> 8) { slot += 8; us >>= 8; }
	if (us >> 4) { slot += 4; us >>= 4; }
	if (us >> 2) { slot += 2; us >>= 2; }
	slot += us >> 1 ? 2 : us;
	return slot < SF_OFF_HIST ? slot : SF_OFF_HIST - 1;
}

static const struct sf_off_hist off_no_hist;

static __always_inline void off_add_hist(u64 key, u64 ns, u64 times)
{
	struct sf_off_hist *h = bpf_map_lookup_elem(&off_hists, &key);

	if (!h) {
		bpf_map_update_elem(&off_hists, &key, &off_no_hist, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&off_hists, &key);
	}
	if (h)
		__sync_fetch_and_add(&h->slot[off_hist_slot(ns) & (SF_OFF_HIST - 1)], times);
}

static __always_inline void off_add_thread(const struct sf_scratch *s, u32 state, u64 ns, u64 each)
{
	u32 tid = s->sample.tid;
	struct sf_off_thread fresh = {}, *t = bpf_map_lookup_elem(&off_threads, &tid);

	if (!t) {
		fresh.pid = s->sample.pid;
		__builtin_memcpy(fresh.comm, s->sample.comm, SF_COMM);
		bpf_map_update_elem(&off_threads, &tid, &fresh, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&off_threads, &tid);
	}
	if (!t)
		__sync_fetch_and_add(&off_threads_full, 1);
	if (!t || state >= SF_OFF_STATES)
		return;
	/* Only the thread itself adds here, or the iterator once the thread cannot any more. */
	__builtin_memcpy(t->comm, s->sample.comm, SF_COMM);	/* its last one: a command was our child before it began */
	t->ns[state] += ns;
	t->count += s->off_times;
	if (each > t->max_ns)
		t->max_ns = each;
}

/* With cfg_want_cost: when a program began that stands for `times` of its kind; 0: it is not timed. */
static __always_inline u64 off_cost_begin(u64 number, u32 times)
{
	return cfg_want_cost && !(number & (times - 1)) ? bpf_ktime_get_ns() : 0;
}

static __always_inline void off_cost_end(struct sf_cpu_stats *st, u64 began, u32 times)
{
	if (began && st)
		__sync_fetch_and_add(&st->run_ns, (bpf_ktime_get_ns() - began) * times);
}

#endif
