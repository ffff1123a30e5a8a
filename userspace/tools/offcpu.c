/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf offcpu: where threads are blocked, for how long, and which threads wake them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "cli/tools.h"
#include "prof/locks.h"
#include "sym/data_name.h"
#include "tools/run.h"

enum {
	OPT_STATE = OPT_TOOL,
	OPT_WAKERS,
	OPT_CHAINS,
	OPT_LOCKS,
	OPT_HIST,
	OPT_THREADS,
	OPT_STACKS,
	OPT_PERIOD,
	OPT_THIN,
	OPT_WHERE,
	OPT_KTHREADS,
	OPT_UTHREADS
};

#define ON_CPU "Fce" /* common options that apply to samples only */

/* --locks: how often names are looked for: after the first time, twice as long, and so on */
#define LOOK_FIRST_NS (50 * NUM_MS)
#define LOOK_NS	      (500 * NUM_MS)
/* How long a look may take, and the last one */
#define LOOK_MOST_NS  (25 * NUM_MS)
#define LAST_LOOK_NS  NUM_S

struct offcpu_run {
	struct oneshot r; /* first: hooks get its address */
	struct locks locks;
	uint64_t look_ns, wait_ns; /* when to look for names; time until the next look */
};

static const struct option_spec options[] = {
	{ 'm', "min-block-time", "TIME",
	  "ignore blocks shorter than this (100us, 5ms; a plain number is microseconds)" },
	{ 'M', "max-block-time", "TIME", "ignore blocks longer than this" },
	{ OPT_STATE, "state", "STATES",
	  "states to measure, as a list of ps's letters: S sleeping, D uninterruptible, "
	  "R runnable, T stopped, t traced, P parked, I idle kernel thread "
	  "(default: all but R and I)" },
	{ OPT_WAKERS, "wakers", NULL, "append -- and the stack that ended the block" },
	{ OPT_CHAINS, "chains", NULL,
	  "like --wakers, and append the stacks that woke the waker, three in all" },
	{ OPT_LOCKS, "locks", NULL,
	  "show which locks (futexes, and the kernel's) threads waited for, who had them, and, as "
	  "with --wakers, who gave them up (text, JSON)" },
	{ OPT_HIST, "hist", NULL,
	  "print histograms of block times for the stacks with the most blocked time (text)" },
	{ OPT_THREADS, "threads", NULL,
	  "print totals for each thread (text), and " ONESHOT_THREADS },
	{ OPT_UTHREADS, "user-threads-only", NULL,
	  "ignore kernel threads (-u in bcc's offcputime)" },
	{ OPT_KTHREADS, "kernel-threads-only", NULL,
	  "measure only kernel threads (-k in bcc's offcputime)" },
	{ OPT_STACKS, "stacks", "N",
	  "distinct stacks that the kernel counts at a time; four times as many are kept "
	  "in total, further ones are sampled (default 32768)" },
	{ OPT_PERIOD, "period", "TIME",
	  "blocked time between two samples of such further stacks (default 1ms)" },
	{ OPT_THIN, "thin", "TIME",
	  "sample blocks shorter than this, one for each TIME of a thread's blocked time; "
	  "sums remain correct; 0: measure all blocks (default: adapted to keep the cost "
	  "below 1 % of the CPUs, at most 12.8ms; 0 with --take leave)" },
	{ OPT_WHERE, "take", "back|leave",
	  "take the stack when the thread returns to the CPU (back) or leaves it (leave) "
	  "(default: back if the kernel has sched_exit_tp)" },
	ONESHOT_OPTIONS,
	{ 0 },
};

static int offcpu_run(int argc, char **argv);

const struct tool_spec offcpu_tool = {
	.name = "offcpu",
	.usage = "offcpu [options] [SECONDS] [-- COMMAND [ARG...]]",
	.brief = "measure blocked time by stack, and what ended it",
	.summary =
		"Measures how long threads are off the CPU, by user and kernel stack, until "
		"Ctrl-C, for SECONDS, or while COMMAND and its descendants run. A block lasts "
		"until the thread runs again. If the states include R, the wait for a CPU counts "
		"as R. Values are microseconds. The formats are those of record.",
	.options = options,
	.common = true,
	.mixed = true,
	.without = ON_CPU,
	.examples =
		"  sudo sfbpf offcpu -p 1234 -o off.folded 10   one process, 10 seconds\n"
		"  sudo sfbpf offcpu -m 1ms --state D 10        uninterruptible for 1 ms or more\n"
		"  sudo sfbpf offcpu --wakers -- ./program arg  with the stacks that woke it\n"
		"  sudo sfbpf offcpu --locks -p 1234 10         which locks, and who had them\n",
	.run = offcpu_run,
};

static int take_states(const char *arg, uint32_t *ret)
{
	static const char letters[] = SF_OFF_LETTERS;
	uint32_t states = 0;

	for (const char *p = arg;; p++) {
		const char *at = *p ? strchr(letters, *p) : NULL;

		if (!at)
			return complain(EXIT_USAGE,
					"--state: '%s' is not a list of states (S,D,R,T,t,P,I)",
					arg);
		states |= 1u << (at - letters);
		if (!*++p)
			break;
		if (*p != ',')
			p--; /* SD is S,D */
	}
	*ret = states;
	return 0;
}

static int take_where(const char *arg, enum offcpu_where *ret)
{
	if (strcmp(arg, "back") && strcmp(arg, "leave"))
		return complain(EXIT_USAGE, "--take: '%s' is neither back nor leave", arg);
	*ret = *arg == 'b' ? OFFCPU_BACK : OFFCPU_LEAVE;
	return 0;
}

static int take_period(const char *arg, uint64_t *ret)
{
	if (num_duration(arg, NUM_US, ret) || !*ret || *ret > NUM_S)
		return complain(EXIT_USAGE, "--period: '%s' is not a time above 0 and up to 1s",
				arg);
	return 0;
}

static int take_option(void *ctx, int id, const char *arg)
{
	struct oneshot *r = ctx;
	struct offcpu_opts *o = &r->off;
	uint64_t n;

	switch (id) {
	case 'm':
		return options_take_time("-m", arg, &o->min_ns);
	case 'M':
		return options_take_time("-M", arg, &o->max_ns);
	case OPT_PERIOD:
		return take_period(arg, &o->period_ns);
	case OPT_THIN:
		if (num_duration(arg, NUM_US, &r->limit.thin_ns) ||
		    r->limit.thin_ns > OFFCPU_THIN_MAX)
			return complain(EXIT_USAGE, "--thin: '%s' is not a time from 0 to 1s", arg);
		o->want_cost_back = false; /* the cost is not limited */
		return 0;
	case OPT_STATE:
		return take_states(arg, &o->states);
	case OPT_STACKS:
		if (num_u64(arg, 1, 1 << 22, &n))
			return complain(EXIT_USAGE,
					"--stacks: '%s' is not a number from 1 to 4194304", arg);
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
	case OPT_LOCKS:
		o->wakers = o->locks = true;
		return 0;
	case OPT_HIST:
		o->hist = true;
		return 0;
	case OPT_THREADS:
		o->threads = true;
		r->apart = true;
		return 0;
	case OPT_UTHREADS:
		o->kernel_threads = false;
		return 0;
	case OPT_KTHREADS:
		o->user_threads = false;
		return 0;
	default:
		if (id < 256 && strchr(ON_CPU, id))
			return complain(EXIT_USAGE,
					"-%c is not an option of offcpu, which measures blocks and "
					"takes no samples",
					id);
		return oneshot_option(r, id, arg);
	}
}

static int parse(struct oneshot *r, int argc, char **argv)
{
	int err = options_parse(&offcpu_tool, argc, argv, take_option, r);

	if (err)
		return err;
	r->command = optind < argc ? argv + optind : NULL;
	if (r->off.min_ns > r->off.max_ns)
		return complain(EXIT_USAGE, "-m is longer than -M, so no block can match: -m is "
					    "the minimum, -M the maximum");
	if (!r->off.kernel_threads && !r->off.user_threads)
		return complain(EXIT_USAGE, "--user-threads-only and --kernel-threads-only exclude "
					    "each other: use one of them");
	if (!r->off.user_threads && !r->common.collect.kernel)
		return complain(EXIT_USAGE, "--kernel-threads-only and -U exclude each other: "
					    "kernel threads have no user stacks");
	r->common.collect.offcpu = &r->off;
	return common_opts_check(&r->common);
}

static void say_how(struct oneshot *r)
{
	struct session *s = &r->session;
	struct offcpu_totals totals;
	struct collector_counters c;

	collector_counters(s->collector, &c);
	offcpu_totals(collector_offcpu(s->collector), &totals);
	if (c.off_no_state)
		complain(0, "%" PRIu64 " threads are missing: out of memory for their state",
			 c.off_no_state);
	if (r->limit.thinnest_ns && totals.sampled_ns)
		complain(0,
			 "%.1f ms of blocked time are sampled, one block per %g ms or less: "
			 "measuring all blocks would cost more than "
			 "%g %% of the CPUs' time (--thin 0 measures all)",
			 (double)(totals.sampled_ns + r->blocks.sampled_ns) / 1e6,
			 (double)r->limit.thinnest_ns / 1e6, 100 * BLOCKS_COST);
	else if (r->limit.thin_ns && totals.sampled_ns)
		complain(0,
			 "%.1f ms of blocked time are sampled, not counted (--thin, "
			 "--stacks)",
			 (double)(totals.sampled_ns + r->blocks.sampled_ns) / 1e6);
	else if (totals.sampled_ns || r->blocks.sampled_ns)
		complain(0,
			 "more than %" PRIu64
			 " stacks: %.1f ms of blocked time are sampled, not counted (--stacks)",
			 totals.full_at, (double)(totals.sampled_ns + r->blocks.sampled_ns) / 1e6);
	if (totals.threads_full)
		complain(0,
			 "more than %" PRIu64 " threads: %" PRIu64
			 " blocks are not in the table of threads (--stacks)",
			 totals.full_at, totals.threads_full);
	if (totals.lost_ns)
		complain(0, "%.1f ms of blocked time are lost", (double)totals.lost_ns / 1e6);
	if (r->common.collect.verbose)
		complain(0,
			 "stacks are taken %s; %" PRIu64
			 " distinct stacks, the maps were emptied %" PRIu64 " times; "
			 "stacks of sleeping threads can%s be read",
			 totals.at_leave ? "when a thread leaves the CPU" : "when a thread is back",
			 totals.stacks, totals.generations, totals.remote ? "" : "not");
}

static int check(struct oneshot *r)
{
	if ((r->off.hist || r->off.threads) && !oneshot_writes(r, "text") &&
	    !oneshot_writes(r, "recording"))
		return complain(EXIT_USAGE, "--hist and --threads need --format text: they are "
					    "tables of the text output");
	if (r->off.locks && !oneshot_writes(r, "text") && !oneshot_writes(r, "json"))
		return complain(EXIT_USAGE, "--locks needs --format text or json: other formats "
					    "have no locks");
	return 0;
}

/* ---- Locks ---- */

static int name_of(void *session, const struct lock *l, char *ret, size_t cap)
{
	struct session *s = session;

	if (l->kind != SF_LOCK_FUTEX)
		return kernel_data_name(l->addr, ret, cap);
	return data_name(&s->paths, &s->reader, l->pid, l->addr, ret, cap);
}

static void opened(struct oneshot *r)
{
	struct offcpu_run *run = (struct offcpu_run *)r;

	if (r->off.locks)
		r->blocks.locks = &run->locks;
}

/*
 * Names of locks and owners must be looked for while the processes live: soon after the start, and
 * then again and again.
 */
static int tick(struct oneshot *r)
{
	struct offcpu_run *run = (struct offcpu_run *)r;
	uint64_t now = session_now();
	int err;

	if (!r->off.locks || now < run->look_ns)
		return 0;
	err = blocks_merge(&r->blocks);
	locks_look(&run->locks, name_of, &r->session, LOOK_MOST_NS);
	run->wait_ns = run->wait_ns < LOOK_NS / 2 ? run->wait_ns * 2 : LOOK_NS;
	run->look_ns = session_now() + run->wait_ns;
	return err;
}

struct threads_taken {
	struct out_blocks *to;
	int err;
};

static void take_thread(void *ctx, uint32_t tid, const struct sf_off_thread *t)
{
	struct threads_taken *all = ctx;

	if (!all->err)
		all->err = out_blocks_thread(all->to, tid, t);
}

static int collected(struct oneshot *r)
{
	struct offcpu_run *run = (struct offcpu_run *)r;
	struct threads_taken all = { &r->blocked, 0 };
	int err = 0;

	if (r->off.locks) {
		locks_look(&run->locks, name_of, &r->session, LAST_LOOK_NS);
		r->blocked.locks = &run->locks;
	}
	r->blocked.list = r->blocks.info;
	r->blocked.n = r->blocks.ninfo;
	r->blocked.hist = r->off.hist;
	r->blocked.has_threads = r->off.threads;
	if (r->off.threads)
		err = offcpu_threads(collector_offcpu(r->session.collector), take_thread, &all);
	return err ? err : all.err;
}

static int offcpu_run(int argc, char **argv)
{
	static const struct run_hooks hooks = { .things = "blocks",
						.check = check,
						.opened = opened,
						.tick = tick,
						.collected = collected };
	struct offcpu_run run = {
		.r = {
			.off = {
				.max_ns = UINT64_MAX, .period_ns = NUM_MS, .max_stacks = 32768,
				.states = ~(1u << SF_OFF_R | 1u << SF_OFF_I) &
					  ((1u << SF_OFF_STATES) - 1),
				.kernel_threads = true, .user_threads = true,
				.want_cost_back = true,
			},
			.event = "off-cpu",
		},
		.wait_ns = LOOK_FIRST_NS,
	};
	int rc;

	common_opts_init(&run.r.common, 99);
	oneshot_keep_line(&run.r, argc, argv);
	rc = parse(&run.r, argc, argv);
	if (!rc)
		rc = run_once(&run.r, &hooks);
	if (run.r.collected)
		say_how(&run.r);
	rc = run_end(&run.r, rc);
	locks_free(&run.locks);
	return rc;
}
