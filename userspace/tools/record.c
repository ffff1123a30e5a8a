/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf record: profiles for a while, then writes the profile. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "out/out.h"
#include "tools/oneshot.h"
#include "tools/session.h"
#include "tools/terminal.h"
#include "tools/tools.h"
#include "tools/wall.h"

static const struct option_spec options[] = {
	ONESHOT_OPTIONS,
	{ OPT_TIMELINE, "timeline", NULL,
	  "keep the time of each sample, and with --wall of each wait, for the formats firefox "
	  "(.json.gz, the default) and perfetto (.pftrace)" },
	{ OPT_WALL, "wall", NULL,
	  "record the wall clock: samples of running threads, and how long they waited, in "
	  "microseconds" },
	{ 'm', "min-block-time", "TIME",
	  "with --wall and a timeline: show waits of this length or more (100us, 5ms; a plain "
	  "number is microseconds; default 1ms)" },
	{ OPT_EXACT, "exact", NULL,
	  "with --wall: measure the running time of each thread, too; samples divide it among its "
	  "stacks" },
	{ OPT_STATE_AT, "state-at", "leaf|root",
	  "where stacks of --wall have what the thread did: [running], [blocked: futex], ... "
	  "(default: leaf)" },
	{ 0 },
};

static int record_run(int argc, char **argv);

const struct tool_spec record_tool = {
	.name = "record",
	.usage = "record [options] [SECONDS] [-- COMMAND [ARG...]]",
	.brief = "profile for a while and write stacks",
	.summary =
		"Samples user and kernel stacks of all or selected processes, until Ctrl-C, for "
		"SECONDS, or while COMMAND and its descendants run. --format or the suffix of -o "
		"selects the format: folded (.folded, .txt), pprof (.pb.gz), html (.html), svg "
		"(.svg), json (.json) or text; with the times of the samples, firefox (.json.gz "
		"and --timeline) or perfetto (.pftrace). The default is text on a terminal and "
		"folded elsewhere.",
	.options = options,
	.common = true,
	.mixed = true,
	.examples = "  sudo sfbpf record -o cpu.folded 10       all processes, 10 seconds\n"
		    "  sudo sfbpf record -p 1234 -F 999 5       one process, at 999 Hz\n"
		    "  sudo sfbpf record -- ./program arg       a program from start to end\n"
		    "  sudo sfbpf record --timeline -o run.json.gz 10\n"
		    "                                           for profiler.firefox.com\n"
		    "  sudo sfbpf record --wall -p 1234 -o wall.html 10\n"
		    "                                           where its threads' time went\n"
		    "  sudo sfbpf record --wall -o run.pftrace 10\n"
		    "                                           with times and wakers\n",
	.run = record_run,
};

static int report(struct oneshot *r, struct session *s)
{
	struct run_stats stats;
	char host[256] = "";
	struct out_meta meta = {
		.event = r->common.collect.event->name,
		.hz = (double)r->common.collect.hz,
		.host = host,
		.start_unix_ns = s->start_unix_ns,
	};
	struct out_report rep = {
		.profile = s->profile,
		.symbols = s->symbols,
		.modules = s->modules,
		.meta = &meta,
		.stats = &stats,
		.timeline = s->timeline,
		.slices = s->slices,
		.opts = { .by = r->by,
			  .user_only = !r->common.collect.kernel,
			  .kernel_only = !r->common.collect.user,
			  .columns = r->out == stdout ? terminal_columns() : 0 },
	};
	FILE *made;
	int err;

	err = oneshot_debug(r, s, NULL);
	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	session_stats(s, s->profile, &stats);
	made = oneshot_begin();
	if (!made)
		return EXIT_FAILED;
	err = oneshot_end(r, made, r->format->write(&rep, made));
	session_stats(s, s->profile, &stats); /* counts the symbols' own cost, too */
	return err ? err : oneshot_stats(r, &stats);
}

static void say_work(struct session *s)
{
	struct collector_counters c;
	double n;

	collector_counters(s->collector, &c);
	n = c.taken ? (double)c.taken : 1;
	complain(0,
		 "a sample took %.1f walks of the VMA tree, %.1f reads of the stack, "
		 "%.1f hits in the cache; %llu new files",
		 (double)c.vma_walks / n, (double)c.window_reads / n, (double)c.cache_hits / n,
		 (unsigned long long)c.needs);
}

static int run(struct oneshot *r, struct session *s, struct timeline *timeline,
	       struct slices *slices)
{
	struct run_stats stats;
	int err = oneshot_choose(r);

	session_signals(); /* so that Ctrl-C while tables are made also ends the run cleanly */
	if (!err)
		err = oneshot_prepare(r);
	if (!err)
		err = session_open(s, &r->common.collect);
	if (!err && r->format->threads)
		profile_by_thread(s->profile);
	if (!err && r->format->timeline)
		s->timeline = timeline;
	if (!err && r->format->slices)
		s->slices = slices;
	if (!err)
		err = oneshot_sample(r, s);
	if (!err)
		slices_cover(slices, s->end_ns - s->start_ns);
	timeline->start_ns = s->start_ns;
	timeline->suspended_ns = clock_ns(CLOCK_BOOTTIME) - session_now();
	if (!err)
		err = report(r, s);
	if (err)
		return err;
	session_stats(s, s->profile, &stats);
	oneshot_say_result(r, &stats, "samples");
	oneshot_say_timeline(timeline);
	if (r->common.collect.verbose)
		say_work(s);
	return 0;
}

struct record {
	struct oneshot one;
	enum out_wall state_at; /* --state-at; OUT_WALL_NONE: not given */
};

static int take_option(void *ctx, int id, const char *arg)
{
	struct record *t = ctx;
	struct oneshot *r = &t->one;

	switch (id) {
	case OPT_TIMELINE:
		r->timeline = true;
		return 0;
	case 'm':
		r->min_block = true;
		return options_take_time("-m", arg, &r->min_block_ns);
	case OPT_WALL:
		r->wall = OUT_WALL_LEAF;
		return 0;
	case OPT_EXACT:
		r->exact = true;
		return 0;
	case OPT_STATE_AT:
		t->state_at = !strcmp(arg, "leaf")   ? OUT_WALL_LEAF
			      : !strcmp(arg, "root") ? OUT_WALL_ROOT
						     : OUT_WALL_NONE;
		return t->state_at
			       ? 0
			       : complain(EXIT_USAGE, "--state-at: '%s' is not leaf or root", arg);
	default:
		return oneshot_option(r, id, arg);
	}
}

static int parse(struct record *t, int argc, char **argv)
{
	struct oneshot *r = &t->one;
	int err = options_parse(&record_tool, argc, argv, take_option, t);

	if (err)
		return err;
	r->command = optind < argc ? argv + optind : NULL;
	if (r->wall == OUT_WALL_NONE && (t->state_at || r->exact || r->min_block))
		return complain(EXIT_USAGE, "%s needs --wall",
				t->state_at ? "--state-at"
				: r->exact  ? "--exact"
					    : "-m");
	if (r->wall && t->state_at)
		r->wall = t->state_at;
	return common_opts_check(&r->common);
}

static int record_run(int argc, char **argv)
{
	struct record t = { .one = { .has_times = true, .min_block_ns = NUM_MS } };
	struct oneshot *r = &t.one;
	struct timeline timeline = { 0 };
	struct slices slices = { 0 };
	struct session s = { 0 };
	int rc;

	common_opts_init(&r->common, 99);
	rc = parse(&t, argc, argv);
	if (!rc)
		rc = r->wall ? wall_run(r, &s, &timeline) : run(r, &s, &timeline, &slices);
	session_close(&s);
	timeline_free(&timeline);
	slices_free(&slices);
	return oneshot_close(r, rc);
}
