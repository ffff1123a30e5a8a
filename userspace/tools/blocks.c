/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/vec.h"

#define COST_LOW  0.003 /* all blocks are measured again below it */
#define COST_NS	  (200 * NUM_MS)
#define THIN_MOST (256 * OFFCPU_THIN_MIN) /* switches cost more than blocks beyond it */

#define TRACING_FRAMES 12 /* maximum number of frames of the tracepoint and of BPF */

static bool is_tracing(const char *name)
{
	return !strncmp(name, "bpf_trace_run", 13) || !strncmp(name, "__bpf_trace_", 12) ||
	       !strncmp(name, "__traceiter_", 12);
}

/*
 * The record without the frames of the tracepoint in which the stack was taken. Stacks read by the
 * iterator have no such frames. Neither kind contains the scheduler's functions.
 */
static const struct sf_sample *without_tracing(struct blocks *b, const struct sf_sample *rec)
{
	const uint64_t *kernel = rec->frames + rec->n_user;
	uint16_t drop = 0;

	for (uint16_t i = 0; i < rec->n_kernel && i < TRACING_FRAMES; i++)
		if (is_tracing(symbolizer_name(b->session->symbols,
					       symbolizer_kernel(b->session->symbols, kernel[i]))))
			drop = (uint16_t)(i + 1);
	if (!drop)
		return rec;
	memcpy(b->buf, rec, sizeof(*rec) + 8ul * rec->n_user);
	b->buf->n_kernel = (uint16_t)(rec->n_kernel - drop);
	memcpy(b->buf->frames + rec->n_user, kernel + drop, 8ul * b->buf->n_kernel);
	return b->buf;
}

/*
 * Starts at the end of the chain, because each stack refers to its waker's stack. create: adds new
 * stacks; otherwise a new stack is -ENOENT.
 */
static int add_wakers(struct blocks *b, const struct offcpu_block *blk, bool create, uint32_t *ret)
{
	const struct sf_sample *chain[SF_OFF_CHAIN] = { blk->waker };
	struct profile_times once = { .count = 1 };
	int n = 0, err = 0;
	size_t at;

	for (int i = 1; i < SF_OFF_CHAIN; i++)
		chain[i] = blk->before[i - 1];
	while (n < SF_OFF_CHAIN && chain[n])
		n++;
	while (n-- > 0 && !err) {
		const struct sf_sample *rec = without_tracing(b, chain[n]);

		if (create)
			err = profile_add_times(b->wakers, rec, &once, &at);
		else if (!profile_has(b->wakers, rec, &once, &at))
			err = -ENOENT;
		if (!err)
			once.waker = (uint32_t)at + 1;
	}
	*ret = once.waker;
	return err;
}

/*
 * Whether a block with a new stack becomes a sample once the profile is full. If so, t->weight
 * becomes the time that it represents.
 */
static bool sample(struct blocks *b, struct profile_times *t)
{
	uint64_t n;

	if (!b->acc_ns)
		b->acc_ns = (uint64_t)random() % b->period_ns;
	b->acc_ns += t->weight;
	n = b->acc_ns / b->period_ns;
	if (!n)
		return false;
	b->acc_ns -= n * b->period_ns;
	t->weight = n * b->period_ns;
	if (profile_count(b->profile) - b->max_stacks >=
	    b->max_stacks / 4 * (size_t)(b->doubled + 1)) {
		b->doubled++;
		b->period_ns *= 2;
	}
	return true;
}

/* Collects what naming the stack needs while its process lives. Such frames carry no epoch. */
static void see(struct blocks *b, const struct sf_sample *stack)
{
	uint64_t now = session_now();

	symbolizer_see(b->session->symbols, stack->frames, stack->n_user, stack->pid, now, now);
}

/* 0; 1: its stack is new, and it was skipped; -errno. */
static int add_block(struct blocks *b, const struct offcpu_block *blk, bool is_sample,
		     size_t *ret_at)
{
	struct profile_times t = { .count = blk->count, .weight = blk->ns, .state = blk->state };
	struct profile *p = b->profile;
	int err = 0;

	if (profile_count(p) >= b->max_stacks) {
		if ((b->wakers && add_wakers(b, blk, false, &t.waker)) ||
		    !profile_has(p, without_tracing(b, blk->stack), &t, ret_at)) {
			/* The kernel has counted blocks that are samples already. */
			b->sampled_ns += is_sample ? 0 : blk->ns;
			if (!sample(b, &t)) {
				b->skipped += blk->count;
				return 1;
			}
		}
	}
	see(b, blk->stack);
	if (b->wakers)
		err = add_wakers(b, blk, true, &t.waker);
	session_name_process(b->session, p, blk->stack);
	if (!err)
		err = profile_add_times(p, without_tracing(b, blk->stack), &t, ret_at);
	if (err)
		b->session->dropped += blk->count;
	else if (blk->state < SF_OFF_STATES)
		b->ns[blk->state] += t.weight;
	return err;
}

/* at: the stack's index in the profile; SIZE_MAX: the profile has no room for it */
static void add_lock(struct blocks *b, const struct offcpu_block *blk, size_t at)
{
	if (!b->locks || !blk->lock.addr)
		return;
	if (at == SIZE_MAX)
		b->locks->left_out += blk->count;
	else
		locks_add(b->locks, blk->stack->pid, (uint32_t)at, &blk->lock,
			  &(struct lock_sums){ blk->count, blk->ns, blk->max_ns });
}

void blocks_take(void *blocks, const struct sf_sample *rec)
{
	struct blocks *b = blocks;
	struct offcpu *off = collector_offcpu(b->session->collector);
	const uint64_t *wakers = rec->frames + rec->n_user + rec->n_kernel;
	struct sf_sample none;
	struct offcpu_block blk = {
		.stack = offcpu_stack_of(off, rec, &none),
		.state = rec->state,
		.count = 1,
		.ns = rec->weight,
		.waker = offcpu_stack(off, wakers[0]),
	};
	size_t at;

	for (int i = 1; i < SF_OFF_CHAIN; i++)
		blk.before[i - 1] = offcpu_stack(off, wakers[i]);
	memcpy(&blk.lock, wakers + SF_OFF_CHAIN, sizeof(blk.lock));
	add_lock(b, &blk, add_block(b, &blk, true, &at) ? SIZE_MAX : at);
}

static void on_block(void *ctx, const struct offcpu_block *blk)
{
	struct blocks *b = ctx;
	struct out_block *info;
	size_t at;

	if (add_block(b, blk, false, &at)) {
		add_lock(b, blk, SIZE_MAX);
		return;
	}
	add_lock(b, blk, at);
	if (b->no_info)
		return;
	if (vec_reserve(&b->info, &b->info_cap, at + 1, sizeof(*b->info)))
		return; /* the stack is shown without its longest block */
	if (at >= b->ninfo) {
		memset(b->info + b->ninfo, 0, (at + 1 - b->ninfo) * sizeof(*b->info));
		b->ninfo = at + 1;
	}
	info = &b->info[at];
	if (blk->max_ns > info->max_ns)
		info->max_ns = blk->max_ns;
	for (unsigned int i = 0; blk->hist && i < SF_OFF_HIST; i++)
		info->hist.slot[i] += blk->hist->slot[i];
}

int blocks_open(struct blocks *b, struct session *s, bool wakers)
{
	*b = (struct blocks){
		.session = s, .profile = s->profile, .period_ns = NUM_MS, .max_stacks = 131072
	};
	b->buf = malloc(sizeof(*b->buf) + 8ul * (SF_MAX_USER + SF_MAX_KERNEL));
	b->wakers = wakers ? profile_new() : NULL;
	if (!b->buf || (wakers && !b->wakers)) {
		blocks_close(b);
		return -ENOMEM;
	}
	return 0;
}

int blocks_merge(struct blocks *b)
{
	return offcpu_merge(collector_offcpu(b->session->collector), on_block, b);
}

/* Adds a stack without adding to its counts. 0 or -errno. */
static int add_stack(struct blocks *b, struct profile *p, const struct sf_sample *rec,
		     uint8_t state, size_t *ret_at)
{
	struct profile_times none = { .state = state };

	see(b, rec);
	return profile_add_times(p, without_tracing(b, rec), &none, ret_at);
}

static void on_single(void *ctx, const struct offcpu_single *one)
{
	const struct sf_off_single *rec = one->rec;
	struct blocks *b = ctx;
	size_t stack, waker;

	if (profile_count(b->profile) >= b->max_stacks ||
	    add_stack(b, b->profile, one->stack, (uint8_t)rec->state, &stack)) {
		b->timeline->missing++;
		return;
	}
	session_name_process(b->session, b->profile, one->stack);
	if (b->single) {
		b->single(b->single_ctx, rec, (uint32_t)stack);
		return;
	}
	if (!one->waker || profile_count(b->wakers) >= b->max_stacks ||
	    add_stack(b, b->wakers, one->waker, 0, &waker))
		waker = SIZE_MAX;
	timeline_add_block(b->timeline, &(struct timeline_block){ .start_ns = rec->start_ns,
								  .woken_ns = rec->woken_ns,
								  .end_ns = rec->end_ns,
								  .stack = (uint32_t)stack,
								  .waker = (uint32_t)(waker + 1),
								  .tid = rec->tid,
								  .waker_tid = rec->waker_tid });
}

void blocks_singles(struct blocks *b, struct timeline *t, bool last)
{
	b->timeline = t;
	offcpu_singles(collector_offcpu(b->session->collector), last, on_single, b);
}

int blocks_tick(struct blocks *b)
{
	return offcpu_wants_merge(collector_offcpu(b->session->collector)) ? blocks_merge(b) : 0;
}

void blocks_limit_cost(const struct blocks *b, struct blocks_limit *l)
{
	uint64_t now = session_now(), since = now - l->cost_at_ns;
	struct offcpu *off = collector_offcpu(b->session->collector);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct collector_counters c;
	double share;

	if (l->cost_at_ns && since < COST_NS)
		return;
	collector_counters(b->session->collector, &c);
	share = (double)(c.run_ns - l->cost_ns) / (double)since / (double)(cpus > 0 ? cpus : 1);
	l->cost_ns = c.run_ns;
	if (!l->cost_at_ns)
		share = 0;
	l->cost_at_ns = now;
	if (share > BLOCKS_COST && l->thin_ns < THIN_MOST)
		l->thin_ns = offcpu_thinner(l->thin_ns);
	else if (share < COST_LOW && l->thin_ns)
		l->thin_ns = offcpu_denser(l->thin_ns);
	else
		return;
	offcpu_thin(off, l->thin_ns);
	if (l->thin_ns > l->thinnest_ns)
		l->thinnest_ns = l->thin_ns;
}

void blocks_stats(const struct blocks *b, struct run_stats *st)
{
	struct offcpu_totals t;

	offcpu_totals(collector_offcpu(b->session->collector), &t);
	st->offcpu = true;
	memcpy(st->off_ns, b->ns, sizeof(st->off_ns));
	st->off_sampled_ns = t.sampled_ns + b->sampled_ns;
	st->off_lost_ns = t.lost_ns;
	st->off_generations = t.generations;
	st->samples -= b->skipped;
}

void blocks_close(struct blocks *b)
{
	profile_free(b->wakers);
	free(b->info);
	free(b->buf);
	*b = (struct blocks){ 0 };
}
