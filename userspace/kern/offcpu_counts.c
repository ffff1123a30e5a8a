/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/vec.h"
#include "kern/offcpu_internal.h"

#define BATCH 4096

/* ---- Counts ---- */

/* The part of this key's count that was passed on already. NULL: out of memory. */
static struct off_handed_out *handed_out(struct offcpu *off, uint64_t key)
{
	size_t n = off->seen.n;
	uint32_t id;

	if (vec_reserve(&off->counts, &off->counts_cap, n + 1, sizeof(*off->counts)) ||
	    idmap_get(&off->seen, key, 0, &id))
		return NULL;
	if (id == n)
		off->counts[id] = (struct off_handed_out){ 0 };
	return &off->counts[id];
}

/* last: the count is final, and all stacks that were sent have arrived. */
static int merge_one(struct offcpu *off, uint64_t key, const struct sf_off_count *c, bool last,
		     offcpu_block_fn fn, void *ctx)
{
	struct offcpu_block b = { .state = (uint8_t)c->state, .max_ns = c->max_ns };
	struct off_handed_out *done = handed_out(off, key);
	struct sf_off_hist hist;
	struct sf_sample none;

	if (!done)
		return -ENOMEM;
	b.count = c->count - done->count;
	b.ns = c->sum_ns - done->ns;
	b.stack = offcpu_stack(off, c->stack);
	if ((!b.count && !b.ns) || (!b.stack && !last && c->stack != SF_STACK_UNKNOWN))
		return 0;
	if (!b.stack)
		b.stack = offcpu_missing_stack(&none, c->stack, c->pid, c->comm);
	b.waker = offcpu_stack(off, c->wakers[0]);
	b.lock = c->lock;
	for (int i = 1; i < SF_OFF_CHAIN; i++)
		b.before[i - 1] = offcpu_stack(off, c->wakers[i]);
	if (last && off->opts.hist &&
	    !bpf_map_lookup_elem(bpf_map__fd(off->skel->maps.off_hists), &key, &hist))
		b.hist = &hist;
	done->count += b.count;
	done->ns += b.ns;
	fn(ctx, &b);
	return 0;
}

/* Reads the entries of a map in batches. take() gets n entries at a time. */
struct reader {
	void *keys, *values;
	int (*take)(struct reader *r, uint32_t n);
	struct offcpu *off;
	uint32_t generation; /* counts: only entries of this generation */
	bool last;
	offcpu_block_fn block_fn;
	offcpu_thread_fn thread_fn;
	void *ctx;
};

static void delete_count(struct offcpu *off, uint64_t key)
{
	if (!bpf_map_delete_elem(bpf_map__fd(off->skel->maps.off_counts), &key))
		off->deleted++;
	if (off->opts.hist)
		bpf_map_delete_elem(bpf_map__fd(off->skel->maps.off_hists), &key);
}

static int take_counts(struct reader *r, uint32_t n)
{
	const struct sf_off_count *counts = r->values;
	const uint64_t *keys = r->keys;
	int err = 0;

	for (uint32_t i = 0; i < n && !err; i++) {
		if (counts[i].generation != r->generation)
			continue;
		err = merge_one(r->off, keys[i], &counts[i], r->last, r->block_fn, r->ctx);
		if (!err && r->generation != r->off->generation)
			delete_count(r->off, keys[i]);
	}
	return err;
}

static int take_threads(struct reader *r, uint32_t n)
{
	const struct sf_off_thread *threads = r->values;
	const uint32_t *tids = r->keys;

	for (uint32_t i = 0; i < n; i++)
		r->thread_fn(r->ctx, tids[i], &threads[i]);
	return 0;
}

static int read_map(struct reader *r, const struct bpf_map *map)
{
	uint64_t position = 0;
	bool more = true, first = true;
	uint32_t n;
	int err = 0;

	r->keys = malloc(BATCH * bpf_map__key_size(map));
	r->values = malloc((size_t)BATCH * bpf_map__value_size(map));
	if (!r->keys || !r->values)
		err = -ENOMEM;
	while (!err && more) {
		n = BATCH;
		err = bpf_map_lookup_batch(bpf_map__fd(map), first ? NULL : &position, &position,
					   r->keys, r->values, &n, NULL);
		more = !err;
		if (err == -ENOENT)
			err = 0; /* end of the map */
		if (!err)
			err = r->take(r, n);
		first = false;
	}
	free(r->keys);
	free(r->values);
	return err;
}

/* ---- Generations ---- */

bool offcpu_wants_merge(const struct offcpu *off)
{
	uint32_t max = off->opts.max_stacks, room = max - max / 8;
	size_t most = off->held + max / 2 < room ? off->held + max / 2 : room;

	if (off->no_generations || off->skel->bss->off_finish)
		return false;
	return off->closing || off->skel->bss->off_used - off->deleted > max / 2 ||
	       off->stacks.ids.n > most;
}

/*
 * Programs that are running may still count for the old generation. None of them is left when this
 * returns.
 */
static void begin_generation(struct offcpu *off)
{
	__atomic_store_n(&off->skel->bss->off_generation, off->generation + 1, __ATOMIC_RELEASE);
	/* Waits for RCU readers; fails with nohz_full. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0)) {
		off->no_generations = true;
		__atomic_store_n(&off->skel->bss->off_generation, off->generation,
				 __ATOMIC_RELEASE);
		return;
	}
	off->generation++;
	off->closing = true;
}

static int close_generation(struct offcpu *off, struct reader *r)
{
	int err;

	r->generation = off->generation - 1;
	r->last = true;
	err = read_map(r, off->skel->maps.off_counts);
	off->closing = false;
	off->past += off->seen.n;
	idmap_reset(&off->seen);
	if (!err)
		err = offcpu_run_iterator(off->skel->progs.off_held, offcpu_stacks_held, off);
	return err ? err : offcpu_stacks_drop(off);
}

int offcpu_merge(struct offcpu *off, offcpu_block_fn fn, void *ctx)
{
	struct reader r = { .take = take_counts, .off = off, .block_fn = fn, .ctx = ctx };
	bool over = off->skel->bss->off_finish != 0;
	int err = 0;

	if (!over)
		offcpu_calibrate(off->skel->bss);
	if (off->closing)
		err = close_generation(off, &r);
	r.generation = off->generation;
	r.last = over;
	if (!err)
		err = read_map(&r, off->skel->maps.off_counts);
	if (!err && offcpu_wants_merge(off))
		begin_generation(off);
	return err;
}

int offcpu_threads(struct offcpu *off, offcpu_thread_fn fn, void *ctx)
{
	struct reader r = { .take = take_threads, .off = off, .thread_fn = fn, .ctx = ctx };

	return off->opts.threads || off->opts.running ? read_map(&r, off->skel->maps.off_threads)
						      : 0;
}
