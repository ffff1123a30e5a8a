/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/wall.h"

#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "prof/wait_notes.h"
#include "tools/blocks.h"
#include "tools/terminal.h"

#define MAX_STACKS 32768 /* as in offcpu */

struct wall {
	struct oneshot *one;
	struct session *session;
	struct offcpu_opts opts;
	struct blocks blocks;
	struct blocks_limit limit;
	bool limited;
	uint64_t period_ns; /* of the samples */
};

/* A sample stands for the time since the last one. */
static void take(void *ctx, const struct sf_sample *rec)
{
	struct wall *w = ctx;
	struct profile_times t = { .count = 1, .weight = w->period_ns, .state = PROFILE_RUNNING };

	if (rec->type == SF_REC_BLOCK) {
		blocks_take(&w->blocks, rec);
		return;
	}
	session_name_process(w->session, w->session->profile, rec);
	if (profile_add_times(w->session->profile, session_see(w->session, rec), &t, NULL))
		w->session->dropped++;
}

static int tick(void *ctx)
{
	struct wall *w = ctx;

	if (w->limited)
		blocks_limit_cost(&w->blocks, &w->limit);
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
		.opts = { .by = r->by,
			  .wall = r->wall,
			  .user_only = !r->common.collect.kernel,
			  .kernel_only = !r->common.collect.user,
			  .usec = true,
			  .columns = r->out == stdout ? terminal_columns() : 0 },
	};
	int err = oneshot_debug(r, s, NULL);

	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	count(w, &stats);
	err = oneshot_begin(r);
	if (err)
		return err;
	err = r->format->write(&rep, r->out);
	if (err)
		return complain(EXIT_FAILED, "writing the output: %s", strerror(-err));
	count(w, &stats); /* with the symbols' own cost */
	err = r->stats ? out_stats(&stats, r->stats) : 0;
	if (err)
		return complain(EXIT_FAILED, "writing %s: %s", r->common.stats, strerror(-err));
	oneshot_say_result(r, &stats, "samples and blocks");
	if (w->limit.thinnest_ns && stats.off_sampled_ns)
		complain(0,
			 "%.1f ms of waits are sampled: measuring all of them would cost more than "
			 "%g %% of the CPUs' time",
			 (double)stats.off_sampled_ns / 1e6, 100 * BLOCKS_COST);
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
	if (w->one->timeline || w->one->format->timeline)
		return complain(EXIT_USAGE, "--wall has no timeline: use another format than %s",
				w->one->format->name);
	w->period_ns = o->hz ? NUM_S / o->hz : o->period;
	return 0;
}

static int collect(struct wall *w)
{
	struct session *s = w->session;
	struct offcpu_totals totals;
	int err;

	w->one->common.collect.offcpu = &w->opts;
	w->one->common.collect.wall = true;
	err = session_open(s, &w->one->common.collect);
	if (err)
		return err;
	if (blocks_open(&w->blocks, s, false))
		return complain(EXIT_FAILED, "out of memory");
	s->take = take;
	s->take_ctx = w;
	offcpu_totals(collector_offcpu(s->collector), &totals);
	w->limited = !totals.at_leave; /* as in offcpu */
	w->blocks.no_info = true;
	w->blocks.max_stacks = 4ul * MAX_STACKS;
	if (w->one->format->threads)
		profile_by_thread(s->profile);
	w->one->tick = tick;
	w->one->tick_ctx = w;
	err = oneshot_sample(w->one, s);
	if (err)
		return err;
	err = blocks_merge(&w->blocks);
	return err ? complain(EXIT_FAILED, "reading the counts: %s", strerror(-err)) : 0;
}

int wall_run(struct oneshot *r, struct session *s)
{
	struct wall w = {
		.one = r,
		.session = s,
		.opts = { .max_ns = UINT64_MAX,
			  .period_ns = NUM_MS,
			  .max_stacks = MAX_STACKS,
			  .states = ~(1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
			  .want_cost_back = true,
			  .kernel_threads = true,
			  .user_threads = true },
	};
	int rc = oneshot_prepare(r);

	session_signals(); /* so that Ctrl-C while tables are made also ends the run cleanly */
	if (!rc)
		rc = check(&w);
	if (!rc)
		rc = collect(&w);
	if (!rc)
		rc = report(&w);
	blocks_close(&w.blocks);
	return rc;
}
