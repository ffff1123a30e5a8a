/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/critical.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"
#include "out/out_html.h"
#include "out/out_stacks.h"
#include "prof/lock_kinds.h"
#include "prof/timeline.h"
#include "prof/wait_notes.h"

#define ROWS	 40
#define TREE_MIN 0.5

/* The running time of a thread at one place of the path, and its samples. */
struct run {
	uint32_t node, track;
	uint64_t ns, samples;
};

struct run_stack {
	uint32_t run, stack; /* stack: index in the profile */
	uint64_t samples;
};

struct critical {
	struct out_report r; /* what stacks are written by: without timeline and wakers */
	const struct timeline *times;
	struct profile *wakers;
	struct timeline_tracks tracks;
	struct idmap tids; /* thread ids -> tracks_of */
	uint32_t *tracks_of;
	size_t tracks_cap;
	struct stackset *ss;
	const char *comm; /* clean name of the thread whose path it is */
	uint32_t pid;
	uint32_t *path; /* frames of the path so far, root first */
	size_t n, cap;
	struct out_path stack; /* scratch */
	struct idmap run_ids, run_stack_ids;
	struct run *runs;
	struct run_stack *run_stacks;
	size_t runs_cap, run_stacks_cap;
	struct critical_sums sums;
};

/* ---- Stacks of the path ---- */

static int push(struct critical *c, const uint32_t *frames, size_t n)
{
	int err = vec_reserve(&c->path, &c->cap, c->n + n + 1, sizeof(*c->path));

	if (err)
		return err;
	if (n)
		memcpy(c->path + c->n, frames, n * sizeof(*frames));
	c->n += n;
	return 0;
}

static int push_note(struct critical *c, const char *text)
{
	uint32_t frame;
	int err = stackset_frame(c->ss, text, strlen(text), "", STACK_NOTE, &frame);

	return err ? err : push(c, &frame, 1);
}

/* Appends stack i of the profile, with what the thread did. */
static int push_stack(struct critical *c, uint32_t i)
{
	int err = out_path_of(&c->stack, i);

	return err ? err : push(c, c->stack.frames, c->stack.n);
}

static int add_leaf(struct critical *c, uint64_t ns)
{
	return stackset_add(c->ss, c->comm, c->pid, c->path, c->n, STACK_AFTER, ns);
}

/* ---- Running ---- */

/* The first sample of the track at a time or later. */
static size_t first_sample(const struct critical *c, const struct timeline_track *k, uint64_t at)
{
	size_t lo = k->first, hi = k->first + k->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->times->list[mid].time_ns < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int count_sample(struct critical *c, uint32_t run, uint32_t stack)
{
	size_t before = c->run_stack_ids.n;
	uint32_t id;

	if (vec_reserve(&c->run_stacks, &c->run_stacks_cap, before + 1, sizeof(*c->run_stacks)) ||
	    idmap_get(&c->run_stack_ids, run, stack, &id))
		return -ENOMEM;
	if (id == before)
		c->run_stacks[id] = (struct run_stack){ .run = run, .stack = stack };
	c->run_stacks[id].samples++;
	c->runs[run].samples++;
	return 0;
}

/* The thread ran from one time to the other. */
static int add_run(struct critical *c, uint32_t track, uint64_t from, uint64_t to)
{
	const struct timeline_track *k = &c->tracks.list[track];
	size_t before = c->run_ids.n;
	uint32_t node, id;
	int err = stackset_path(c->ss, c->path, c->n, &node);

	if (err || vec_reserve(&c->runs, &c->runs_cap, before + 1, sizeof(*c->runs)) ||
	    idmap_get(&c->run_ids, node, track, &id))
		return -ENOMEM;
	if (id == before)
		c->runs[id] = (struct run){ .node = node, .track = track };
	c->runs[id].ns += to - from;
	for (size_t i = first_sample(c, k, from);
	     i < k->first + k->n && c->times->list[i].time_ns < to && !err; i++)
		err = count_sample(c, id, c->times->list[i].stack);
	return err;
}

/* Makes the path the frames of a node. */
static int path_of_node(struct critical *c, uint32_t node)
{
	c->n = 0;
	for (uint32_t at = node; at != STACK_ROOT; at = (uint32_t)c->ss->nodes.keys[at].a)
		c->n++;
	if (vec_reserve(&c->path, &c->cap, c->n + 1, sizeof(*c->path)))
		return -ENOMEM;
	for (size_t i = c->n; i-- > 0; node = (uint32_t)c->ss->nodes.keys[node].a)
		c->path[i] = (uint32_t)c->ss->nodes.keys[node].b;
	return 0;
}

/* Divides the running time among the stacks of the samples. */
static int add_runs(struct critical *c)
{
	int err = 0;

	for (size_t i = 0; i < c->run_stack_ids.n && !err; i++) {
		const struct run_stack *s = &c->run_stacks[i];
		const struct run *run = &c->runs[s->run];

		err = path_of_node(c, run->node);
		if (!err)
			err = push_stack(c, s->stack);
		if (!err)
			err = add_leaf(c, (uint64_t)((double)run->ns * (double)s->samples /
						     (double)run->samples));
	}
	for (size_t i = 0; i < c->run_ids.n && !err; i++) {
		const struct run *run = &c->runs[i];

		if (run->samples)
			continue;
		c->sums.unsampled_ns += run->ns;
		err = path_of_node(c, run->node);
		if (!err)
			err = push_note(c, wait_note_text(WAIT_RUNNING));
		if (!err)
			err = add_leaf(c, run->ns);
	}
	return err;
}

/* ---- Waiting ---- */

/* What functions of the kernel say of an interrupt. */
static const char *interrupt_of(const struct critical *c, uint32_t waker)
{
	static const struct {
		const char *prefix, *note;
	} functions[] = {
		{ "hrtimer_", "[timer]" },
		{ "process_timeout", "[timer]" },
		{ "call_timer_fn", "[timer]" },
		{ "posix_timer_", "[timer]" },
		{ "alarmtimer_", "[timer]" },
		{ "blk_", "[disk]" },
		{ "bio_endio", "[disk]" },
		{ "folio_end_", "[disk]" },
		{ "end_bio_", "[disk]" },
		{ "scsi_", "[disk]" },
		{ "nvme_", "[disk]" },
		{ "net_rx_action", "[network]" },
		{ "__netif_receive", "[network]" },
		{ "tcp_", "[network]" },
		{ "udp_", "[network]" },
		{ "sock_def_readable", "[network]" },
	};
	const uint32_t *ids = profile_symbols(c->wakers, waker, c->r.symbols);
	struct profile_stack s;

	profile_stack(c->wakers, waker, &s);
	for (size_t k = s.n_user; ids && k < (size_t)s.n_user + s.n_kernel; k++) {
		const char *name = symbolizer_name(c->r.symbols, ids[k]);

		for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
			if (!strncmp(name, functions[i].prefix, strlen(functions[i].prefix)))
				return functions[i].note;
	}
	return "[interrupt]";
}

/* The frame between the stack of a waiter and that of its waker. */
static int push_link(struct critical *c, const struct timeline_block *b)
{
	const uint32_t *ids = profile_symbols(c->r.profile, b->stack, c->r.symbols);
	char comm[4 * SF_COMM], text[5 * SF_COMM + 16];
	struct profile_stack s;
	uint32_t user;
	bool lock;

	if (!ids)
		return -ENOMEM;
	profile_stack(c->r.profile, b->stack, &s);
	lock = lock_kind_of(&s, ids, c->r.symbols, &user)->owners;
	profile_stack(c->wakers, b->waker - 1, &s);
	text_clean(comm, sizeof(comm), s.comm, strnlen(s.comm, SF_COMM), 0);
	snprintf(text, sizeof(text), "[%s by %s]", lock ? "lock held" : "woken", comm);
	return push_note(c, text);
}

static int walk(struct critical *c, uint32_t track, uint64_t from, uint64_t to, unsigned int depth);

/* A wait, from one time to the other, is what its waker did meanwhile. */
static int add_wait(struct critical *c, const struct timeline_block *b, uint64_t from, uint64_t to,
		    unsigned int depth)
{
	size_t n = c->n;
	uint32_t id;
	int err = push_stack(c, b->stack);

	if (err)
		return err;
	if (!b->waker) {
		c->sums.unknown_ns += to - from;
		err = push_note(c, "[waker unknown]");
	} else if (!b->waker_tid) {
		c->sums.interrupt_ns += to - from;
		err = push_note(c, interrupt_of(c, b->waker - 1));
	} else {
		err = push_link(c, b);
		if (!err && depth < CRITICAL_DEPTH && idmap_find(&c->tids, b->waker_tid, 0, &id)) {
			err = walk(c, c->tracks_of[id], from, to, depth + 1);
			c->n = n;
			return err;
		}
	}
	if (!err)
		err = add_leaf(c, to - from);
	c->n = n;
	return err;
}

/* A thread that was woken, or preempted, waited for a CPU: that takes the place of its note. */
static int add_runnable(struct critical *c, const struct timeline_block *b, uint64_t ns)
{
	size_t n = c->n;
	int err = push_stack(c, b->stack);

	c->n -= !err && c->n > n;
	if (!err)
		err = push_note(c, STACK_RUNNABLE);
	if (!err)
		err = add_leaf(c, ns);
	c->n = n;
	return err;
}

/* The first mark of the track that ends after a time. */
static size_t first_mark(const struct critical *c, const struct timeline_track *k, uint64_t at)
{
	size_t lo = k->first_mark, hi = k->first_mark + k->nmarks;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->tracks.marks[mid].end_ns <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* False: the thread waited for a CPU. */
static bool is_wait(const struct critical *c, const struct timeline_mark *m)
{
	struct profile_stack s;

	profile_stack(c->r.profile, c->times->blocks[m->block].stack, &s);
	return m->kind == TIMELINE_BLOCKED && s.state != SF_OFF_R;
}

/* What the thread did from one time to the other. */
static int walk(struct critical *c, uint32_t track, uint64_t from, uint64_t to, unsigned int depth)
{
	const struct timeline_track *k = &c->tracks.list[track];
	uint64_t at = from;
	int err = 0;

	for (size_t i = first_mark(c, k, from); i < k->first_mark + k->nmarks && at < to && !err;
	     i++) {
		const struct timeline_mark *m = &c->tracks.marks[i];
		const struct timeline_block *b = &c->times->blocks[m->block];
		uint64_t start = m->start_ns > at ? m->start_ns : at,
			 end = m->end_ns < to ? m->end_ns : to;

		if (m->start_ns >= to)
			break;
		if (m->kind == TIMELINE_WAKES || end <= start)
			continue;
		if (start > at)
			err = add_run(c, track, at, start);
		if (!err)
			err = is_wait(c, m) ? add_wait(c, b, start, end, depth)
					    : add_runnable(c, b, end - start);
		at = end;
	}
	return !err && at < to ? add_run(c, track, at, to) : err;
}

/* ---- The path ---- */

static int index_tracks(struct critical *c)
{
	uint32_t id;

	for (size_t i = 0; i < c->tracks.n; i++) {
		if (vec_reserve(&c->tracks_of, &c->tracks_cap, c->tids.n + 1,
				sizeof(*c->tracks_of)) ||
		    idmap_get(&c->tids, c->tracks.list[i].tid, 0, &id))
			return -ENOMEM;
		c->tracks_of[id] = (uint32_t)i;
	}
	return 0;
}

/* When something is last known of a thread. */
static uint64_t last_seen(const struct critical *c, const struct timeline_track *k)
{
	uint64_t last = k->n ? c->times->list[k->first + k->n - 1].time_ns : 0;

	for (size_t i = k->nmarks; i-- > 0;) {
		const struct timeline_mark *m = &c->tracks.marks[k->first_mark + i];

		if (m->end_ns > last)
			last = m->end_ns;
		if (m->kind != TIMELINE_WAKES)
			break;
	}
	return last;
}

static int make_path(struct critical *c, uint32_t tid, uint64_t begin, uint64_t end)
{
	const struct timeline_track *k;
	char comm[4 * SF_COMM];
	uint32_t id;
	int err = index_tracks(c);

	if (err)
		return err;
	if (!idmap_find(&c->tids, tid, 0, &id))
		return -ENOENT;
	k = &c->tracks.list[c->tracks_of[id]];
	text_clean(comm, sizeof(comm), k->comm, strnlen(k->comm, SF_COMM), 0);
	c->comm = comm;
	c->pid = k->pid;
	end = end ? end : last_seen(c, k);
	if (end <= begin)
		return -ENOENT;
	c->sums.elapsed_ns = end - begin;
	err = walk(c, c->tracks_of[id], begin, end, 1);
	return err ? err : add_runs(c);
}

/* Values as they are printed. */
static void to_microseconds(struct stackset *ss)
{
	ss->totals[STACK_AFTER] = 0;
	for (size_t i = 0; i < ss->leaves.n; i++) {
		ss->values[i][STACK_AFTER] /= 1000;
		ss->totals[STACK_AFTER] += ss->values[i][STACK_AFTER];
	}
}

int critical_path(const struct out_report *r, uint32_t tid, uint64_t begin_ns, uint64_t end_ns,
		  struct stackset *ret, struct critical_sums *ret_sums)
{
	struct critical c = { .r = *r, .times = r->timeline, .wakers = r->wakers, .ss = ret };
	int err = timeline_by_thread(r->timeline, r->profile, r->wakers, &c.tracks);

	c.r.timeline = NULL;
	c.r.wakers = NULL;
	c.r.opts.wall = OUT_WALL_LEAF;
	c.stack = (struct out_path){ .ss = ret, .r = &c.r };
	if (!err)
		err = make_path(&c, tid, begin_ns, end_ns);
	if (!err)
		to_microseconds(ret);
	*ret_sums = c.sums;
	timeline_tracks_free(&c.tracks);
	idmap_free(&c.tids);
	idmap_free(&c.run_ids);
	idmap_free(&c.run_stack_ids);
	free(c.tracks_of);
	free(c.path);
	free(c.stack.frames);
	free(c.runs);
	free(c.run_stacks);
	return err;
}

int critical_write(const struct out_report *r, const struct stackset *path,
		   const struct out_format *format, FILE *f)
{
	const struct html_meta meta = { .unit = "microseconds",
					.event = r->meta->event,
					.host = r->meta->host,
					.duration_s = r->stats->duration_s,
					.start_unix_ns = r->meta->start_unix_ns,
					.lost = run_lost(r->stats) };
	const struct stacks_text text = { .unit = "microseconds",
					  .rows = r->opts.rows ? r->opts.rows : ROWS,
					  .columns = r->opts.columns,
					  .tree_min = TREE_MIN,
					  .meta = &meta };

	return format->write_recorded(&(struct out_recorded){ path, &meta, &text, UINT64_MAX }, f);
}
