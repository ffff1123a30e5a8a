/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/options.h"

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "tools/cgroup.h"
#include "unwind/table_cache.h"

const struct option_spec common_options[] = {
	{ 'p', "pid", "PID[,PID]", "only these processes" },
	{ 't', "tid", "TID[,TID]", "only these threads" },
	{ 'u', "uid", "USER", "only this user's processes (name or number)" },
	{ 'C', "cpu", "CPUS", "only on these CPUs: 0-3,5" },
	{ 'G', "cgroup", "CGROUP", "only this cgroup and those below it (path or id)" },
	{ OPT_COMM, "comm", "GLOB", "only threads of this name: * and ? match" },
	{ 'F', "freq", "HZ", "samples a second and CPU" },
	{ 'c', "count", "N", "one sample every N events, instead of -F" },
	{ 'e', "event", "EVENT", "cpu-clock (default), cpu-cycles, page-faults, context-switches, ..." },
	{ 'U', "user-stacks-only", NULL, "leave the kernel part out" },
	{ 'K', "kernel-stacks-only", NULL, "leave the user part out" },
	{ 'o', "output", "FILE", "write there; - is the standard output" },
	{ OPT_FORMAT, "format", "F", "instead of by the suffix of FILE" },
	{ OPT_RING, "ring-size", "SIZE", "ring buffer between kernel and user space (default 2M)" },
	{ OPT_TABLES, "table-memory", "SIZE", "at most this much kernel memory for row tables (default 256M)" },
	{ OPT_TABLE_IDLE, "table-idle", "TIME", "drop tables of files that nobody has mapped for so long (default 5m; 0: never)" },
	{ OPT_TABLE_CACHE, "table-cache", "DIR", "keep large files' tables there for the next start\n                                (default " TABLE_CACHE_DIR "); off: nowhere" },
	{ OPT_BTF, "btf", "FILE", "this kernel's BTF, if it has none itself" },
	{ 'v', "verbose", NULL, "say more; twice: libbpf's own words too" },
	{ 0 },
};

int complain(int code, const char *fmt, ...)
{
	va_list args;

	fputs("sfbpf: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}

/* without: letters of options to leave out, or NULL. */
static void help_table(FILE *f, const struct option_spec *spec, const char *without)
{
	for (; spec && spec->id; spec++) {
		char left[64];
		int n = 0;

		if (without && spec->id < 256 && strchr(without, spec->id))
			continue;
		n += spec->id < 256 ? snprintf(left, sizeof(left), "-%c", spec->id) : snprintf(left, sizeof(left), "  ");
		if (spec->name)
			n += snprintf(left + n, sizeof(left) - (size_t)n, "%s --%s", spec->id < 256 ? "," : " ", spec->name);
		if (spec->arg)
			snprintf(left + n, sizeof(left) - (size_t)n, " %s", spec->arg);
		fprintf(f, "  %-30s%s%s\n", left, strlen(left) > 29 ? "\n                                " : "", spec->help);
	}
}

static void print_help(const struct tool_spec *tool, FILE *f)
{
	fprintf(f, "usage: sfbpf %s\n\n%s\n\noptions:\n", tool->usage, tool->summary);
	help_table(f, tool->options, NULL);
	if (tool->common)
		help_table(f, common_options, tool->without);
	fputs("  -h, --help                    this text\n      --version                 the version\n", f);
	if (tool->examples)
		fprintf(f, "\nexamples:\n%s", tool->examples);
	fputs("\nexit status: 0 ok, 1 failed, 2 usage, 3 no permission, 4 the kernel lacks a feature\n", f);
}

#define MAX_OPTIONS 128

struct built {
	char letters[MAX_OPTIONS * 2 + 2];
	struct option longs[MAX_OPTIONS];
	size_t nletters, nlongs;
};

static void build(struct built *b, const struct option_spec *spec)
{
	for (; spec && spec->id && b->nlongs < MAX_OPTIONS - 3; spec++) {
		if (spec->id < 256) {
			b->letters[b->nletters++] = (char)spec->id;
			if (spec->arg)
				b->letters[b->nletters++] = ':';
		}
		if (spec->name)
			b->longs[b->nlongs++] = (struct option){
				spec->name, spec->arg ? required_argument : no_argument, NULL, spec->id };
	}
}

int options_next(const struct tool_spec *tool, int argc, char **argv, const char **ret_arg)
{
	static const struct option_spec always[] = {
		{ 'h', "help", NULL, NULL }, { OPT_VERSION, "version", NULL, NULL }, { 0 },
	};
	struct built b = { .letters = "+", .nletters = 1 };	/* + : operands end the options */
	int id;

	build(&b, tool->options);
	if (tool->common)
		build(&b, common_options);
	build(&b, always);
	id = getopt_long(argc, argv, b.letters, b.longs, NULL);
	*ret_arg = optarg;
	if (id == 'h') {
		print_help(tool, stdout);
		return -2;
	}
	if (id == OPT_VERSION) {
		printf("sfbpf %s\n", SFBPF_VERSION);
		return -2;
	}
	if (id == '?')
		fprintf(stderr, "sfbpf: try 'sfbpf %s --help'\n", tool->name);
	return id;
}

void common_opts_init(struct common_opts *o, uint64_t hz)
{
	*o = (struct common_opts){ 0 };
	o->collect = (struct collector_opts){
		.event = perf_event_named("cpu-clock"), .hz = hz, .user = true, .kernel = true,
		.ring_bytes = 2 << 20, .table_bytes = 256ull << 20, .table_idle_ns = 300 * NUM_S,
		.table_cache = TABLE_CACHE_DIR,
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
	o->collect.by_uid = true;
	o->collect.uid = (uint32_t)uid;
	return 0;
}

static int take_event(struct common_opts *o, const char *arg)
{
	const struct perf_event_kind *k = perf_event_named(arg);

	if (k) {
		o->collect.event = k;
		return 0;
	}
	fprintf(stderr, "sfbpf: -e: unknown event '%s'; known:", arg);
	for (unsigned int i = 0; (k = perf_event_at(i)); i++)
		fprintf(stderr, " %s", k->name);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

static int take_ids(const char *what, const char *arg, uint32_t **ids, size_t *n)
{
	free(*ids);
	*ids = NULL;
	return num_ids(arg, ids, n) ? complain(EXIT_USAGE, "%s: '%s' is not a list of ids", what, arg) : 0;
}

static int take_number(struct common_opts *o, int id, const char *arg)
{
	uint64_t n;

	switch (id) {
	case 'F':
		if (num_u64(arg, 1, 1000000, &o->collect.hz))
			return complain(EXIT_USAGE, "-F: '%s' is not a frequency in Hz", arg);
		return 0;
	case 'c':
		if (num_u64(arg, 1, INT64_MAX, &o->collect.period))
			return complain(EXIT_USAGE, "-c: '%s' is not a number of events", arg);
		o->collect.hz = 0;
		return 0;
	default:
		if (num_size(arg, &n) || !n || n > 1ull << 40)
			return complain(EXIT_USAGE, "'%s' is not a size (4096, 64k, 10M, 1G)", arg);
		if (id == OPT_RING && n > 1ull << 30)
			return complain(EXIT_USAGE, "--ring-size: at most 1G");
		*(id == OPT_RING ? &o->collect.ring_bytes : &o->collect.table_bytes) = n;
		return 0;
	}
}

int common_opts_take(struct common_opts *o, int id, const char *arg)
{
	switch (id) {
	case 'p':
		return take_ids("-p", arg, &o->pids, &o->collect.npids);
	case 't':
		return take_ids("-t", arg, &o->tids, &o->collect.ntids);
	case 'u':
		return take_user(o, arg);
	case 'C':
		if (num_cpus(arg, &o->cpus))
			return complain(EXIT_USAGE, "-C: '%s' is not a list of CPUs", arg);
		o->collect.cpus = &o->cpus;
		return 0;
	case 'G':
		return cgroup_resolve(arg, &o->collect.cgroup_id, &o->collect.cgroup_level);
	case OPT_COMM:
		if (!*arg || strlen(arg) > 62)
			return complain(EXIT_USAGE, "--comm: '%s' is not a pattern of 1 to 62 bytes", arg);
		o->collect.comm_glob = arg;
		return 0;
	case 'F':
	case 'c':
	case OPT_RING:
	case OPT_TABLES:
		return take_number(o, id, arg);
	case OPT_TABLE_IDLE:
		if (num_duration(arg, NUM_S, &o->collect.table_idle_ns))
			return complain(EXIT_USAGE, "--table-idle: '%s' is not a time (30, 90s, 5m)", arg);
		return 0;
	case OPT_TABLE_CACHE:
		o->collect.table_cache = strcmp(arg, "off") ? arg : NULL;
		return 0;
	case OPT_BTF:
		o->collect.btf = arg;
		return 0;
	case 'e':
		return take_event(o, arg);
	case 'U':
		o->collect.kernel = false;
		return 0;
	case 'K':
		o->collect.user = false;
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case OPT_FORMAT:
		o->format = arg;
		return 0;
	case 'v':
		o->collect.verbose++;
		return 0;
	default:
		return -1;
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

int common_opts_check(struct common_opts *o)
{
	int err;

	if (!o->collect.user && !o->collect.kernel)
		return complain(EXIT_USAGE, "-U and -K exclude each other: together they leave nothing");
	o->collect.pids = o->pids;
	o->collect.tids = o->tids;
	err = check_exist("process", o->pids, o->collect.npids);
	return err ? err : check_exist("thread", o->tids, o->collect.ntids);
}

void common_opts_free(struct common_opts *o)
{
	free(o->pids);
	free(o->tids);
}
