/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by `report` and `diff`: reads recorded profiles, writes text or flame graphs. */
#ifndef SFBPF_REPORT_STACKS_IO_H
#define SFBPF_REPORT_STACKS_IO_H

#include "cli/options.h"
#include "out/changes.h"
#include "prof/read_stacks.h"
#include "report/window_sum.h"

struct view {
	struct stackset stacks;
	struct stacks_meta meta;     /* metadata of the last file read */
	uint64_t bytes;		     /* size of all files read */
	bool compares;		     /* set before view_parse by diff */
	const char *title, *before;  /* `before` is NULL unless two are compared */
	struct verdict verdict;	     /* diff */
	const char *verdict_line;    /* diff; NULL: not a comparison */
	struct changes changes;	     /* diff */
	bool share;		     /* diff: --share */
	bool apart;		     /* --threads */
	struct stack_renames match;  /* diff: --match */
	enum verdict_per per;	     /* diff: --per */
	double work[STACK_SIDES];    /* diff: units of work of --per */
	const char *output, *format; /* -o, --format; NULL: not given */
	const char *annotate;	     /* report: a function; NULL: not given */
	const char *pgo;	     /* report: a format; NULL: not given */
	uint64_t rows;
	struct window_choice choice; /* choice of the files in directories */
	uint64_t ago_ns;	     /* diff: how long before the time of AFTER; 0: not given */
	struct stack_choice take;    /* --comm, --by, --label */
	struct {
		const char *name, *value;
	} against;			   /* diff: the label of BEFORE; NULL: not given */
	bool by_given;			   /* --by */
	const char *header_file, *ca_file; /* files for ClickHouse; NULL: not given */
	const struct out_format *out;
	/* report: of one recording, `out` writes what record would have written */
	bool exact;
};

/* These return 0, or an exit code after printing the error. */
/*
 * path: a file; "-", the standard input; a directory of the agent's windows (v->choice); or a URL
 * of ClickHouse.
 */
int view_read(struct view *v, const char *path, enum stack_side side);
/* Whether options that select stacks leave some on that side. */
/* Called when all was read: one name for threads whose names differ in numbers only. */
int view_name_threads(struct view *v);
int view_check(const struct view *v, enum stack_side side);
int view_write(struct view *v);
/* Writes what `make` makes, which returns 0, -errno, or an exit code after printing the error. */
int view_output(struct view *v, int (*make)(struct view *v, void *ctx, FILE *f), void *ctx);
const char *path_name(const char *path); /* its last component */
/*
 * The command line: VIEW_OPTIONS and at least min operands, at most max; the first of them is
 * argv[optind].
 */
int view_parse(struct view *v, const struct tool_spec *spec, int argc, char **argv, int min,
	       int max);
#define VIEW_OPTIONS                                                                               \
	{ 'o', "output", "FILE", "output file; - is standard output" },                            \
		{ OPT_FORMAT, "format", "FORMAT",                                                  \
		  "text (default), folded, pprof, html or svg; of a recording also "               \
		  "json, firefox and perfetto; "                                                   \
		  "overrides the suffix of FILE" },                                                \
		{ 'n', "rows", "N", "number of rows in the table (default 40)" },                  \
		{ OPT_SINCE, "since", "TIME",                                                      \
		  "windows from this time on: 1h (ago), 2026-01-31, "                              \
		  "2026-01-31T12:00" },                                                            \
		{ OPT_UNTIL, "until", "TIME", "windows up to this time" },                         \
		{ OPT_HOST, "host", "NAME", "windows of this host" },                              \
		{ OPT_SERVICE, "service", "NAME",                                                  \
		  "stacks of this service (label service.name) in windows" },                      \
		{ OPT_LABEL, "label", "NAME=VALUE",                                                \
		  "stacks in windows with this label; may be repeated" },                          \
		{ OPT_COMM_ONLY, "comm", "NAME", "stacks of threads of this name" },               \
		{ OPT_BY, "by", "NAME",                                                            \
		  "begin stacks with the name of the process (JSON has it), the thread, "          \
		  "the container (JSON and pprof have it), the service, version or host, "         \
		  "or with a label; default: html and svg process, others thread" },               \
		{ OPT_APART, "threads", NULL,                                                      \
		  "keep the names of threads that differ in numbers only: without, a process's "   \
		  "pool-3-thread-1, -2, -3 are pool-N-thread-N" },                                 \
		{ OPT_HEADER_FILE, "header-file", "FILE",                                          \
		  "for ClickHouse: headers to send, one 'Name: value' on each line" },             \
		{ OPT_CA_FILE, "ca-file", "FILE", "for ClickHouse: trust these CA certificates" }, \
	{                                                                                          \
		OPT_OFF_CPU, "off-cpu", NULL, "windows of blocked time instead of CPU time"        \
	}

enum {
	OPT_SINCE = 800,
	OPT_UNTIL,
	OPT_HOST,
	OPT_COMM_ONLY,
	OPT_OFF_CPU,
	OPT_AGO,
	OPT_SERVICE,
	OPT_LABEL,
	OPT_AGAINST,
	OPT_ANNOTATE,
	OPT_HEADER_FILE,
	OPT_CA_FILE,
	OPT_PER,
	OPT_SHARE,
	OPT_MATCH,
	OPT_PGO
};

#endif
