/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Tracepoints and probes as events: which hits are sampled, and what a sample counts for. One
 * program is attached at all places of all events. Its cookie is the number of the place, which has
 * a description in event_sites. User space fills all maps here before it attaches.
 */
#ifndef SFBPF_EVENT_BPF_H
#define SFBPF_EVENT_BPF_H

#include "core/maps.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: the number of places */
	__type(key, u32);
	__type(value, struct sf_event_site);
} event_sites SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SF_EVENTS);
	__type(key, u32);
	__type(value, struct sf_event_filter);
} event_filters SEC(".maps");

/* Hits of each event on this CPU, for cfg_event_period */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SF_EVENTS);
	__type(key, u32);
	__type(value, u64);
} event_hits SEC(".maps");

/* Set by user space: hits are no samples now */
__u32 events_paused = 0;

/* The low `size` bytes of v as a number. */
static __always_inline u64 cut_to(u64 v, u32 size, u32 is_signed)
{
	u32 shift = (64 - 8 * size) & 63;

	v <<= shift;
	return is_signed ? (u64)((s64)v >> shift) : v >> shift;
}

static __always_inline bool test_holds(u64 record, const struct sf_event_test *t)
{
	u64 at = record + t->at, v = 0;
	u32 place = 0;

	if (t->flags & SF_TEST_DYNAMIC) {
		bpf_probe_read_kernel(&place, sizeof(place), (void *)at);
		at = record + (place & 0xffff) + t->skip;
	}
	bpf_probe_read_kernel(&v, sizeof(v), (void *)at);
	v = cut_to(v, t->size, t->flags & SF_TEST_SIGNED);
	switch (t->op) {
	case SF_TEST_EQ:
		return v == t->value;
	case SF_TEST_AND:
		return v & t->value;
	case SF_TEST_LESS:
		return t->flags & SF_TEST_SIGNED ? (s64)v < (s64)t->value : v < t->value;
	default:
		return t->flags & SF_TEST_SIGNED ? (s64)v > (s64)t->value : v > t->value;
	}
}

/*
 * Whether the record of a tracepoint passes the filter of its event. Not inlined, as that would add
 * its states to those of the walk.
 */
static __attribute__((noinline)) int event_passes(u64 record, u32 event)
{
	const struct sf_event_filter *f = bpf_map_lookup_elem(&event_filters, &event);
	u32 next = 0, i;

	if (!f)
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_EVENT_TESTS; i++) {
		const struct sf_event_test *t = &f->tests[INDEX(i, SF_EVENT_TESTS)];

		if (i != next)
			continue;
		next = test_holds(record, t) ? t->yes : t->no;
	}
	return next == SF_TEST_PASS;
}

/* What a hit counts for; 0: it is no sample. ctx: user registers, or the record of a tracepoint. */
static __always_inline u64 site_value(u64 ctx, const struct sf_event_site *site)
{
	u64 v = 0, base = 0, index = 0;

	if (site->value == SF_VALUE_ONE)
		return 1;
	if (site->value == SF_VALUE_CONST) {
		v = site->add;
	} else if (site->value == SF_VALUE_HERE) {
		bpf_probe_read_kernel(&v, sizeof(v), (void *)(ctx + site->at));
	} else {
		bpf_probe_read_kernel(&base, sizeof(base), (void *)(ctx + site->at));
		if (site->scale)
			bpf_probe_read_kernel(&index, sizeof(index), (void *)(ctx + site->index));
		base += site->add + index * site->scale;
		if (bpf_probe_read_user(&v, AT_MOST(site->size, sizeof(v)), (void *)base))
			return 0;
	}
	v = cut_to(v, site->size, site->is_signed);
	return site->is_signed && (s64)v < 0 ? 0 : v;
}

/* Whether this hit is the one in cfg_event_period that is sampled. */
static __always_inline bool period_over(u32 event)
{
	u64 *hits;

	if (cfg_event_period <= 1)
		return true;
	hits = bpf_map_lookup_elem(&event_hits, &event);
	if (!hits || ++*hits < cfg_event_period)
		return false;
	*hits = 0;
	return true;
}

/*
 * Takes a scratch slot. A program of a probe can be preempted, so another task's program may find
 * the slot of its CPU taken: each CPU has SF_EVENT_SLOTS. NULL: all are taken.
 */
static __always_inline struct sf_scratch *event_slot(u32 cpu, u32 *ret_slot)
{
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < SF_EVENT_SLOTS; i++) {
		u32 slot = (2 + i) * cfg_ncpus + cpu;
		struct sf_scratch *s = scratch_of(slot);

		if (s && !__sync_lock_test_and_set(&s->busy, 1)) {
			*ret_slot = slot;
			return s;
		}
	}
	return NULL;
}

#endif
