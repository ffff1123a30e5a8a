/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What record and offcpu have in common: [options] [SECONDS] [-- COMMAND], collect until one of several ends, write
 * one output and one account.
 */
#ifndef SFBPF_TOOLS_ONESHOT_H
#define SFBPF_TOOLS_ONESHOT_H

#include <stdio.h>

#include "out/out.h"
#include "tools/command.h"
#include "tools/options.h"
#include "tools/session.h"

struct oneshot {
	struct common_opts common;
	const struct out_format *format;
	FILE *out, *stats;
	const char *seconds;		/* as typed; NULL: not */
	uint64_t duration_ns;		/* 0: until something else ends it */
	bool system_wide;
	bool inlined, lines;		/* frames and lines from DWARF */
	struct debuginfod *debuginfod;	/* NULL: no servers are asked */
	char **command;			/* NULL: none */
	struct command child;
	int (*tick)(void *ctx);		/* after each poll; 0 or -errno; NULL: none */
	void *tick_ctx;
};

#define ONESHOT_OPTIONS										\
	{ 'a', "all", NULL, "with a COMMAND: everything that runs meanwhile, not only it" },	\
	{ 'd', "duration", "SECONDS", "the same as the operand SECONDS" },			\
	{ OPT_INLINE, "inline", NULL, "show inlined functions, from debug information" },	\
	{ OPT_LINES, "lines", NULL, "show source lines, from debug information" },		\
	{ OPT_DEBUGINFOD, "debuginfod", NULL, "fetch missing debug files from $DEBUGINFOD_URLS" },	\
	{ OPT_STATS, "stats", "FILE", "the run's account as JSON (- is the standard output)" }

/* As common_opts_take, which it calls. */
int oneshot_option(struct oneshot *r, int id, const char *arg);
/* Behind the options. All of these: 0, or the exit code after having said why. */
int oneshot_operands(struct oneshot *r, int argc, char **argv);
int oneshot_prepare(struct oneshot *r);	/* format and files, before anything is collected */
/*
 * After collecting, before the report: what --inline, --lines and --debuginfod ask for, of p and more's frames (NULL: none).
 * The symbolizer has named nothing yet.
 */
int oneshot_debug(struct oneshot *r, struct session *s, const struct profile *more);
/* Collects until Ctrl-C, SECONDS, or the end of the targets or of COMMAND. The session is open. */
int oneshot_sample(struct oneshot *r, struct session *s);
int oneshot_begin(struct oneshot *r);	/* before the first byte: older results in the files end here */
void oneshot_say_losses(const struct run_stats *st);
/* Closes the files; rc, or what went wrong with them. */
int oneshot_close(struct oneshot *r, int rc);

#endif
