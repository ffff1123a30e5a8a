/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/wall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/idmap.h"
#include "base/num.h"
#include "base/vec.h"
#include "prof/wait_notes.h"
#include "tools/blocks.h"
#include "tools/terminal.h"

#define MAX_STACKS 32768 /* the default of offcpu */

struct wall {
	struct oneshot *one;
	struct session *session;
	struct offcpu_opts opts;
	struct blocks blocks;
	struct blocks_limit limit;
	struct timeline *timeline; /* NULL: the format has none */
	bool limited;
	uint64_t period_ns; /* period of the samples */
};

/* A sample stands for the time since the last one. */
static void take(void *ctx, const struct sf_sample *rec)
{
	struct wall *w = ctx;
	struct profile_times t = { .count = 1, .weight = w->period_ns, .state = PROFILE_RUNNING };

	if (rec->type == SF_REC_BLOCK)
		blocks_take(&w->blocks, rec);
	else
		session_add(w->session, rec, &t);
}

static int tick(void *ctx)
{
	struct wall *w = ctx;

	if (w->limited)
		blocks_limit_cost(&w->blocks, &w->limit);
	if (w->timeline)
		blocks_singles(&w->blocks, w->timeline, false);
	return blocks_tick(&w->blocks);
}

static void count(struct wall *w, struct run_stats *stats)
{
	session_stats(w->session, w->session->profile, stats);
	blocks_stats(&w->blocks, stats);
}

static int report(struct wall *w)
{
	struct oneshot *r = w->one;
	struct session *s = w->session;
	struct run_stats stats;
	char host[256] = "";
	struct out_meta meta = { .event = "wall-clock",
				 .hz = (double)NUM_S / (double)w->period_ns,
				 .host = host,
				 .start_unix_ns = s->start_unix_ns };
	struct out_report rep = {
		.profile = s->profile,
		.symbols = s->symbols,
		.modules = s->modules,
		.meta = &meta,
		.stats = &stats,
		.timeline = w->timeline,
		.wakers = w->blocks.wakers,
		.opts = { .by = r->by,
			  .wall = r->format->timeline ? OUT_WALL_NONE : r->wall,
			  .user_only = !r->common.collect.kernel,
			  .kernel_only = !r->common.collect.user,
			  .usec = true,
			  .columns = r->out == stdout ? terminal_columns() : 0 },
	};
	int err = oneshot_debug(r, s, NULL);
	FILE *made;

	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	count(w, &stats);
	made = oneshot_begin();
	if (!made)
		return EXIT_FAILED;
	err = oneshot_end(r, made, r->format->write(&rep, made));
	count(w, &stats); /* counts the symbols' own cost, too */
	if (!err)
		err = oneshot_stats(r, &stats);
	if (err)
		return err;
	oneshot_say_result(r, &stats, "samples and blocks");
	if (w->limit.thinnest_ns && stats.off_sampled_ns)
		complain(0,
			 "%.1f ms of waits are sampled: measuring all of them would cost more than "
			 "%g %% of the CPUs' time",
			 (double)stats.off_sampled_ns / 1e6, 100 * BLOCKS_COST);
	if (w->timeline)
		oneshot_say_timeline(w->timeline);
	if (stats.off_lost_ns)
		complain(0, "%.1f ms of waits are lost", (double)stats.off_lost_ns / 1e6);
	return 0;
}

/* 0, or the exit code after printing the error */
static int check(struct wall *w)
{
	const struct collector_opts *o = &w->one->common.collect;

	if (strcmp(o->event->name, "cpu-clock"))
		return complain(EXIT_USAGE, "--wall adds times, so it needs -e cpu-clock, not %s",
				o->event->name);
	if (w->one->exact && w->one->format->timeline)
		return complain(EXIT_USAGE, "--exact divides the sums of stacks, which %s has not",
				w->one->format->name);
	if (w->one->min_block && !w->one->format->timeline)
		return complain(EXIT_USAGE,
				"-m is for timelines (firefox, perfetto): %s adds all waits up",
				w->one->format->name);
	if (w->one->format->timeline)
		w->timeline->min_block_ns = w->one->min_block_ns;
	else
		w->timeline = NULL;
	w->period_ns = o->hz ? NUM_S / o->hz : o->period;
	return 0;
}

/* The running time of threads, as sampled and as measured. */
struct running {
	struct idmap tids;
	struct thread_time {
		uint64_t sampled_ns, measured_ns;
		uint32_t pid;
		char comm[SF_COMM];
	} * v; /* index: id in tids */
	size_t cap;
	int err;
};

static struct thread_time *time_of(struct running *r, uint32_t tid)
{
	size_t before = r->tids.n;
	uint32_t id;

	if (vec_reserve(&r->v, &r->cap, before + 1, sizeof(*r->v)) ||
	    idmap_get(&r->tids, tid, 0, &id)) {
		r->err = -ENOMEM;
		return NULL;
	}
	if (id == before)
		r->v[id] = (struct thread_time){ 0 };
	return &r->v[id];
}

static void take_measured(void *ctx, uint32_t tid, const struct sf_off_thread *thread)
{
	struct thread_time *t = time_of(ctx, tid);

	if (!t)
		return;
	t->measured_ns = thread->ran_ns;
	t->pid = thread->pid;
	memcpy(t->comm, thread->comm, SF_COMM);
}

/* A thread that ran, but not while a sample was taken. */
static int add_unsampled(struct profile *p, uint32_t tid, const struct thread_time *t)
{
	struct sf_sample rec = { .type = SF_REC_SAMPLE, .pid = t->pid, .tid = tid };
	struct profile_times times = { .weight = t->measured_ns, .state = PROFILE_RUNNING };

	memcpy(rec.comm, t->comm, SF_COMM);
	return profile_add_times(p, &rec, &times, NULL);
}

/* Divides the measured running time of each thread among its stacks, as the samples do. */
static int make_exact(struct wall *w)
{
	struct profile *p = w->session->profile;
	size_t n = profile_count(p);
	struct running r = { .err = 0 };
	struct profile_stack s;
	struct thread_time *t;

	for (size_t i = 0; i < n && !r.err; i++) {
		profile_stack(p, i, &s);
		t = s.state == PROFILE_RUNNING ? time_of(&r, s.tid) : NULL;
		if (t)
			t->sampled_ns += s.weight;
	}
	if (!r.err)
		r.err = offcpu_threads(collector_offcpu(w->session->collector), take_measured, &r);
	for (size_t i = 0; i < n && !r.err; i++) {
		profile_stack(p, i, &s);
		t = s.state == PROFILE_RUNNING ? time_of(&r, s.tid) : NULL;
		if (t && t->measured_ns)
			profile_set_weight(p, i,
					   (uint64_t)((double)s.weight * (double)t->measured_ns /
						      (double)t->sampled_ns));
	}
	for (uint32_t id = 0; id < r.tids.n && !r.err; id++)
		if (!r.v[id].sampled_ns && r.v[id].measured_ns)
			r.err = add_unsampled(p, (uint32_t)r.tids.keys[id].a, &r.v[id]);
	idmap_free(&r.tids);
	free(r.v);
	return r.err;
}

static void end_timeline(struct wall *w)
{
	struct timeline *t = w->timeline;
	struct offcpu_totals totals;

	blocks_singles(&w->blocks, t, true);
	offcpu_totals(collector_offcpu(w->session->collector), &totals);
	t->missing += totals.singles_lost;
	t->start_ns = w->session->start_ns;
	t->suspended_ns = clock_ns(CLOCK_BOOTTIME) - session_now();
}

static int collect(struct wall *w)
{
	struct session *s = w->session;
	struct offcpu_totals totals;
	int err;

	w->opts.running = w->one->exact;
	if (w->timeline) {
		w->opts.wakers = w->opts.singles = true;
		w->opts.single_min_ns = w->timeline->min_block_ns;
		w->timeline->has_blocks = true;
	}
	w->one->common.collect.offcpu = &w->opts;
	w->one->common.collect.wall = true;
	err = session_open(s, &w->one->common.collect);
	if (err)
		return err;
	if (blocks_open(&w->blocks, s, w->timeline != NULL))
		return complain(EXIT_FAILED, "out of memory");
	s->take = take;
	s->take_ctx = w;
	s->timeline = w->timeline;
	offcpu_totals(collector_offcpu(s->collector), &totals);
	w->limited = !totals.at_leave; /* offcpu does so, too */
	w->blocks.no_info = true;
	w->blocks.max_stacks = 4ul * MAX_STACKS;
	if (w->one->format->threads || w->one->exact)
		profile_by_thread(s->profile);
	w->one->tick = tick;
	w->one->tick_ctx = w;
	err = oneshot_sample(w->one, s);
	if (err)
		return err;
	if (w->timeline)
		end_timeline(w);
	err = blocks_merge(&w->blocks);
	if (!err && w->one->exact)
		err = make_exact(w);
	return err ? complain(EXIT_FAILED, "reading the counts: %s", strerror(-err)) : 0;
}

int wall_run(struct oneshot *r, struct session *s, struct timeline *t)
{
	struct wall w = {
		.one = r,
		.session = s,
		.timeline = t,
		.opts = { .max_ns = UINT64_MAX,
			  .period_ns = NUM_MS,
			  .max_stacks = MAX_STACKS,
			  .states = ~(1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
			  .want_cost_back = true,
			  .kernel_threads = true,
			  .user_threads = true },
	};
	int rc = oneshot_choose(r);

	session_signals(); /* so that Ctrl-C while tables are made also ends the run cleanly */
	if (!rc)
		rc = check(&w);
	if (!rc)
		rc = oneshot_prepare(r);
	if (!rc)
		rc = collect(&w);
	if (!rc)
		rc = report(&w);
	blocks_close(&w.blocks);
	return rc;
}
