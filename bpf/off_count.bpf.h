/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: a block of known length and stack is added to the counts or, where these have no room, sampled. */
#ifndef SFBPF_OFF_COUNT_BPF_H
#define SFBPF_OFF_COUNT_BPF_H

#include "off_stack.bpf.h"
#include "off_detail.bpf.h"

const volatile bool cfg_off_wakers = false, cfg_off_hist = false, cfg_off_threads = false;
const volatile bool cfg_off_chains = false;	/* the wakers' wakers too: then those of all threads are noted, whatever the filters */
const volatile __u64 cfg_off_period = 1000000;	/* ns of blocked time a sample, once the maps are full */

__u64 off_sampled_ns = 0;		/* time that samples stand for, the rest is counted */
__u32 off_used = 0;			/* entries made in off_counts, in all generations */

static __always_inline void off_lose(u32 cause)
{
	struct sf_cpu_stats *st = stats_here();

	if (st && cause < SF_LOST_MAX)
		__sync_fetch_and_add(&st->lost[cause], 1);
}

/* Behind the frames. */
static __always_inline void off_put_wakers(struct sf_scratch *s)
{
	u32 n = (u32)s->sample.n_user + s->sample.n_kernel;
	u64 *behind;

	asm volatile("" : "+r"(n));	/* see vma_at */
	if (n > SF_MAX_USER + SF_MAX_KERNEL)
		return;
	behind = &s->frames[n];
	asm volatile("" : "+r"(behind));	/* see off_hash_block */
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		behind[i] = s->off_wakers[i];
}

/* How a block is added, beside its state: */
#define OFF_BY_HASH 0x100	/* the stack is gone, and its frames were sent before; only its hash is left */
#define OFF_OPEN 0x200		/* a part of a block that is not over */
#define OFF_UNKEPT 0x400	/* OFF_BY_HASH, and nobody keeps the frames when the block is over: it cannot be counted by them */
#define OFF_LAZY 0x800		/* see off_frames */

/* The frames are not there: a sample that names them. */
static __always_inline void off_head_by_hash(struct sf_scratch *s)
{
	s->sample.type = SF_REC_STACK;
	s->sample.flags = SF_SAMPLE_BY_HASH;
	s->sample.time_ns = s->off_hash;
	s->sample.n_user = s->sample.n_kernel = 0;
	s->sample.stop = 0;
}

/*
 * The maps are full: one sample each period of the thread's blocked time, so that the samples' sum is right on
 * average whatever the blocks' lengths.
 */
static __always_inline void off_sample(struct sf_scratch *s, u32 how, u64 ns)
{
	struct sf_cpu_stats *st = stats_here();
	u64 n;

	if (!s->off_acc)
		s->off_acc = bpf_get_prandom_u32() % cfg_off_period;
	s->off_acc += ns;
	n = s->off_acc / cfg_off_period;
	if (!n)
		return;
	s->off_acc -= n * cfg_off_period;
	if (how & OFF_BY_HASH)
		off_head_by_hash(s);
	s->sample.weight = n * cfg_off_period;
	s->sample.state = how & 0xff;
	off_put_wakers(s);
	if (st)
		__sync_fetch_and_add(&st->off_taken, 1);
	if (off_output(s, SF_OFF_CHAIN)) {
		off_lose(SF_LOST_RING_FULL);
		__sync_fetch_and_add(&off_lost_ns, s->sample.weight);
	} else {
		__sync_fetch_and_add(&off_sampled_ns, s->sample.weight);
	}
}

static __always_inline struct sf_off_count *off_new_count(struct sf_scratch *s, u64 key, u32 state, u32 generation)
{
	struct sf_off_count *fresh = &s->off_fresh;

	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->stack = s->off_hash;
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		fresh->wakers[i] = s->off_wakers[i];
	fresh->generation = generation;
	fresh->pid = s->sample.pid;
	fresh->state = state;
	__builtin_memcpy(fresh->comm, s->sample.comm, SF_COMM);
	if (!bpf_map_update_elem(&off_counts, &key, fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&off_used, 1);
	return bpf_map_lookup_elem(&off_counts, &key);
}

/*
 * Adds a block to what the scratch's stack, waker and the state have in common. how: the state, and OFF_*. 1: nothing was done, as
 * the stack's frames are missing (OFF_LAZY).
 */
__noinline int off_add(u32 slot, u32 how, u64 ns)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_off_count *c;
	u32 state = how & 0xff, over = !(how & OFF_OPEN);	/* the part of an open block is none that ended */
	u32 generation = off_generation;
	u64 key, each;

	if (!s)
		return 0;
	s->off_key = 0;
	each = s->off_times > 1 ? ns / s->off_times : ns;
	key = s->off_hash;
	if (cfg_off_wakers)
		for (u32 i = 0; i < (cfg_off_chains ? SF_OFF_CHAIN : 1); i++)
			FOLD(key, s->off_wakers[i], FOLD_MUL1);
	FOLD(key, (u64)generation << 8 | state, FOLD_MUL2);
	if (s->off_hash == SF_STACK_UNKNOWN) {	/* which no task has a hash of its own for */
		FOLD(key, s->sample.pid, FOLD_MUL1);
		FOLD(key, *(u64 *)&s->sample.comm[0], FOLD_MUL2);
		FOLD(key, *(u64 *)&s->sample.comm[8], FOLD_MUL1);
	}
	c = bpf_map_lookup_elem(&off_counts, &key);
	if (s->off_lazy && (!c || !c->sent))
		return 1;
	if (cfg_off_threads)
		off_add_thread(s, state, ns, each);
	if (!c && !(how & OFF_UNKEPT))
		c = off_new_count(s, key, state, generation);
	if (c && !c->sent) {
		int err = how & OFF_BY_HASH ? 0 : off_send_stack(slot);

		if (!err)
			c->sent = 1;
		else if (err == OFF_FULL && !c->sum_ns)
			c = NULL;
	}
	if (!c) {
		off_sample(s, how, ns);
		return 0;
	}
	off_count_up(c, ns, over ? s->off_times : 0, each);
	if (c->sent)
		s->off_key = key;
	if (cfg_off_hist)
		off_add_hist(key, each, s->off_times);
	return 0;
}

#endif
