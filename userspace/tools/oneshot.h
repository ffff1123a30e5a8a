/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by record and offcpu: [options] [SECONDS] [-- COMMAND], the format, and the files of the
 * result and the account. run.h has what happens then.
 */
#ifndef SFBPF_TOOLS_ONESHOT_H
#define SFBPF_TOOLS_ONESHOT_H

#include <stdio.h>

#include "cli/options.h"
#include "out/out.h"
#include "out/out_blocks.h"
#include "tools/blocks.h"
#include "tools/command.h"
#include "tools/progress.h"
#include "tools/session.h"

#define ONESHOT_OUTPUTS 16

struct oneshot_output {
	const char *path; /* NULL: standard output */
	const struct out_format *format;
	FILE *f; /* NULL: not open */
};

struct oneshot { /* zeroed: empty */
	/* The command line */
	struct common_opts common;
	char line[1024]; /* without the arguments of COMMAND, which may be secret */
	struct oneshot_output outputs[ONESHOT_OUTPUTS];
	size_t noutputs;
	/* What any of the formats has; timed: one that is a timeline, or NULL */
	bool cgroups, by_thread, go_lines, slices_wanted, times_wanted;
	const struct out_format *timed;
	uint64_t duration_ns; /* 0: no limit */
	bool system_wide;
	bool has_times;		       /* the tool can keep the times of samples: record */
	bool timeline;		       /* --timeline */
	enum out_by by;		       /* --by */
	bool apart;		       /* --threads */
	enum out_wall wall, state_at;  /* --wall and --state-at: record */
	bool exact;		       /* --exact */
	bool critical;		       /* --critical */
	uint32_t critical_tid;	       /* the thread of the path; 0: that of COMMAND */
	bool min_block;		       /* -m was given: record */
	uint64_t min_block_ns;	       /* shortest wait on a timeline */
	bool inlined, lines;	       /* show inlined frames, source lines (from DWARF) */
	struct debuginfod *debuginfod; /* NULL: without --debuginfod */
	char **command;		       /* NULL: none */
	struct offcpu_opts off;	       /* what common.collect.offcpu points to, if not NULL */

	/* The run (run.c) */
	const struct run_hooks *hooks;
	FILE *stats; /* the account; NULL: not open */
	struct command child;
	uint64_t look_ns; /* when to look for the command's libraries, from the start */
	struct progress progress;
	struct session session;
	struct blocks blocks; /* used if common.collect.offcpu is not NULL */
	struct blocks_limit limit;
	bool limited;	       /* blocks are sampled if measuring all costs too much */
	bool collected;	       /* all counts are in the profile */
	struct timeline times; /* times of samples and waits, if the format shows them */
	struct slices slices;
	struct out_blocks blocked; /* offcpu: what its text shows besides stacks */
	const char *event;	   /* what the tool measures */
	const char *const *groups; /* names of profile_stack.group; NULL: there is one */
	size_t ngroups;
	const struct out_calls *calls; /* slow: what its text and JSON show; NULL: none */
	const struct stackset *path;   /* --critical: what is written of the report; NULL: all */
	double hz;		       /* the frequency; 0: none */
};

#define ONESHOT_OPTIONS                                                                            \
	{ 'a', "all", NULL, "with COMMAND: record all processes while it runs" },                  \
		{ 'd', "duration", "SECONDS",                                                      \
		  "stop after this time; same as the operand SECONDS" },                           \
		{ OPT_INLINE, "inline", NULL, "show inlined functions; needs debug information" }, \
		{ OPT_LINES, "lines", NULL, "show source lines; needs debug information" },        \
		{ 'q', "quiet", NULL, "print errors and losses only: no progress, no sum" },       \
		{ OPT_DEBUGINFOD, "debuginfod", NULL,                                              \
		  "fetch missing debug files from the servers in $DEBUGINFOD_URLS" },              \
		{ OPT_BY, "by", "NAME",                                                            \
		  "begin stacks with the name of the process, the thread or the container "        \
		  "(default: folded: thread, html: process)" },                                    \
	{                                                                                          \
		OPT_STATS, "stats", "FILE",                                                        \
			"write the account of the run as JSON; - is standard output"               \
	}

#define ONESHOT_THREADS                                                                \
	"keep the names of threads that differ in numbers only: without, a process's " \
	"pool-3-thread-1, -2, -3 are pool-N-thread-N (not in JSON and on timelines)"

/* Like common_opts_take, which it calls for common options. Takes the operand SECONDS, too. */
int oneshot_option(struct oneshot *r, int id, const char *arg);
void oneshot_keep_line(struct oneshot *r, int argc, char **argv);
/* Whether one of the outputs has this format */
bool oneshot_writes(const struct oneshot *r, const char *format);
/* These return 0, or the exit code after printing the error. */
int oneshot_choose(struct oneshot *r); /* the formats */
int oneshot_open(struct oneshot *r);   /* the files, before session_open */

#endif
