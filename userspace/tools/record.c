/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf record: profile for a while, write what was seen. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "out/out.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/session.h"
#include "tools/tools.h"

#define POLL_MS 100

static const struct option_spec options[] = {
	{ 'a', "all", NULL, "with a COMMAND: everything that runs meanwhile, not only it" },
	{ 'd', "duration", "SECONDS", "the same as the operand SECONDS" },
	{ OPT_STATS, "stats", "FILE", "the run's account as JSON (- is the standard output)" },
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

struct record {
	struct common_opts common;
	const struct out_format *format;
	FILE *out, *stats;
	uint64_t duration_ns;		/* 0: until something else ends it */
	bool system_wide;
	char **command;			/* NULL: none */
	struct command child;
};

static int parse(struct record *r, int argc, char **argv)
{
	const char *arg, *seconds = NULL;
	bool dashes = false;
	int id, err;

	while ((id = options_next(&spec, argc, argv, &arg)) != -1) {
		if (id == -2)
			exit(EXIT_OK);
		if (id == '?')
			return EXIT_USAGE;
		if (id == 'a') {
			r->system_wide = true;
		} else if (id == OPT_STATS) {
			r->common.stats = arg;
		} else if (id == 'd') {
			seconds = arg;
		} else {
			err = common_opts_take(&r->common, id, arg);
			if (err)
				return err < 0 ? EXIT_USAGE : err;
		}
	}
	dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	if (!dashes && optind < argc && strcmp(argv[optind], "--")) {
		seconds = argv[optind++];
		dashes = optind < argc && !strcmp(argv[optind], "--");
		optind += dashes;
		if (!dashes && optind < argc)
			return complain(EXIT_USAGE, "unexpected '%s' (a command goes behind --)", argv[optind]);
	} else if (!dashes && optind < argc) {
		optind++;
		dashes = true;
	}
	if (dashes && optind == argc)
		return complain(EXIT_USAGE, "no command behind --");
	r->command = dashes ? &argv[optind] : NULL;
	if (seconds && (num_duration(seconds, NUM_S, &r->duration_ns) || !r->duration_ns))
		return complain(EXIT_USAGE, "'%s' is not a duration", seconds);
	return common_opts_check(&r->common);
}

static int choose_format(struct record *r)
{
	const struct common_opts *o = &r->common;
	bool to_stdout = !o->output || !strcmp(o->output, "-");
	bool tty = to_stdout && isatty(STDOUT_FILENO);

	if (o->format)
		r->format = out_format_named(o->format);
	else if (to_stdout)
		r->format = out_format_named(tty ? "text" : "folded");
	else if (!(r->format = out_format_for_path(o->output)))
		r->format = out_format_named("folded");
	if (!r->format) {
		fprintf(stderr, "sfbpf: unknown format '%s'; known:", o->format);
		for (size_t i = 0; out_format_at(i); i++)
			fprintf(stderr, " %s", out_format_at(i)->name);
		fputc('\n', stderr);
		return EXIT_USAGE;
	}
	if (tty && r->format->binary)
		return complain(EXIT_USAGE, "%s is a binary format: not on a terminal (use -o FILE)", r->format->name);
	return 0;
}

/* Before sampling, so that a path that cannot be written costs nobody's time. */
static int open_file(const char *path, FILE **ret)
{
	if (!path || !strcmp(path, "-")) {
		*ret = stdout;
		return 0;
	}
	*ret = fopen(path, "we");
	return *ret ? 0 : complain(EXIT_FAILED, "cannot write '%s': %s", path, strerror(errno));
}

static int open_outputs(struct record *r)
{
	int err = open_file(r->common.output, &r->out);

	if (!err && r->common.stats)
		err = open_file(r->common.stats, &r->stats);
	return err;
}

/* With -p or -t: whether any of the targets still runs. */
static bool targets_alive(const struct collector_opts *o)
{
	char path[64];

	if (!o->npids && !o->ntids)
		return true;
	for (size_t i = 0; i < o->npids + o->ntids; i++) {
		snprintf(path, sizeof(path), "/proc/%u", i < o->npids ? o->pids[i] : o->tids[i - o->npids]);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

static int sample(struct record *r, struct session *s)
{
	const volatile sig_atomic_t *stop = session_signals();
	int err = session_start(s);

	if (err)
		return err;
	if (r->command && command_go(&r->child))
		return complain(EXIT_FAILED, "cannot run '%s': %s", r->command[0], strerror(errno));
	while (!*stop) {
		uint64_t run_ns = session_now() - s->start_ns;
		int wait_ms = POLL_MS;

		if (r->duration_ns) {
			if (run_ns >= r->duration_ns)
				break;
			if ((r->duration_ns - run_ns) / NUM_MS < POLL_MS)
				wait_ms = (int)((r->duration_ns - run_ns) / NUM_MS) + 1;
		}
		if (r->command && command_ended(&r->child))
			break;
		if (!r->command && !targets_alive(&r->common.collect))
			break;
		err = session_poll(s, wait_ms);
		if (err)
			return complain(EXIT_FAILED, "reading samples: %s", strerror(-err));
	}
	return 0;
}

static int report(struct record *r, struct session *s)
{
	struct run_stats stats;
	char host[256] = "";
	struct out_meta meta = {
		.event = r->common.collect.event->name, .hz = (double)r->common.collect.hz,
		.host = host, .start_unix_ns = s->start_unix_ns,
	};
	struct out_report rep = {
		.profile = s->profile, .symbols = s->symbols, .modules = s->modules, .meta = &meta, .stats = &stats,
		.opts = { .user_only = !r->common.collect.kernel, .kernel_only = !r->common.collect.user },
	};
	int err;

	gethostname(host, sizeof(host) - 1);
	session_stats(s, s->profile, &stats);
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

static void say_losses(const struct run_stats *st)
{
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		if (st->lost[i])
			fprintf(stderr, "sfbpf: lost %llu: %s\n", (unsigned long long)st->lost[i], profile_lost_help(i));
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

static int run(struct record *r, struct session *s)
{
	struct run_stats stats;
	int err = choose_format(r);

	session_signals();	/* a Ctrl-C while tables are made ends the run in order, too */
	if (!err)
		err = open_outputs(r);
	if (err)
		return err;
	if (r->command && !r->system_wide)
		r->common.collect.follow_forks = true;
	r->common.collect.count_run_time = r->common.stats != NULL;
	r->common.collect.want_cgroup = !strcmp(r->format->name, "json");
	err = session_open(s, &r->common.collect);
	if (err)
		return err;
	if (r->command) {
		if (command_prepare(&r->child, r->command))
			return complain(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
		if (!r->system_wide && !collector_add_pid(s->collector, (uint32_t)r->child.pid))
			return complain(EXIT_FAILED, "cannot follow process %d", r->child.pid);
	}
	err = sample(r, s);
	session_stop(s);
	if (r->command)
		command_finish(&r->child, r->command[0]);
	if (err)
		return err;
	err = report(r, s);
	session_stats(s, s->profile, &stats);
	say_losses(&stats);
	if (r->common.collect.verbose)
		say_work(s);
	return err;
}

int tool_record(int argc, char **argv)
{
	struct record r = { 0 };
	struct session s = { 0 };
	int rc;

	common_opts_init(&r.common, 99);
	rc = parse(&r, argc, argv);
	if (!rc)
		rc = run(&r, &s);
	session_close(&s);
	if (r.out && r.out != stdout && fclose(r.out) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r.common.output, strerror(errno));
	if (r.stats && r.stats != stdout && fclose(r.stats) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r.common.stats, strerror(errno));
	common_opts_free(&r.common);
	return rc;
}
