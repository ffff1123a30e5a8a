/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf slow: where slow calls of a function spend more time than typical ones. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "cli/tools.h"
#include "out/out_calls.h"
#include "prof/calls.h"
#include "prof/wait_notes.h"
#include "tools/run.h"

enum { OPT_OVER = OPT_TOOL, OPT_UNTIL, OPT_RETURNS };

#define HZ	   997
#define MAX_STACKS 131072

struct slow {
	struct oneshot r; /* first: hooks get its address */
	const char *what; /* FUNCTION, the user's spelling */
	const char *until;
	char *function; /* the name or pattern in `what`; NULL: none */
	bool returns;
	uint64_t over_ns; /* 0: the slowest 1 % */
	struct events probes;
	struct calls *calls;
	struct out_calls report;
};

static const struct option_spec options[] = {
	{ OPT_OVER, "over", "TIME",
	  "calls of this length or more are slow (10ms, 250us; a plain number is microseconds; "
	  "default: the slowest 1 %)" },
	{ OPT_UNTIL, "until", "EVENT",
	  "a call begins at FUNCTION, which is then an event too, and ends at EVENT of the same "
	  "thread (uprobe:PATH:FUNCTION, usdt:PATH:PROVIDER:NAME)" },
	{ OPT_RETURNS, "return-probes", NULL,
	  "probe returns where the code does not show where a function ends, also in programs "
	  "that an exception through such a probe would end" },
	ONESHOT_OPTIONS,
	{ 0 },
};

static int slow_run(int argc, char **argv);

const struct tool_spec slow_tool = {
	.name = "slow",
	.usage = "slow [options] FUNCTION [SECONDS] [-- COMMAND [ARG...]]",
	.brief = "find out what slow calls of a function do that typical ones do not",
	.summary =
		"Measures calls of FUNCTION, and all that their threads do in them: samples, waits "
		"and their reasons. Slow calls are compared with typical ones. FUNCTION is a "
		"function of the program of -p or COMMAND, PATH:FUNCTION of any program or "
		"library, or usdt:PATH:PROVIDER:NAME for a pair of probes. Values are "
		"microseconds. The formats are those of record; text and JSON have a report on "
		"the calls, stacks in the others begin with [typical] or [slow].",
	.options = options,
	.common = true,
	.mixed = true,
	.without = "ce",
	.examples = "  sudo sfbpf slow handle_order -p 1234 30      the slowest 1 % of its calls\n"
		    "  sudo sfbpf slow --over 10ms Pool::get -p shop -o slow.html 30\n"
		    "                                               calls of 10 ms or more\n"
		    "  sudo sfbpf slow libc.so.6:fsync 10           of all processes\n"
		    "  sudo sfbpf slow parse -- ./program file      while a command runs\n",
	.run = slow_run,
};

/* ---- What is called ---- */

/*
 * The spelling of the probe at the other end: "start" at the end of the name becomes "done". NULL:
 * none is known, or out of memory. The caller frees it.
 */
static char *other_end(const char *usdt)
{
	static const struct {
		const char *begin, *end;
	} pairs[] = { { "entry", "return" },
		      { "start", "done" },
		      { "begin", "end" },
		      { "enter", "exit" },
		      { "request", "reply" } };
	size_t len = strlen(usdt);
	char *ret = NULL;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		size_t cut = strlen(pairs[i].begin);

		if (len > cut && !strcmp(usdt + len - cut, pairs[i].begin))
			return asprintf(&ret, "%.*s%s", (int)(len - cut), usdt, pairs[i].end) < 0
				       ? NULL
				       : ret;
	}
	return NULL;
}

/* Whether it begins with the name of a file: "libc.so.6:fsync", but not "Pool::get". */
static bool has_path(const char *what)
{
	const char *colon = strchr(what, ':');

	return colon && colon > what && colon[1] != ':' && colon[1];
}

/* The spelling of the event. NULL: out of memory, or the file is not known. */
static char *spell(const struct slow *s)
{
	const struct collector_opts *o = &s->r.common.collect;
	char *ret = NULL;
	int n = -1;

	if (event_is_probe(s->what))
		return strdup(s->what);
	if (has_path(s->what))
		n = asprintf(&ret, "uprobe:%s", s->what);
	else if (s->r.command)
		n = asprintf(&ret, "uprobe:%s:%s", s->r.command[0], s->what);
	else if (o->npids)
		n = asprintf(&ret, "uprobe:/proc/%u/exe:%s", o->pids[0], s->what);
	return n < 0 ? NULL : ret;
}

static int add_probes(struct slow *s, const char *entry, const char *exit)
{
	char why[512];

	return events_add_calls(&s->probes, entry, exit, s->returns, why, sizeof(why))
		       ? complain(EXIT_USAGE, "%s", why)
		       : 0;
}

/* A USDT probe that begins something */
static int add_usdt(struct slow *s, const char *entry)
{
	char *exit = other_end(entry);
	int err = exit ? add_probes(s, entry, exit)
		       : complain(EXIT_USAGE,
				  "%s: which probe is the end of the call? Name it with --until",
				  entry);

	free(exit);
	return err;
}

static int choose_probes(struct slow *s)
{
	char *entry = spell(s);
	const char *last;
	int err;

	if (!entry)
		return complain(EXIT_USAGE,
				"%s: a function of which program? Use -p, a command, or "
				"PATH:FUNCTION",
				s->what);
	if (s->until || strncmp(entry, "usdt:", 5))
		err = add_probes(s, entry, s->until);
	else
		err = add_usdt(s, entry);
	last = err || s->probes.v[0].usdt ? NULL : s->probes.v[0].what;
	s->function = last ? strdup(last) : NULL;
	free(entry);
	return err;
}

/* ---- The run ---- */

static void take(void *ctx, const struct sf_sample *rec)
{
	struct slow *s = ctx;
	struct session *session = &s->r.session;
	uint64_t parked_ns = (rec->weight >> 32) * NUM_US;
	struct profile_times t = { .count = 1, .state = parked_ns ? SF_OFF_S : PROFILE_RUNNING };
	struct calls_piece piece = { .number = (uint32_t)rec->weight,
				     .start_ns = rec->time_ns - parked_ns,
				     .woken_ns = rec->time_ns,
				     .end_ns = rec->time_ns };
	size_t stack;

	if (rec->type == SF_REC_BLOCK) {
		blocks_take(&s->r.blocks, rec);
		return;
	}
	session_name_process(session, session->profile, rec);
	if (profile_add_times(session->profile, session_see(session, rec), &t, &stack)) {
		session->dropped++;
		return;
	}
	piece.stack = (uint32_t)stack;
	calls_piece(s->calls, &piece);
}

static void take_call(void *ctx, const struct sf_call *rec)
{
	calls_end(((struct slow *)ctx)->calls, rec);
}

static void take_wait(void *ctx, const struct sf_off_single *rec, uint32_t stack)
{
	struct slow *s = ctx;
	uint64_t woken = rec->state == SF_OFF_R ? rec->start_ns : rec->woken_ns;

	calls_piece(s->calls, &(struct calls_piece){ .number = rec->call,
						     .stack = stack,
						     .start_ns = rec->start_ns,
						     .woken_ns = woken,
						     .end_ns = rec->end_ns });
}

/* Checks the options, and says what is measured. */
static int check(struct oneshot *r)
{
	struct slow *s = (struct slow *)r;
	struct collector_opts *o = &r->common.collect;

	if (oneshot_writes(r, "recording"))
		return complain(EXIT_USAGE, "a recording has no place for calls: use one of the "
					    "other formats");
	s->calls = calls_new(s->over_ns);
	if (!s->calls)
		return complain(EXIT_FAILED, "out of memory");
	r->off = (struct offcpu_opts){
		.max_ns = UINT64_MAX,
		.period_ns = NUM_MS,
		.max_stacks = MAX_STACKS,
		.states = ~(1u << SF_OFF_I) & ((1u << SF_OFF_STATES) - 1),
		.kernel_threads = false,
		.user_threads = true,
		.singles = true,
	};
	o->offcpu = &r->off;
	o->wall = true;
	o->calls = &s->probes;
	o->call = take_call;
	o->call_ctx = s;
	r->wall = OUT_WALL_LEAF;
	r->groups = out_calls_groups;
	r->ngroups = CALLS_GROUPS;
	r->event = "wall-clock";
	r->hz = (double)o->hz;
	return 0;
}

static void opened(struct oneshot *r)
{
	r->session.take = take;
	r->session.take_ctx = r;
	r->blocks.no_info = true;
	r->blocks.single = take_wait;
	r->blocks.single_ctx = r;
	if (((struct slow *)r)->over_ns)
		collector_calls_over(r->session.collector, ((struct slow *)r)->over_ns);
}

static int tick(struct oneshot *r)
{
	struct slow *s = (struct slow *)r;
	struct sf_call_stats all;
	int err = calls_turn(s->calls, false);

	if (err || s->over_ns)
		return err;
	err = collector_calls(r->session.collector, &all);
	if (!err)
		collector_calls_over(r->session.collector, calls_keep_over(s->calls, &all));
	return err;
}

/* Replaces the profile by one of the calls. */
static int collected(struct oneshot *r)
{
	struct slow *s = (struct slow *)r;
	struct profile *grouped = profile_new();
	struct sf_call_stats all;
	int err = grouped ? collector_calls(r->session.collector, &all) : -ENOMEM;

	if (!err)
		err = calls_turn(s->calls, true);
	if (!err) {
		calls_finish(s->calls, &all, &s->report.result);
		err = calls_profile(s->calls, r->session.profile, grouped);
	}
	if (err) {
		profile_free(grouped);
		return err;
	}
	s->report.what = s->what;
	s->report.function = s->function;
	s->report.start_ns = r->session.start_ns;
	s->report.pieces = r->session.profile;
	r->session.profile = r->blocks.profile = grouped;
	r->calls = &s->report;
	return 0;
}

static void say(struct oneshot *r, const struct run_stats *st)
{
	const struct calls_result *c = &((struct slow *)r)->report.result;
	struct offcpu_totals totals;

	(void)st;
	offcpu_totals(collector_offcpu(r->session.collector), &totals);
	if (c->all.abandoned)
		complain(0, "%llu calls were left without a return: by longjmp or an exception",
			 (unsigned long long)c->all.abandoned);
	if (c->all.lost)
		complain(0, "%llu calls are lost, they count as typical: use a larger --ring-size",
			 (unsigned long long)c->all.lost);
	if (c->all.no_room)
		complain(0, "%llu calls are not measured: out of memory",
			 (unsigned long long)c->all.no_room);
	if (c->missing || totals.singles_lost)
		complain(0,
			 "%llu samples and waits in calls are not in the result: their time is "
			 "shown as running",
			 (unsigned long long)(c->missing + totals.singles_lost));
}

/* ---- The command line ---- */

static int take_option(void *ctx, int id, const char *arg)
{
	struct slow *s = ctx;

	switch (id) {
	case OPT_OVER:
		if (options_take_time("--over", arg, &s->over_ns))
			return EXIT_USAGE;
		return s->over_ns ? 0 : complain(EXIT_USAGE, "--over: it must be above 0");
	case OPT_UNTIL:
		return options_take_once("--until", arg, &s->until);
	case OPT_RETURNS:
		s->returns = true;
		return 0;
	case OPT_OPERAND:
		if (!s->what) {
			s->what = arg;
			return 0;
		}
		return oneshot_option(&s->r, id, arg);
	case 'c':
	case 'e':
		return complain(EXIT_USAGE,
				"-%c is not an option of slow, which samples by time (-F)", id);
	default:
		return oneshot_option(&s->r, id, arg);
	}
}

static int parse(struct slow *s, int argc, char **argv)
{
	int err = options_parse(&slow_tool, argc, argv, take_option, s);

	if (err)
		return err;
	s->r.command = optind < argc ? argv + optind : NULL;
	if (!s->what)
		return complain(EXIT_USAGE, "which function? See 'sfbpf slow --help'");
	err = common_opts_check(&s->r.common);
	return err ? err : choose_probes(s);
}

static int slow_run(int argc, char **argv)
{
	static const struct run_hooks hooks = { .things = "samples and blocks",
						.check = check,
						.opened = opened,
						.tick = tick,
						.collected = collected,
						.say = say };
	struct slow s = { .what = NULL };
	int rc;

	common_opts_init(&s.r.common, HZ);
	oneshot_keep_line(&s.r, argc, argv);
	rc = parse(&s, argc, argv);
	if (!rc)
		rc = run_once(&s.r, &hooks);
	rc = run_end(&s.r, rc);
	profile_free(s.report.pieces);
	calls_free(s.calls);
	events_free(&s.probes);
	free(s.function);
	return rc;
}
