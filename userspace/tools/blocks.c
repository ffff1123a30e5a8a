/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define TRACING_FRAMES 12	/* of the tracepoint and of BPF, at most */

static bool is_tracing(const char *name)
{
	return !strncmp(name, "bpf_trace_run", 13) || !strncmp(name, "__bpf_trace_", 12) || !strncmp(name, "__traceiter_", 12);
}

/*
 * A copy without the frames of the tracepoint that the stack was taken in. Stacks that were read from outside have
 * none; the scheduler's own functions are in neither.
 */
static const struct sf_sample *without_tracing(struct blocks *b, const struct sf_sample *rec)
{
	const uint64_t *kernel = rec->frames + rec->n_user;
	uint16_t drop = 0;

	for (uint16_t i = 0; i < rec->n_kernel && i < TRACING_FRAMES; i++)
		if (is_tracing(symbolizer_name(b->session->symbols, symbolizer_kernel(b->session->symbols, kernel[i]))))
			drop = (uint16_t)(i + 1);
	if (!drop)
		return rec;
	memcpy(b->buf, rec, sizeof(*rec) + 8ul * rec->n_user);
	b->buf->n_kernel = (uint16_t)(rec->n_kernel - drop);
	memcpy(b->buf->frames + rec->n_user, kernel + drop, 8ul * b->buf->n_kernel);
	return b->buf;
}

static int add_waker(struct blocks *b, const struct sf_sample *rec, uint32_t *ret)
{
	struct profile_times once = { .count = 1 };
	size_t at;
	int err = profile_add_times(b->wakers, without_tracing(b, rec), &once, &at);

	if (!err)
		*ret = (uint32_t)at + 1;
	return err;
}

static int add_block(struct blocks *b, const struct offcpu_block *blk, size_t *ret_at)
{
	struct profile_times t = { .count = blk->count, .weight = blk->ns, .state = blk->state };
	int err = 0;

	symbolizer_see(b->session->symbols, blk->stack->frames, blk->stack->n_user, blk->stack->pid, session_now());
	if (b->wakers && blk->waker)
		err = add_waker(b, blk->waker, &t.waker);
	if (!err)
		err = profile_add_times(b->profile, without_tracing(b, blk->stack), &t, ret_at);
	if (err)
		b->session->dropped += blk->count;
	else if (blk->state < SF_OFF_STATES)
		b->ns[blk->state] += blk->ns;
	return err;
}

/* The maps were full: a sample that stands for its weight. */
void blocks_take(struct blocks *b, const struct sf_sample *rec)
{
	struct offcpu_block blk = {
		.stack = rec, .state = rec->state, .count = 1, .ns = rec->weight,
	};
	size_t at;

	if (rec->time_ns)
		blk.waker = offcpu_stack(collector_offcpu(b->session->collector), rec->time_ns);
	add_block(b, &blk, &at);
}

static void on_sample(void *ctx, const struct sf_sample *rec)
{
	blocks_take(ctx, rec);
}

static void on_block(void *ctx, const struct offcpu_block *blk)
{
	struct blocks *b = ctx;
	struct block_info *info;
	size_t at;

	if (add_block(b, blk, &at) || b->no_info)
		return;
	if (vec_reserve(&b->info, &b->info_cap, at + 1, sizeof(*b->info)))
		return;		/* shown without its longest block */
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
	*b = (struct blocks){ .session = s, .profile = s->profile };
	b->buf = malloc(sizeof(*b->buf) + 8ul * (SF_MAX_USER + SF_MAX_KERNEL));
	b->wakers = wakers ? profile_new() : NULL;
	if (!b->buf || (wakers && !b->wakers)) {
		blocks_close(b);
		return -ENOMEM;
	}
	s->take = on_sample;
	s->take_ctx = b;
	return 0;
}

int blocks_merge(struct blocks *b)
{
	return offcpu_merge(collector_offcpu(b->session->collector), on_block, b);
}

void blocks_stats(const struct blocks *b, struct run_stats *st)
{
	struct offcpu_totals t;

	offcpu_totals(collector_offcpu(b->session->collector), &t);
	st->offcpu = true;
	memcpy(st->off_ns, b->ns, sizeof(st->off_ns));
	st->off_sampled_ns = t.sampled_ns;
	st->off_lost_ns = t.lost_ns;
}

void blocks_close(struct blocks *b)
{
	profile_free(b->wakers);
	free(b->info);
	free(b->buf);
	*b = (struct blocks){ 0 };
}
