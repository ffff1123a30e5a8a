/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a recording that refer to its stacks: times and blocked time. */
#include <errno.h>
#include <stdlib.h>

#include "out/recording_internal.h"

/* ---- Times ---- */

static uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static int read_samples(struct recording_reader *r, struct pb_field *f)
{
	struct timeline *t = &r->rec->times;
	uint64_t v[3], time = t->start_ns, dropped = t->dropped;
	bool bad = false;

	while (recording_next(f, v, 3, &bad)) {
		time += unzigzag(v[0]);
		if (v[1] >= profile_count(r->rec->profile) || v[2] > UINT32_MAX)
			return recording_damaged(r, "sample", t->n);
		timeline_add(t, time, (uint32_t)v[2], v[1]);
	}
	return bad || t->dropped != dropped ? recording_damaged(r, "sample", t->n) : 0;
}

static int read_blocks(struct recording_reader *r, struct pb_field *f)
{
	struct timeline *t = &r->rec->times;
	uint64_t v[BLOCK_NUMBERS], start = t->start_ns, missing = t->missing;
	bool bad = false;

	while (recording_next(f, v, BLOCK_NUMBERS, &bad)) {
		struct timeline_block b = { .start_ns = start += unzigzag(v[0]),
					    .stack = (uint32_t)v[3],
					    .waker = (uint32_t)v[4],
					    .tid = (uint32_t)v[5],
					    .waker_tid = (uint32_t)v[6] };

		if (__builtin_add_overflow(start, v[1], &b.woken_ns) ||
		    __builtin_add_overflow(b.woken_ns, v[2], &b.end_ns) ||
		    v[3] >= profile_count(r->rec->profile) ||
		    v[4] > (r->rec->wakers ? profile_count(r->rec->wakers) : 0))
			return recording_damaged(r, "wait", t->nblocks);
		timeline_add_block(t, &b);
	}
	return bad || t->missing != missing ? recording_damaged(r, "wait", t->nblocks) : 0;
}

int recording_read_timeline(struct recording_reader *r, struct bytes msg)
{
	struct timeline *t = &r->rec->times;
	uint64_t v[TIMES_HAS_BLOCKS + 1];
	int err = recording_numbers(r, msg, v, TIMES_HAS_BLOCKS + 1, "timeline");
	struct pb_field f;

	if (err)
		return err;
	if (r->rec->report.timeline)
		return recording_damaged(r, "second timeline", 0);
	t->start_ns = v[TIMES_START];
	t->suspended_ns = v[TIMES_SUSPENDED];
	t->dropped = v[TIMES_DROPPED];
	t->missing = v[TIMES_MISSING];
	t->min_block_ns = v[TIMES_MIN_BLOCK];
	t->has_blocks = v[TIMES_HAS_BLOCKS];
	while (!err && pb_next(&msg, &f)) {
		if (f.number == TIMES_SAMPLES)
			err = read_samples(r, &f);
		else if (f.number == TIMES_BLOCKS)
			err = read_blocks(r, &f);
	}
	r->rec->report.timeline = t;
	return err;
}

static int read_cells(struct recording_reader *r, struct pb_field *f)
{
	struct slices *s = &r->rec->slices;
	uint64_t v[3];
	bool bad = false;

	while (recording_next(f, v, 3, &bad))
		if (v[0] >= profile_count(r->rec->profile) || v[1] >= SLICES_MAX ||
		    slices_restore(s, v[0], v[1], v[2]))
			return recording_damaged(r, "slice", v[1]);
	return bad ? recording_damaged(r, "slice", s->n) : 0;
}

int recording_read_slices(struct recording_reader *r, struct bytes msg)
{
	struct slices *s = &r->rec->slices;
	uint64_t v[SLICES_N + 1];
	int err = recording_numbers(r, msg, v, SLICES_N + 1, "slices");
	struct pb_field f;

	if (err)
		return err;
	if (!v[SLICES_WIDTH] || v[SLICES_N] > SLICES_MAX)
		return recording_damaged(r, "slices", v[SLICES_N]);
	s->width_ns = v[SLICES_WIDTH];
	while (!err && pb_next(&msg, &f))
		if (f.number == SLICES_CELLS)
			err = read_cells(r, &f);
	r->rec->report.slices = s;
	return err;
}

/* ---- Blocked time ---- */

static int read_longest(struct recording_reader *r, struct pb_field *f)
{
	struct out_blocks *b = &r->rec->blocks;
	bool bad = false;
	uint64_t ns;

	while (recording_next(f, &ns, 1, &bad)) {
		if (b->n >= profile_count(r->rec->profile))
			return recording_damaged(r, "longest block", b->n);
		r->rec->block_list[b->n++].max_ns = ns;
	}
	return bad ? recording_damaged(r, "longest block", b->n) : 0;
}

static int read_hist(struct recording_reader *r, struct pb_field *f)
{
	uint64_t v[SF_OFF_HIST];
	bool bad = false;
	size_t n = 0;

	for (; recording_next(f, v, SF_OFF_HIST, &bad); n++) {
		if (n >= r->rec->blocks.n)
			return recording_damaged(r, "histogram", n);
		for (size_t k = 0; k < SF_OFF_HIST; k++)
			r->rec->block_list[n].hist.slot[k] = (uint32_t)v[k];
	}
	r->rec->blocks.hist = true;
	return bad ? recording_damaged(r, "histogram", n) : 0;
}

static int read_thread(struct recording_reader *r, struct bytes msg)
{
	uint64_t v[THREAD_COMM + 1], ns[SF_OFF_STATES] = { 0 };
	int err = recording_numbers(r, msg, v, THREAD_COMM + 1, "thread");
	struct sf_off_thread t = { .count = v[THREAD_COUNT],
				   .max_ns = v[THREAD_MAX],
				   .pid = (uint32_t)v[THREAD_PID] };
	struct pb_field f;

	while (!err && pb_next(&msg, &f))
		if (f.number == THREAD_NS)
			err = recording_array(r, &f, ns, SF_OFF_STATES);
	for (size_t i = 0; i < SF_OFF_STATES; i++)
		t.ns[i] = ns[i];
	recording_comm(r, t.comm, v[THREAD_COMM]);
	return err ? err : out_blocks_thread(&r->rec->blocks, (uint32_t)v[THREAD_TID], &t);
}

int recording_read_blocks(struct recording_reader *r, struct bytes msg)
{
	struct recording *rec = r->rec;
	struct pb_field f;
	int err = 0;

	if (rec->block_list)
		return recording_damaged(r, "second list of blocks", 0);
	rec->block_list = calloc(profile_count(rec->profile) + 1, sizeof(*rec->block_list));
	if (!rec->block_list)
		return -ENOMEM;
	while (!err && pb_next(&msg, &f)) {
		if (f.number == BLOCKS_LONGEST)
			err = read_longest(r, &f);
		else if (f.number == BLOCKS_HIST)
			err = read_hist(r, &f);
		else if (f.number == BLOCKS_THREAD)
			err = read_thread(r, f.bytes);
		else if (f.number == BLOCKS_HAS_THREADS)
			rec->blocks.has_threads = f.value;
	}
	rec->blocks.list = rec->block_list;
	rec->report.blocks = &rec->blocks;
	return err || !msg.err ? err : recording_damaged(r, "list of blocks", 0);
}
