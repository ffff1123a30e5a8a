/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by record and offcpu: [options] [SECONDS] [-- COMMAND]. Collects until SECONDS have passed
 * or the targets ended, then writes one output and one account.
 */
#ifndef SFBPF_TOOLS_ONESHOT_H
#define SFBPF_TOOLS_ONESHOT_H

#include <stdio.h>

#include "out/out.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/progress.h"
#include "tools/session.h"

struct oneshot {
	struct common_opts common;
	const struct out_format *format;
	FILE *out, *stats;
	uint64_t duration_ns; /* 0: no limit */
	bool system_wide;
	bool has_times;		       /* the tool can keep the times of samples: record */
	bool timeline;		       /* --timeline */
	enum out_by by;		       /* --by */
	enum out_wall wall;	       /* --wall, --state-at: record */
	bool exact;		       /* --exact */
	bool min_block;		       /* -m was given: record */
	uint64_t min_block_ns;	       /* shortest wait on a timeline */
	bool inlined, lines;	       /* show inlined frames, source lines (from DWARF) */
	struct debuginfod *debuginfod; /* NULL: without --debuginfod */
	struct allowance *allowance;   /* the session's, for debuginfod requests */
	char **command;		       /* NULL: none */
	struct command child;
	struct progress progress;
	int (*tick)(void *ctx); /* called after each poll; 0 or -errno; NULL: none */
	void *tick_ctx;
};

#define ONESHOT_OPTIONS                                                                            \
	{ 'a', "all", NULL, "with COMMAND: record all processes while it runs" },                  \
		{ 'd', "duration", "SECONDS",                                                      \
		  "stop after this time; same as the operand SECONDS" },                           \
		{ OPT_INLINE, "inline", NULL, "show inlined functions; needs debug information" }, \
		{ OPT_LINES, "lines", NULL, "show source lines; needs debug information" },        \
		{ 'q', "quiet", NULL, "print errors and losses only, no progress" },               \
		{ OPT_DEBUGINFOD, "debuginfod", NULL,                                              \
		  "fetch missing debug files from the servers in $DEBUGINFOD_URLS" },              \
		{ OPT_BY, "by", "NAME",                                                            \
		  "begin stacks with the name of the process, the thread or the container "        \
		  "(default: folded: thread, html: process)" },                                    \
	{                                                                                          \
		OPT_STATS, "stats", "FILE",                                                        \
			"write the account of the run as JSON; - is standard output"               \
	}

/* Like common_opts_take, which it calls for common options. Takes the operand SECONDS, too. */
int oneshot_option(struct oneshot *r, int id, const char *arg);
/*
 * Chooses the format, which a tool may then check; then, before session_open, opens the files and
 * makes the process of COMMAND, which waits until sampling begins. These and the following return
 * 0, or the exit code after printing the error.
 */
int oneshot_choose(struct oneshot *r);
int oneshot_prepare(struct oneshot *r);
/*
 * Carries out --inline, --lines and --debuginfod for the frames of the session's profile and of
 * `more` (NULL: none). Call it after collecting, before the report and before any frame is named.
 */
int oneshot_debug(struct oneshot *r, struct session *s, const struct profile *more);
/* Collects until Ctrl-C, SECONDS, or the end of the targets or of COMMAND. The session is open. */
int oneshot_sample(struct oneshot *r, struct session *s);
/*
 * The output is written to the file that oneshot_begin returns; NULL, after printing the error: out
 * of memory. oneshot_end then copies it to where the user wants it, if err, of the writer, is 0. If
 * there is no room, an older result stays as it is, and this one is kept elsewhere.
 */
FILE *oneshot_begin(void);
int oneshot_end(struct oneshot *r, FILE *made, int err);
/* The account, to the file of --stats if there is one. */
int oneshot_stats(struct oneshot *r, const struct run_stats *stats);
/* Says what was written and what was lost; things: "samples", "blocks". */
void oneshot_say_result(const struct oneshot *r, const struct run_stats *st, const char *things);
/* Says what is not on the timeline. */
void oneshot_say_timeline(const struct timeline *t);
/*
 * Closes the files. Returns rc; if that is 0, the exit code of an error of the files, or of the
 * command (see command_finish).
 */
int oneshot_close(struct oneshot *r, int rc);

#endif
