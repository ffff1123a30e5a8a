/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf offcpu: where threads are blocked, for how long, and who ends it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "tools/blocks.h"
#include "tools/offcpu_tables.h"
#include "tools/oneshot.h"
#include "tools/terminal.h"
#include "tools/tools.h"

enum { OPT_STATE = OPT_TOOL, OPT_WAKERS, OPT_CHAINS, OPT_HIST, OPT_THREADS, OPT_STACKS, OPT_PERIOD, OPT_THIN, OPT_WHERE, OPT_KTHREADS, OPT_UTHREADS };

#define ON_CPU "Fce"	/* common options that have no meaning here */

/* Without --thin: shares of all CPUs' time that the BPF programs take. A database loses about twice its share of them. */
#define COST_HIGH 0.01
#define COST_LOW 0.003
#define COST_NS (200 * NUM_MS)
#define THIN_MOST (256 * OFFCPU_THIN_MIN)	/* then it is the switches that cost, not the blocks */

static const struct option_spec options[] = {
	{ 'm', "min-block-time", "TIME", "only blocks that last at least so long (100us, 5ms; 250: microseconds)" },
	{ 'M', "max-block-time", "TIME", "only blocks that last at most so long" },
	{ OPT_STATE, "state", "S,D,...", "why a thread is off, by ps's letters: S sleeping, D uninterruptible,\n"
	  "                                R runnable, T stopped, t traced, P parked, I idle kernel thread\n"
	  "                                (default all but R and I)" },
	{ OPT_WAKERS, "wakers", NULL, "behind the stack: --, and the stack that ended the block" },
	{ OPT_CHAINS, "chains", NULL, "with --wakers: and behind it those that had woken the waker, three in all" },
	{ OPT_HIST, "hist", NULL, "histograms of the block times of the stacks with most of it (text)" },
	{ OPT_THREADS, "threads", NULL, "totals of each thread (text)" },
	{ OPT_UTHREADS, "user-threads-only", NULL, "no kernel threads (-u in bcc's offcputime)" },
	{ OPT_KTHREADS, "kernel-threads-only", NULL, "only kernel threads (-k there)" },
	{ OPT_STACKS, "stacks", "N", "distinct stacks to count in the kernel at a time, and four times as many\n"
	  "                                in all; more are sampled (default 32768)" },
	{ OPT_PERIOD, "period", "TIME", "... one sample each so much of a thread's blocked time (default 1ms)" },
	{ OPT_THIN, "thin", "TIME", "sample shorter blocks, one each so much of a thread's blocked time: costs\n"
	  "                                less, sums stay right; 0: none is left out (default: as far as it takes to\n"
	  "                                stay below 1 % of the CPUs' time, at most 12.8ms; 0 with --take leave)" },
	{ OPT_WHERE, "take", "back|leave", "where stacks are taken (default: back if the kernel has sched_exit_tp)" },
	ONESHOT_OPTIONS,
	{ 0 },
};

static const struct tool_spec spec = {
	.name = "offcpu",
	.usage = "offcpu [options] [SECONDS] [-- COMMAND [ARG...]]",
	.summary = "Measures how long threads are off the CPU, by user and kernel stack, until Ctrl-C,\n"
		   "for SECONDS, or while COMMAND and its descendants run. A block lasts until the thread\n"
		   "runs again; with R among the states, its wait for a CPU is R. Values are microseconds.\n"
		   "Formats as with record.",
	.options = options,
	.common = true,
	.without = ON_CPU,
	.examples = "  sudo sfbpf offcpu -p 1234 -o off.folded 10      one process, 10 seconds\n"
		    "  sudo sfbpf offcpu -m 1ms --state D 10           uninterruptible for a millisecond or more\n"
		    "  sudo sfbpf offcpu --wakers -- ./program arg     and who woke it\n",
};

struct offcpu_tool {
	struct oneshot one;
	struct offcpu_opts opts;
	struct blocks blocks;
	struct session *session;
	uint64_t thin_ns, thinnest_ns;
	bool thin_said;			/* by --thin */
	bool limited;			/* see limit_cost */
	uint64_t cost_at_ns, cost_ns;	/* when the programs' time was last looked at, and what it was */
};

static int take_states(const char *arg, uint32_t *ret)
{
	static const char letters[] = SF_OFF_LETTERS;
	uint32_t states = 0;

	for (const char *p = arg; ; p++) {
		const char *at = *p ? strchr(letters, *p) : NULL;

		if (!at)
			return complain(EXIT_USAGE, "--state: '%s' is not a list of states (S,D,R,T,t,P,I)", arg);
		states |= 1u << (at - letters);
		if (!*++p)
			break;
		if (*p != ',')
			p--;	/* SD is S,D */
	}
	*ret = states;
	return 0;
}

static int take_time(const char *option, const char *arg, uint64_t *ret)
{
	return num_duration(arg, NUM_US, ret) ? complain(EXIT_USAGE, "%s: '%s' is not a time", option, arg) : 0;
}

static int take_where(const char *arg, enum offcpu_where *ret)
{
	if (strcmp(arg, "back") && strcmp(arg, "leave"))
		return complain(EXIT_USAGE, "--take: back or leave, not '%s'", arg);
	*ret = *arg == 'b' ? OFFCPU_BACK : OFFCPU_LEAVE;
	return 0;
}

static int take_option(struct offcpu_tool *t, int id, const char *arg)
{
	struct offcpu_opts *o = &t->opts;
	uint64_t n;

	switch (id) {
	case 'm':
		return take_time("-m", arg, &o->min_ns);
	case 'M':
		return take_time("-M", arg, &o->max_ns);
	case OPT_PERIOD:
		if (num_duration(arg, NUM_US, &o->period_ns) || !o->period_ns || o->period_ns > NUM_S)
			return complain(EXIT_USAGE, "--period: '%s' is not a time of at most a second", arg);
		return 0;
	case OPT_THIN:
		if (num_duration(arg, NUM_US, &t->thin_ns) || t->thin_ns > OFFCPU_THIN_MAX)
			return complain(EXIT_USAGE, "--thin: '%s' is not a time of at most a second", arg);
		t->thin_said = true;
		return 0;
	case OPT_STATE:
		return take_states(arg, &o->states);
	case OPT_STACKS:
		if (num_u64(arg, 1, 1 << 22, &n))
			return complain(EXIT_USAGE, "--stacks: '%s' is not a number from 1 to 4194304", arg);
		o->max_stacks = (uint32_t)n;
		return 0;
	case OPT_WHERE:
		return take_where(arg, &o->where);
	case OPT_WAKERS:
		o->wakers = true;
		return 0;
	case OPT_CHAINS:
		o->wakers = o->chains = true;
		return 0;
	case OPT_HIST:
		o->hist = true;
		return 0;
	case OPT_THREADS:
		o->threads = true;
		return 0;
	case OPT_UTHREADS:
		o->kernel_threads = false;
		return 0;
	case OPT_KTHREADS:
		o->user_threads = false;
		return 0;
	default:
		if (id < 256 && strchr(ON_CPU, id))
			return complain(EXIT_USAGE, "-%c has no meaning here: nothing is sampled, all blocks are measured", id);
		return oneshot_option(&t->one, id, arg);
	}
}

static int parse(struct offcpu_tool *t, int argc, char **argv)
{
	const char *arg;
	int id, err;

	while ((id = options_next(&spec, argc, argv, &arg)) != -1) {
		if (id == -2)
			exit(EXIT_OK);
		err = id == '?' ? EXIT_USAGE : take_option(t, id, arg);
		if (err)
			return err < 0 ? EXIT_USAGE : err;
	}
	if (t->opts.min_ns > t->opts.max_ns)
		return complain(EXIT_USAGE, "-m is more than -M: no block lasts so");
	if (!t->opts.kernel_threads && !t->opts.user_threads)
		return complain(EXIT_USAGE, "--user-threads-only and --kernel-threads-only leave nothing");
	if (!t->opts.user_threads && !t->one.common.collect.kernel)
		return complain(EXIT_USAGE, "--kernel-threads-only and -U leave nothing: kernel threads have no user stacks");
	err = oneshot_operands(&t->one, argc, argv);
	t->one.common.collect.offcpu = &t->opts;
	return err;
}

static int report(struct offcpu_tool *t, struct session *s)
{
	struct run_stats stats;
	char host[256] = "";
	struct out_meta meta = { .event = "off-cpu", .host = host, .start_unix_ns = s->start_unix_ns };
	struct out_report rep = {
		.profile = s->profile, .symbols = s->symbols, .modules = s->modules, .meta = &meta, .stats = &stats,
		.opts = { .user_only = !t->one.common.collect.kernel, .kernel_only = !t->one.common.collect.user, .usec = true,
			  .columns = t->one.out == stdout ? terminal_columns() : 0 },
		.wakers = t->blocks.wakers,
	};
	int err;

	err = oneshot_debug(&t->one, s, t->blocks.wakers);
	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	session_stats(s, s->profile, &stats);
	blocks_stats(&t->blocks, &stats);
	err = oneshot_begin(&t->one);
	if (err)
		return err;
	err = t->one.format->write(&rep, t->one.out);
	if (!err && !strcmp(t->one.format->name, "text"))
		err = offcpu_tables(&rep, &t->blocks, &t->opts, t->one.out);
	if (err)
		return complain(EXIT_FAILED, "writing the output: %s", strerror(-err));
	session_stats(s, s->profile, &stats);	/* with the symbols' own cost */
	blocks_stats(&t->blocks, &stats);
	if (t->one.stats)
		err = out_stats(&stats, t->one.stats);
	if (err)
		return complain(EXIT_FAILED, "writing %s: %s", t->one.common.stats, strerror(-err));
	oneshot_say_losses(&stats);
	return 0;
}

static void say_how(const struct offcpu_tool *t, struct session *s)
{
	struct offcpu_totals totals;
	struct collector_counters c;

	collector_counters(s->collector, &c);
	offcpu_totals(collector_offcpu(s->collector), &totals);
	if (c.off_no_state)
		fprintf(stderr, "sfbpf: %" PRIu64 " threads are not seen: no memory for their state\n", c.off_no_state);
	if (t->thinnest_ns && totals.sampled_ns)
		fprintf(stderr, "sfbpf: %.1f ms of blocked time are sampled, one each %g ms or less: to measure all blocks costs more than %g %% of the CPUs' time "
			"(--thin 0)\n", (double)(totals.sampled_ns + t->blocks.sampled_ns) / 1e6, (double)t->thinnest_ns / 1e6, 100 * COST_HIGH);
	else if (t->thin_ns && totals.sampled_ns)
		fprintf(stderr, "sfbpf: %.1f ms of blocked time are sampled, not counted (--thin, --stacks)\n",
			(double)(totals.sampled_ns + t->blocks.sampled_ns) / 1e6);
	else if (totals.sampled_ns || t->blocks.sampled_ns)
		fprintf(stderr, "sfbpf: more than %" PRIu64 " stacks: %.1f ms of blocked time are sampled, not counted (--stacks)\n",
			totals.full_at, (double)(totals.sampled_ns + t->blocks.sampled_ns) / 1e6);
	if (totals.threads_full)
		fprintf(stderr, "sfbpf: more than %" PRIu64 " threads: %" PRIu64 " blocks are not in the table of threads (--stacks)\n",
			totals.full_at, totals.threads_full);
	if (totals.lost_ns)
		fprintf(stderr, "sfbpf: %.1f ms of blocked time are lost\n", (double)totals.lost_ns / 1e6);
	if (t->one.common.collect.verbose)
		fprintf(stderr, "sfbpf: stacks are taken %s; %" PRIu64 " distinct ones, the maps were emptied %" PRIu64 " times; "
			"those of sleeping threads can%s be read\n", totals.at_leave ? "when a thread leaves the CPU" : "when a thread is back",
			totals.stacks, totals.generations, totals.remote ? "" : "not");
}

/* Blocks shorter than thin_ns are sampled, if measuring all of them costs too much. */
static void limit_cost(struct offcpu_tool *t)
{
	uint64_t now = session_now(), since = now - t->cost_at_ns;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct collector_counters c;
	double share;

	if (t->cost_at_ns && since < COST_NS)
		return;
	collector_counters(t->session->collector, &c);
	share = (double)(c.run_ns - t->cost_ns) / (double)since / (double)(cpus > 0 ? cpus : 1);
	t->cost_ns = c.run_ns;
	if (!t->cost_at_ns)
		share = 0;
	t->cost_at_ns = now;
	if (share > COST_HIGH && t->thin_ns < THIN_MOST)
		t->thin_ns = offcpu_thinner(t->thin_ns);
	else if (share < COST_LOW && t->thin_ns)
		t->thin_ns = offcpu_denser(t->thin_ns);
	else
		return;
	offcpu_thin(collector_offcpu(t->session->collector), t->thin_ns);
	if (t->thin_ns > t->thinnest_ns)
		t->thinnest_ns = t->thin_ns;
}

static int tick(void *ctx)
{
	struct offcpu_tool *t = ctx;

	if (t->limited)
		limit_cost(t);
	return blocks_tick(&t->blocks);
}

static int run(struct offcpu_tool *t, struct session *s)
{
	struct offcpu_totals totals;
	int err = oneshot_prepare(&t->one);

	if (!err && (t->opts.hist || t->opts.threads) && strcmp(t->one.format->name, "text"))
		return complain(EXIT_USAGE, "--hist and --threads are tables: --format text");
	t->opts.want_cost_back = !t->thin_said;
	if (!err)
		err = session_open(s, &t->one.common.collect);
	if (err)
		return err;
	t->session = s;
	offcpu_totals(collector_offcpu(s->collector), &totals);
	t->limited = !t->thin_said && !totals.at_leave;	/* blocks are sampled by their number there, whatever their length */
	if (blocks_open(&t->blocks, s, t->opts.wakers))
		return complain(EXIT_FAILED, "out of memory");
	t->blocks.max_stacks = 4 * (size_t)t->opts.max_stacks;
	t->blocks.period_ns = t->opts.period_ns;
	offcpu_thin(collector_offcpu(s->collector), t->thin_ns);
	t->one.tick = tick;
	t->one.tick_ctx = t;
	err = oneshot_sample(&t->one, s);
	if (err)
		return err;
	err = blocks_merge(&t->blocks);
	if (err)
		return complain(EXIT_FAILED, "reading the counts: %s", strerror(-err));
	err = report(t, s);
	say_how(t, s);
	return err;
}

int tool_offcpu(int argc, char **argv)
{
	struct offcpu_tool t = {
		.opts = {
			.max_ns = UINT64_MAX, .period_ns = NUM_MS, .max_stacks = 32768,
			.states = ~(1u << SF_OFF_R | 1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
			.kernel_threads = true, .user_threads = true,
		},
	};
	struct session s = { 0 };
	int rc;

	common_opts_init(&t.one.common, 99);
	rc = parse(&t, argc, argv);
	if (!rc)
		rc = run(&t, &s);
	blocks_close(&t.blocks);
	session_close(&s);
	return oneshot_close(&t.one, rc);
}
