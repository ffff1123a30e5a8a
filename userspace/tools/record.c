/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf record: profiles for a while, then writes the profile. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "cli/tools.h"
#include "out/out.h"
#include "tools/record_wall.h"
#include "tools/run.h"

static const struct option_spec options[] = {
	ONESHOT_OPTIONS,
	{ OPT_APART, "threads", NULL, ONESHOT_THREADS },
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
	{ OPT_CRITICAL, "critical", NULL,
	  "with --wall: write the critical path of one thread (-p: the main one; -t; COMMAND): "
	  "where it waited, what the thread that woke it did meanwhile, and so on; the sum is the "
	  "elapsed time" },
	{ OPT_LATENCY, "latency", NULL,
	  "weigh samples by elapsed time instead of CPU time: each counts for its period divided "
	  "by the number of threads of its process that run at that moment, in microseconds" },
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
		"and --timeline) or perfetto (.pftrace). A recording (.sfb) keeps everything: "
		"'sfbpf report' writes all other formats from it. Several -o write several "
		"formats. The default is text on a terminal and folded elsewhere.",
	.options = options,
	.common = true,
	.mixed = true,
	.examples = "  sudo sfbpf record -o cpu.folded 10       all processes, 10 seconds\n"
		    "  sudo sfbpf record -p 1234 -F 999 5       one process, at 999 Hz\n"
		    "  sudo sfbpf record -o run.sfb -o run.html 10\n"
		    "                                           for report, and a flame graph\n"
		    "  sudo sfbpf record -- ./program arg       a program from start to end\n"
		    "  sudo sfbpf record --timeline -o run.json.gz 10\n"
		    "                                           for profiler.firefox.com\n"
		    "  sudo sfbpf record --wall -p 1234 -o wall.html 10\n"
		    "                                           where its threads' time went\n"
		    "  sudo sfbpf record --wall -o run.pftrace 10\n"
		    "                                           with times and wakers\n",
	.run = record_run,
};

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

static void opened(struct oneshot *r)
{
	r->event = r->common.collect.latency ? "latency" : r->common.collect.events->text;
	r->hz = (double)r->common.collect.hz;
	if (r->common.events.n > 1) {
		r->groups = r->common.events.names;
		r->ngroups = r->common.events.n;
	}
	if (r->by_thread)
		profile_by_thread(r->session.profile);
	if (r->slices_wanted)
		r->session.slices = &r->slices;
}

static void say(struct oneshot *r, const struct run_stats *st)
{
	(void)st;
	run_say_timeline(r);
	if (r->common.collect.verbose)
		say_work(&r->session);
}

static const struct run_hooks hooks = { .things = "samples", .opened = opened, .say = say };

static int take_option(void *ctx, int id, const char *arg)
{
	struct oneshot *r = ctx;

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
	case OPT_CRITICAL:
		r->critical = true;
		return 0;
	case OPT_LATENCY:
		r->common.collect.latency = true;
		return 0;
	case OPT_STATE_AT:
		r->state_at = !strcmp(arg, "leaf")   ? OUT_WALL_LEAF
			      : !strcmp(arg, "root") ? OUT_WALL_ROOT
						     : OUT_WALL_NONE;
		return r->state_at
			       ? 0
			       : complain(EXIT_USAGE, "--state-at: '%s' is not leaf or root", arg);
	default:
		return oneshot_option(r, id, arg);
	}
}

/* Takes the thread of --critical. Its path leads to other threads, so all of them are recorded. */
static int choose_thread(struct oneshot *r)
{
	struct collector_opts *o = &r->common.collect;
	size_t n = o->npids + o->ntids;

	if (n != !r->command)
		return complain(EXIT_USAGE, "--critical follows one thread: give it one process "
					    "(-p), one thread (-t) or a command");
	if (n)
		r->critical_tid = o->npids ? r->common.pids[0] : r->common.tids[0];
	o->npids = o->ntids = 0;
	r->system_wide = true;
	if (common_opts_filter(&r->common) || !o->kernel || !o->user)
		return complain(EXIT_USAGE, "--critical follows a thread to all that it waits for: "
					    "filters, -U and -K would cut the path");
	return 0;
}

static int parse(struct oneshot *r, int argc, char **argv)
{
	int err = options_parse(&record_tool, argc, argv, take_option, r);

	if (err)
		return err;
	r->command = optind < argc ? argv + optind : NULL;
	if (r->wall == OUT_WALL_NONE && (r->state_at || r->exact || r->critical || r->min_block))
		return complain(EXIT_USAGE, "%s needs --wall",
				r->state_at   ? "--state-at"
				: r->exact    ? "--exact"
				: r->critical ? "--critical"
					      : "-m");
	if (r->common.collect.latency && r->wall)
		return complain(EXIT_USAGE, "--latency divides CPU time, and --wall has all time: "
					    "use one of them");
	if (r->wall && r->state_at)
		r->wall = r->state_at;
	err = common_opts_check(&r->common);
	if (!err && r->critical)
		err = choose_thread(r);
	if (!err && r->common.collect.latency &&
	    (!events_are_clock(&r->common.events) || !r->common.collect.hz))
		return complain(EXIT_USAGE,
				"--latency adds times, so it needs -e cpu-clock and a "
				"frequency, not %s",
				r->common.collect.hz ? r->common.events.text : "-c");
	return err;
}

static int record_run(int argc, char **argv)
{
	struct oneshot r = { .has_times = true, .min_block_ns = NUM_MS };
	int rc;

	common_opts_init(&r.common, 99);
	oneshot_keep_line(&r, argc, argv);
	rc = parse(&r, argc, argv);
	if (!rc)
		rc = run_once(&r, r.wall ? &wall_hooks : &hooks);
	return run_end(&r, rc);
}
