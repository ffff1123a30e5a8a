/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf record: profile for a while, write what was seen. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "out/out.h"
#include "tools/oneshot.h"
#include "tools/session.h"
#include "tools/terminal.h"
#include "tools/tools.h"

static const struct option_spec options[] = {
	ONESHOT_OPTIONS,
	{ 0 },
};

static const struct tool_spec spec = {
	.name = "record",
	.usage = "record [options] [SECONDS] [-- COMMAND [ARG...]]",
	.summary = "Samples user and kernel stacks of all processes (or those chosen), until Ctrl-C,\n"
		   "for SECONDS, or while COMMAND and its descendants run. Formats: folded, json, text,\n"
		   "by --format or the suffix of -o; else text on a terminal, and folded elsewhere.",
	.options = options,
	.common = true,
	.examples = "  sudo sfbpf record -o cpu.folded 10       all processes, 10 seconds\n"
		    "  sudo sfbpf record -p 1234 -F 999 5       one process, at 999 Hz\n"
		    "  sudo sfbpf record -- ./program arg       a program from start to end\n",
};

static int report(struct oneshot *r, struct session *s)
{
	struct run_stats stats;
	char host[256] = "";
	struct out_meta meta = {
		.event = r->common.collect.event->name, .hz = (double)r->common.collect.hz,
		.host = host, .start_unix_ns = s->start_unix_ns,
	};
	struct out_report rep = {
		.profile = s->profile, .symbols = s->symbols, .modules = s->modules, .meta = &meta, .stats = &stats,
		.opts = { .user_only = !r->common.collect.kernel, .kernel_only = !r->common.collect.user,
			  .columns = r->out == stdout ? terminal_columns() : 0 },
	};
	int err;

	err = oneshot_debug(r, s, NULL);
	if (err)
		return err;
	gethostname(host, sizeof(host) - 1);
	session_stats(s, s->profile, &stats);
	err = oneshot_begin(r);
	if (err)
		return err;
	err = r->format->write(&rep, r->out);
	if (err)
		return complain(EXIT_FAILED, "writing %s: %s", r->common.output ? r->common.output : "the output", strerror(-err));
	session_stats(s, s->profile, &stats);	/* with the symbols' own cost */
	if (r->stats) {
		err = out_stats(&stats, r->stats);
		if (err)
			return complain(EXIT_FAILED, "writing %s: %s", r->common.stats, strerror(-err));
	}
	return 0;
}

static void say_work(struct session *s)
{
	struct collector_counters c;
	double n;

	collector_counters(s->collector, &c);
	n = c.taken ? (double)c.taken : 1;
	fprintf(stderr, "sfbpf: a sample took %.1f walks of the VMA tree, %.1f reads of the stack, %.1f hits in the cache; "
		"%llu new files\n", (double)c.vma_walks / n, (double)c.window_reads / n, (double)c.cache_hits / n,
		(unsigned long long)c.needs);
}

static int run(struct oneshot *r, struct session *s)
{
	struct run_stats stats;
	int err = oneshot_prepare(r);

	session_signals();	/* a Ctrl-C while tables are made ends the run in order, too */
	if (!err)
		err = session_open(s, &r->common.collect);
	if (!err && r->format->threads)
		profile_by_thread(s->profile);
	if (!err)
		err = oneshot_sample(r, s);
	if (!err)
		err = report(r, s);
	if (err)
		return err;
	session_stats(s, s->profile, &stats);
	oneshot_say_losses(&stats);
	if (r->common.collect.verbose)
		say_work(s);
	return 0;
}

static int parse(struct oneshot *r, int argc, char **argv)
{
	const char *arg;
	int id, err;

	while ((id = options_next(&spec, argc, argv, &arg)) != -1) {
		if (id == -2)
			exit(EXIT_OK);
		err = id == '?' ? EXIT_USAGE : oneshot_option(r, id, arg);
		if (err)
			return err < 0 ? EXIT_USAGE : err;
	}
	return oneshot_operands(r, argc, argv);
}

int tool_record(int argc, char **argv)
{
	struct oneshot r = { 0 };
	struct session s = { 0 };
	int rc;

	common_opts_init(&r.common, 99);
	rc = parse(&r, argc, argv);
	if (!rc)
		rc = run(&r, &s);
	session_close(&s);
	return oneshot_close(&r, rc);
}
