/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: counts by stack, and blocks that are added up beside what a thread remembers of a stack until they are handed in there. Threads
 * block at the same place again and again: to look up the count each time costs more than all else that is done with it.
 */
#ifndef SFBPF_OFF_SUM_BPF_H
#define SFBPF_OFF_SUM_BPF_H

#include "maps.bpf.h"

const volatile bool cfg_off_sums = false;	/* blocks are added up first */
__u32 off_generation = 0;		/* written by user space */
__u64 off_lost_ns = 0;			/* time that nothing stands for */

/* Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct sf_off_count);
} off_counts SEC(".maps");

/*
 * Blocks of one thread with all in common that off_counts tells apart. The thread alone adds to them, and begins another kind when there is none.
 * Whoever has made kind OFF_SUM_BUSY hands them in. What the thread adds at just that moment stays for the next time.
 */
struct off_sum {
	u64 kind;		/* see again_kind, or: */
#define OFF_SUM_NONE 0
#define OFF_SUM_BUSY 1
	u64 key;		/* of their count; while kind is OFF_SUM_NONE: of what is left */
	u64 sum_ns, count;
	u64 max_ns;
};

static __always_inline void off_count_up(struct sf_off_count *c, u64 ns, u64 times, u64 longest)
{
	struct sf_cpu_stats *st = stats_here();
	u64 max = c->max_ns;

	__sync_fetch_and_add(&c->sum_ns, ns);
	__sync_fetch_and_add(&c->count, times);
	if (longest > max)
		__sync_val_compare_and_swap(&c->max_ns, max, longest);
	if (st)
		__sync_fetch_and_add(&st->off_taken, times);
}

static __always_inline bool off_sum_add(struct off_sum *sum, u64 kind, u64 ns, u64 times)
{
	u64 each = times > 1 ? ns / times : ns;

	if (!kind || sum->kind != kind)
		return false;
	__sync_fetch_and_add(&sum->sum_ns, ns);
	__sync_fetch_and_add(&sum->count, times);
	if (each > sum->max_ns)
		sum->max_ns = each;
	return true;
}

static __always_inline void off_sum_move(struct off_sum *sum)
{
	u64 key = sum->key, ns = __sync_lock_test_and_set(&sum->sum_ns, 0), times = __sync_lock_test_and_set(&sum->count, 0);
	struct sf_off_count *c;

	if (!ns && !times)
		return;
	c = bpf_map_lookup_elem(&off_counts, &key);
	if (c)
		off_count_up(c, ns, times, sum->max_ns);
	else		/* its generation is over */
		__sync_fetch_and_add(&off_lost_ns, ns);
}

/* By whomever. false: somebody else is at it. */
static __always_inline bool off_sum_hand_in(struct off_sum *sum)
{
	if (__sync_lock_test_and_set(&sum->kind, OFF_SUM_BUSY) == OFF_SUM_BUSY)
		return false;
	off_sum_move(sum);
	*(volatile u64 *)&sum->kind = OFF_SUM_NONE;
	return true;
}

/* By the thread: from now on blocks of this kind are added up, if no others are. */
static __always_inline void off_sum_begin(struct off_sum *sum, u64 kind, u64 key)
{
	if (!kind || __sync_val_compare_and_swap(&sum->kind, OFF_SUM_NONE, OFF_SUM_BUSY) != OFF_SUM_NONE)
		return;
	off_sum_move(sum);
	sum->key = key;
	sum->max_ns = 0;
	*(volatile u64 *)&sum->kind = kind;
}

#endif
