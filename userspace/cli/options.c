/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "base/text.h"
#include "cli/cgroup.h"
#include "cli/help.h"
#include "cli/pids.h"
#include "kern/host_gaps.h"
#include "out/out.h"

enum { /* ids of common options that no other file knows */
       OPT_COMM = 700,
       OPT_NATIVE,
       OPT_ALL_LANGUAGES,
       OPT_TABLE_IDLE,
       OPT_FILTER
};

const struct option_spec common_options[] = {
	{ 'p', "pid", "PID[,PID]", "profile only these processes, by id or name" },
	{ 't', "tid", "TID[,TID]", "profile only these threads" },
	{ 'u', "uid", "USER", "profile only processes of this user, by name or number" },
	{ 'C', "cpu", "CPUS", "profile only these CPUs, such as 0-3,5" },
	{ 'G', "cgroup", "CGROUP", "profile only this cgroup and its descendants, by path or id" },
	{ OPT_COMM, "comm", "GLOB",
	  "profile only threads whose name matches; * and ? are wildcards" },
	{ 'F', "freq", "HZ", "sampling frequency, per CPU (default 99; agent 19)" },
	{ 'c', "count", "N", "take one sample every N events, instead of -F" },
	{ 'e', "event", "EVENT",
	  "event to sample: cpu-clock (default), page-faults:u, sched:sched_switch, "
	  "uprobe:PATH:FUNCTION, uretprobe:..., usdt:PATH:PROVIDER:NAME, ... ('sfbpf list'); =ARG "
	  "adds up a number instead of counting hits; may be repeated" },
	{ OPT_FILTER, "filter", "EXPR",
	  "hits of the tracepoint before it count only if its fields are so, such as "
	  "'prev_prio < 100 && prev_comm ~ \"kw*\"'" },
	{ 'U', "user-stacks-only", NULL, "record only user stacks" },
	{ 'K', "kernel-stacks-only", NULL, "record only kernel stacks" },
	{ OPT_NATIVE, "native", NULL,
	  "show the interpreters' own frames, too (_PyEval_EvalFrameDefault)" },
	{ OPT_ALL_LANGUAGES, "all-languages", NULL,
	  "load the parts of all languages at the start, not when a runtime is first seen" },
	{ 'o', "output", "FILE", "output file; - is standard output" },
	{ OPT_FORMAT, "format", "FORMAT", "output format; overrides the suffix of FILE" },
	{ OPT_RING, "ring-size", "SIZE",
	  "size of the ring buffer between kernel and user space (default 2M)" },
	{ OPT_TABLES, "table-memory", "SIZE",
	  "limit on kernel memory for unwind tables (default 256M)" },
	{ OPT_TABLE_IDLE, "table-idle", "TIME",
	  "drop the tables of files that have not been mapped for this time "
	  "(default 5m; 0: never)" },
	{ 'v', "verbose", NULL, "print more diagnostics; -vv includes the messages of libbpf" },
	{ 0 },
};

const struct option_spec *tool_options(const struct tool_spec *tool)
{
	return tool->make_options ? tool->make_options() : tool->options;
}

#define MAX_OPTIONS 128

struct built {
	char letters[MAX_OPTIONS * 2 + 3];
	struct option longs[MAX_OPTIONS];
	size_t nletters, nlongs;
};

static int argument_of(const struct option_spec *spec)
{
	return !spec->arg		      ? no_argument
	       : !strncmp(spec->arg, "[=", 2) ? optional_argument
					      : required_argument;
}

static void build(struct built *b, const struct option_spec *spec)
{
	for (; spec && spec->id && b->nlongs < MAX_OPTIONS - 3; spec++) {
		if (spec->id < 256) {
			b->letters[b->nletters++] = (char)spec->id;
			if (spec->arg)
				b->letters[b->nletters++] = ':';
		}
		if (spec->name)
			b->longs[b->nlongs++] = (struct option){ spec->name, argument_of(spec),
								 NULL, spec->id };
	}
}

static const struct option *option_with(const struct built *b, int id)
{
	for (size_t i = 0; i < b->nlongs; i++)
		if (b->longs[i].val == id)
			return &b->longs[i];
	return NULL;
}

/* Complains about the argument that getopt_long refused with id, '?' or ':'. */
static void refuse(const struct built *b, int id, const char *arg, const char *tool)
{
	struct text_near near = { .word = arg + 2, .len = strcspn(arg + 2, "=") };
	bool is_long = !strncmp(arg, "--", 2);

	if (id == ':' && is_long)
		complain(0, "%s needs an argument; see 'sfbpf %s --help'", arg, tool);
	else if (id == ':')
		complain(0, "-%c needs an argument; see 'sfbpf %s --help'", optopt, tool);
	else if (optopt && is_long && strchr(arg, '=') && option_with(b, optopt))
		complain(0, "--%s takes no argument; see 'sfbpf %s --help'",
			 option_with(b, optopt)->name, tool);
	else if (optopt)
		complain(0, "unknown option -%c; see 'sfbpf %s --help'", optopt, tool);
	if (id == ':' || optopt)
		return;
	for (size_t i = 0; i < b->nlongs; i++)
		text_near_try(&near, b->longs[i].name);
	complain(0, "unknown option %s%s%s; see 'sfbpf %s --help'", arg,
		 near.best ? "; did you mean --" : "", near.best ? near.best : "", tool);
}

static void build_all(struct built *b, const struct tool_spec *tool)
{
	static const struct option_spec always[] = {
		{ 'h', "help", NULL, NULL },
		{ OPT_VERSION, "version", NULL, NULL },
		{ 0 },
	};
	/* Options that users of perf type by habit; not in the help */
	static const struct option_spec habits[] = {
		{ 'F', "frequency", "HZ", NULL },
		{ 'g', NULL, NULL, NULL },
		{ 0 },
	};

	if (!tool->permute) /* the options end at the first operand */
		b->letters[b->nletters++] = '+';
	b->letters[b->nletters++] = ':';
	build(b, tool_options(tool));
	if (tool->common) {
		build(b, common_options);
		build(b, habits);
	}
	build(b, always);
}

int options_parse(const struct tool_spec *tool, int argc, char **argv, options_take_fn *take,
		  void *ctx)
{
	struct built b = { .nletters = 0 };
	int at, id, err = 0;

	build_all(&b, tool);
	opterr = 0;
	while (!err) {
		at = optind;
		id = getopt_long(argc, argv, b.letters, b.longs, NULL);
		if (id == -1 && tool->mixed && optind == at && optind < argc) {
			err = take(ctx, OPT_OPERAND, argv[optind++]);
		} else if (id == -1) {
			return tool->mixed && optind > at && optind == argc
				       ? complain(EXIT_USAGE, "no command after --")
				       : 0;
		} else if (id == 'h') {
			help_text(tool, stdout);
			err = OPTIONS_DONE;
		} else if (id == OPT_VERSION) {
			printf("sfbpf %s\n", SFBPF_VERSION);
			err = OPTIONS_DONE;
		} else if (id == '?' || id == ':') {
			refuse(&b, id, argv[optind - 1], tool->name);
			err = EXIT_USAGE;
		} else {
			err = take(ctx, id, optarg);
		}
	}
	return err;
}

int options_unknown_format(const char *name, const char *path, enum out_source source)
{
	static const char *const from[] = {
		[OUT_SAMPLES] = "samples",
		[OUT_PROFILE] = "sums without the times of samples",
		[OUT_RECORDED] = "recorded stacks",
		[OUT_COMPARED] = "two profiles",
	};
	const struct out_format *other = out_format_choose(name, path, "", OUT_SAMPLES);

	if (other)
		return complain(EXIT_USAGE,
				"%s cannot be made from %s; use --format or the suffix of -o to "
				"choose one of%s",
				other->name, from[source], out_format_names(source));
	if (name)
		return complain(EXIT_USAGE, "unknown format '%s'; known:%s", name,
				out_format_names(source));
	return complain(EXIT_USAGE,
			"the suffix of '%s' names no format; use --format, or one of:%s", path,
			out_format_suffixes(source));
}

int options_open_output(const char *path, FILE **ret)
{
	const char *why;
	int err;

	*ret = stdout;
	if (!path || !strcmp(path, "-"))
		return 0;
	err = result_file_open(path, ret, &why);
	return err ? complain(EXIT_FAILED, "cannot write '%s': %s", path,
			      why ? why : strerror(-err))
		   : 0;
}

int options_take_once(const char *option, const char *arg, const char **ret)
{
	if (*ret)
		return complain(EXIT_USAGE, "%s is given twice: '%s' and '%s'", option, *ret, arg);
	*ret = arg;
	return 0;
}

int options_take_time(const char *option, const char *arg, uint64_t *ret)
{
	return num_duration(arg, NUM_US, ret)
		       ? complain(EXIT_USAGE,
				  "%s: '%s' is not a time such as 100us, 5ms or 250 (microseconds)",
				  option, arg)
		       : 0;
}

void common_opts_init(struct common_opts *o, uint64_t hz)
{
	*o = (struct common_opts){ 0 };
	o->collect = (struct collector_opts){
		.events = &o->events,
		.hz = hz,
		.user = true,
		.kernel = true,
		.ring_bytes = 2 << 20,
		.table_bytes = 256ull << 20,
		.table_idle_ns = 300 * NUM_S,
	};
}

static int take_user(struct common_opts *o, const char *arg)
{
	struct passwd *pw = getpwnam(arg);
	uint64_t uid;

	if (pw)
		uid = pw->pw_uid;
	else if (num_u64(arg, 0, UINT32_MAX - 1, &uid))
		return complain(EXIT_USAGE, "-u: no user '%s'", arg);
	o->collect.filter.user = (uint32_t)uid + 1;
	return 0;
}

static int take_comm(struct sf_filter *filter, const char *arg)
{
	size_t len = strlen(arg);

	if (!len || len > 62)
		return complain(EXIT_USAGE, "--comm: '%s' is not a pattern of 1 to 62 bytes", arg);
	memcpy(filter->comm, arg, len);
	filter->comm_len = (uint32_t)len;
	return 0;
}

static int take_tids(struct common_opts *o, const char *arg)
{
	free(o->tids);
	o->tids = NULL;
	return num_ids(arg, &o->tids, &o->collect.ntids)
		       ? complain(EXIT_USAGE, "-t: '%s' is not a list of ids such as 1234,5678",
				  arg)
		       : 0;
}

static int take_pids(struct common_opts *o, const char *arg)
{
	int err;

	free(o->pids);
	o->pids = NULL;
	err = pids_parse(arg, &o->pids, &o->collect.npids);
	if (err == -ESRCH)
		return complain(EXIT_FAILED, "-p: no process is named so: '%s'", arg);
	if (err)
		return complain(EXIT_USAGE,
				"-p: '%s' is not a list of ids and names such as 1234,nginx", arg);
	return 0;
}

static int take_number(struct common_opts *o, int id, const char *arg)
{
	uint64_t n;

	switch (id) {
	case 'F':
		if (num_u64(arg, 1, 1000000, &o->collect.hz))
			return complain(EXIT_USAGE, "-F: '%s' is not a number from 1 to 1000000",
					arg);
		o->hz_given = true;
		return 0;
	case 'c':
		if (num_u64(arg, 1, INT64_MAX, &o->collect.period))
			return complain(EXIT_USAGE, "-c: '%s' is not a number above 0", arg);
		return 0;
	case OPT_RING:
		if (num_size(arg, &n) || n < 4 << 10 || n > 1ull << 30)
			return complain(EXIT_USAGE, "--ring-size: '%s' is not a size from 4k to 1G",
					arg);
		o->collect.ring_bytes = n;
		return 0;
	default:
		if (num_size(arg, &n) || n < 1 << 20 || n > 1ull << 40)
			return complain(EXIT_USAGE,
					"--table-memory: '%s' is not a size from 1M to 1024G", arg);
		o->collect.table_bytes = n;
		return 0;
	}
}

static int take_event(struct common_opts *o, int id, const char *arg)
{
	char why[512];
	int err = id == 'e' ? events_add(&o->events, arg, why, sizeof(why))
			    : events_filter(&o->events, arg, why, sizeof(why));

	return err ? complain(EXIT_USAGE, "%s: %s", id == 'e' ? "-e" : "--filter", why) : 0;
}

int common_opts_take(struct common_opts *o, int id, const char *arg)
{
	struct sf_filter *filter = &o->collect.filter;

	switch (id) {
	case 'p':
		return take_pids(o, arg);
	case 't':
		return take_tids(o, arg);
	case 'u':
		return take_user(o, arg);
	case 'C':
		if (num_cpus(arg, &o->cpus))
			return complain(EXIT_USAGE, "-C: '%s' is not a list of CPUs such as 0-3,5",
					arg);
		o->collect.cpus = &o->cpus;
		return 0;
	case 'G':
		return cgroup_resolve(arg, &filter->cgroup, &filter->cgroup_level);
	case OPT_NATIVE:
		o->collect.native = true;
		return 0;
	case OPT_ALL_LANGUAGES:
		o->collect.all_languages = true;
		return 0;
	case OPT_COMM:
		return take_comm(filter, arg);
	case 'F':
	case 'c':
	case OPT_RING:
	case OPT_TABLES:
		return take_number(o, id, arg);
	case OPT_TABLE_IDLE:
		if (num_duration(arg, NUM_S, &o->collect.table_idle_ns))
			return complain(EXIT_USAGE,
					"--table-idle: '%s' is not a time (30, 90s, 5m)", arg);
		return 0;
	case 'e':
	case OPT_FILTER:
		return take_event(o, id, arg);
	case 'U':
		o->collect.kernel = false;
		return 0;
	case 'K':
		o->collect.user = false;
		return 0;
	case 'o':
		return options_take_once("-o", arg, &o->output);
	case OPT_FORMAT:
		o->format = arg;
		return 0;
	case 'v':
		o->collect.verbose++;
		return 0;
	case 'g':
		return complain(0, "-g is not needed: stacks are always recorded");
	default:
		return EXIT_USAGE; /* an id that is in no table */
	}
}

static int check_exist(const char *what, const uint32_t *ids, size_t n)
{
	char path[64];

	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/proc/%u", ids[i]);
		if (access(path, F_OK))
			return complain(EXIT_FAILED, "no %s %u", what, ids[i]);
	}
	return 0;
}

int options_need_host_pids(const char *what)
{
	if (!host_gap_open(HOST_GAP_PID_NAMESPACE))
		return 0;
	return complain(EXIT_FAILED,
			"%s needs the host's PID namespace: the kernel's samples have other ids "
			"than the processes here. Fix: %s; or record all processes, or select "
			"with --comm, -u or -G",
			what, host_gap_at(HOST_GAP_PID_NAMESPACE)->fix);
}

int common_opts_check(struct common_opts *o)
{
	int err = 0;

	if (!o->collect.user && !o->collect.kernel)
		return complain(EXIT_USAGE,
				"-U and -K exclude each other: use one of them, or none for both "
				"user and kernel stacks");
	if (o->hz_given && o->collect.period)
		return complain(EXIT_USAGE, "-F and -c exclude each other: give the frequency or "
					    "the number of events between samples");
	events_default(&o->events);
	if (o->hz_given && !events_have(&o->events, EVENT_PERF))
		return complain(EXIT_USAGE,
				"-F is for events that are sampled by time; each hit of "
				"%s is a sample, or one in N with -c N",
				o->events.text);
	if (o->collect.period || !events_have(&o->events, EVENT_PERF))
		o->collect.hz = 0;
	o->collect.pids = o->pids;
	o->collect.tids = o->tids;
	if (o->collect.npids || o->collect.ntids)
		err = options_need_host_pids(o->collect.npids ? "-p" : "-t");
	if (!err)
		err = check_exist("process", o->pids, o->collect.npids);
	return err ? err : check_exist("thread", o->tids, o->collect.ntids);
}

int common_opts_one_count(const struct common_opts *o)
{
	if (o->events.n > 1)
		return complain(EXIT_USAGE, "-e: one event at a time, not %s; record takes several",
				o->events.text);
	return events_weighted(&o->events)
		       ? complain(EXIT_USAGE, "-e %s: record alone adds up numbers", o->events.text)
		       : 0;
}

bool common_opts_filter(const struct common_opts *opts)
{
	static const struct sf_filter none;
	const struct collector_opts *o = &opts->collect;

	return o->npids || o->ntids || o->cpus || memcmp(&o->filter, &none, sizeof(none)) != 0;
}

void common_opts_free(struct common_opts *o)
{
	free(o->pids);
	free(o->tids);
	events_free(&o->events);
}
