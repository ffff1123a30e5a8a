/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Off-CPU: adds a block of known length and stack to the counts. If the maps have no room for it,
 * the block is sampled instead.
 */
#ifndef SFBPF_OFF_COUNT_BPF_H
#define SFBPF_OFF_COUNT_BPF_H

#include "core/fold.bpf.h"
#include "core/maps.bpf.h"
#include "offcpu/off_detail.bpf.h"
#include "offcpu/off_scratch.bpf.h"
#include "offcpu/off_stack.bpf.h"
#include "core/sample.bpf.h"
#include "core/unwind.bpf.h"
#include "offcpu/off_lock.bpf.h"

const volatile bool cfg_off_wakers = false, cfg_off_hist = false, cfg_off_threads = false;
const volatile bool cfg_off_running = false; /* measure the threads' running time */
/* The wakers' wakers too: then the wakers of all threads are recorded, whatever the filters. */
const volatile bool cfg_off_chains = false;
/* ns of blocked time per sample, once the maps are full */
const volatile __u64 cfg_off_period = 1000000;

__u64 off_sampled_ns = 0; /* ns that samples represent; all other time is counted */
__u64 off_lost_ns = 0;	  /* ns of samples that did not fit the ring */
__u32 off_used = 0;	  /* entries created in off_counts, in all generations */

/* Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct sf_off_count);
} off_counts SEC(".maps");

/* How a block is added. The low byte is the state (enum sf_off_state). */
#define OFF_STATE     0xff
#define OFF_BY_HASH   0x100 /* the frames were sent earlier; only the hash is known */
#define OFF_OPEN      0x200 /* part of a block that is still open */
/* OFF_BY_HASH, but user space keeps the frames for this block only, so it can only be sampled */
#define OFF_TRANSIENT 0x400
#define OFF_PENDING   0x800 /* frames may be pending (off_scratch.pending) */

static __always_inline void off_lose(u32 cause)
{
	struct sf_cpu_stats *st = stats_here();

	if (st && cause < SF_LOST_MAX)
		__sync_fetch_and_add(&st->lost[cause], 1);
}

/* Appends the wakers and the lock to the frames. */
static __always_inline void off_append_more(struct sf_scratch *s, const struct off_scratch *o)
{
	u32 n = (u32)s->sample.n_user + s->sample.n_kernel;
	u64 *after;

	if (n > SF_MAX_USER + SF_MAX_KERNEL)
		return;
	after = OPAQUE(
		&s->frames[AT_MOST(n, SF_MAX_USER + SF_MAX_KERNEL)]); /* see off_hash_block */
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		after[i] = o->wakers[i];
	after[SF_OFF_CHAIN] = o->lock.addr;
	after[SF_OFF_CHAIN + 1] = *(u64 *)&o->lock.owner;
}

/* Makes the record one without frames, which refers to them by hash. */
static __always_inline void off_head_by_hash(struct sf_scratch *s)
{
	s->sample.flags = SF_SAMPLE_BY_HASH;
	s->sample.n_user = s->sample.n_kernel = 0;
	s->sample.stop = 0;
}

/*
 * One sample per cfg_off_period of the thread's blocked time. Its sum is correct on average,
 * whatever the lengths of the blocks.
 */
static __always_inline void off_sample(struct sf_scratch *s, struct off_scratch *o, u32 how, u64 ns)
{
	struct sf_cpu_stats *st = stats_here();
	u64 n;

	if (!o->acc)
		o->acc = bpf_get_prandom_u32() % cfg_off_period;
	o->acc += ns;
	n = o->acc / cfg_off_period;
	if (!n)
		return;
	o->acc -= n * cfg_off_period;
	if (how & OFF_BY_HASH)
		off_head_by_hash(s);
	s->sample.type = SF_REC_BLOCK;
	s->sample.weight = n * cfg_off_period;
	s->sample.hash = o->hash;
	s->sample.state = how & OFF_STATE;
	off_append_more(s, o);
	if (st)
		__sync_fetch_and_add(&st->off_taken, 1);
	if (record_send(s, SF_OFF_MORE)) {
		off_lose(SF_LOST_RING_FULL);
		__sync_fetch_and_add(&off_lost_ns, s->sample.weight);
	} else {
		__sync_fetch_and_add(&off_sampled_ns, s->sample.weight);
	}
}

static __always_inline struct sf_off_count *off_new_count(struct sf_scratch *s,
							  struct off_scratch *o, u64 key, u32 state,
							  u32 generation)
{
	struct sf_off_count *fresh = &o->fresh;

	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->stack = o->hash;
	for (u32 i = 0; i < SF_OFF_CHAIN; i++)
		fresh->wakers[i] = o->wakers[i];
	fresh->lock = o->lock;
	fresh->generation = generation;
	fresh->pid = s->sample.pid;
	fresh->state = state;
	__builtin_memcpy(fresh->comm, s->sample.comm, SF_COMM);
	if (!bpf_map_update_elem(&off_counts, &key, fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&off_used, 1);
	return bpf_map_lookup_elem(&off_counts, &key);
}

static __always_inline void off_count_up(struct sf_off_count *c, u64 ns, u64 count, u64 each)
{
	struct sf_cpu_stats *st = stats_here();
	u64 max = c->max_ns;

	__sync_fetch_and_add(&c->sum_ns, ns);
	__sync_fetch_and_add(&c->count, count);
	if (each > max)
		__sync_val_compare_and_swap(&c->max_ns, max, each);
	if (st)
		__sync_fetch_and_add(&st->off_taken, count);
}

static __always_inline u64 off_count_key(const struct sf_scratch *s, const struct off_scratch *o,
					 u32 state, u32 generation)
{
	u64 key = o->hash;

	if (cfg_off_wakers)
		for (u32 i = 0; i < (cfg_off_chains ? SF_OFF_CHAIN : 1); i++)
			FOLD(key, o->wakers[i], FOLD_MUL1);
	if (cfg_off_locks) {
		FOLD(key, o->lock.addr, FOLD_MUL1);
		FOLD(key, *(u64 *)&o->lock.owner, FOLD_MUL2);
	}
	FOLD(key, (u64)generation << 8 | state, FOLD_MUL2);
	/* Unlike other hashes, it does not depend on the thread. */
	if (o->hash == SF_STACK_UNKNOWN) {
		FOLD(key, s->sample.pid, FOLD_MUL1);
		FOLD(key, *(u64 *)&s->sample.comm[0], FOLD_MUL2);
		FOLD(key, *(u64 *)&s->sample.comm[8], FOLD_MUL1);
	}
	return key;
}

/*
 * Adds o->count blocks, ns long in total, to the count for the scratch's stack, its wakers, its
 * lock and the state. how: the state, and OFF_*. Returns 1 if nothing was done because the stack
 * must be sent and its frames are pending.
 */
__noinline int off_add(u32 slot, u32 how, u64 ns)
{
	struct sf_scratch *s = scratch_of(slot);
	struct off_scratch *o = off_scratch_of(slot);
	struct sf_off_count *c;
	u32 state = how & OFF_STATE, generation = off_generation;
	u64 key, each;

	if (!s || !o)
		return 0;
	each = o->count > 1 ? ns / o->count : ns;
	key = off_count_key(s, o, state, generation);
	c = bpf_map_lookup_elem(&off_counts, &key);
	if (o->pending && (!c || !c->sent))
		return 1;
	if (cfg_off_threads)
		off_add_thread(&s->sample, state, ns, each, o->count);
	if (!c && !(how & OFF_TRANSIENT))
		c = off_new_count(s, o, key, state, generation);
	if (c && !c->sent) {
		int err = how & OFF_BY_HASH ? OFF_SENT : off_send_stack(slot);

		if (err == OFF_SENT)
			c->sent = 1;
		else if (err == OFF_FULL && !c->sum_ns)
			c = NULL;
	}
	if (!c) {
		off_sample(s, o, how, ns);
		return 0;
	}
	/* The part of an open block adds time, but no block. */
	off_count_up(c, ns, how & OFF_OPEN ? 0 : o->count, each);
	if (cfg_off_hist)
		off_add_hist(key, each, o->count);
	return 0;
}

/* Calls off_add; fetches pending frames if they are needed. */
static __always_inline void off_add_block(u32 slot, u32 how, u64 ns)
{
	if (off_add(slot, how, ns) && (how & OFF_PENDING)) {
		off_frames(slot);
		off_add(slot, how, ns);
	}
}

#endif
