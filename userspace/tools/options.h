/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines: one table of options a tool, from which parser and --help are made; and the options that
 * all collecting tools share.
 */
#ifndef SFBPF_TOOLS_OPTIONS_H
#define SFBPF_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "kern/collector.h"

struct option_spec {
	int id;			/* the short option's letter, or >= 256 without one; 0 ends the table */
	const char *name;	/* long name; NULL: none */
	const char *arg;	/* metavariable; NULL: takes none */
	const char *help;	/* for --help, wrapped by hand */
};

enum {	/* ids of options without a letter */
	OPT_FORMAT = 256, OPT_COMM, OPT_VERSION, OPT_STATS, OPT_RING, OPT_TABLES, OPT_TABLE_IDLE, OPT_TABLE_CACHE, OPT_DURATION,
	OPT_BTF, OPT_INLINE, OPT_LINES,
	OPT_DEBUGINFOD, OPT_TOOL,
};

/* Options common to top, record, offcpu, agent. */
extern const struct option_spec common_options[];

struct common_opts {
	struct collector_opts collect;
	struct num_cpus cpus;
	uint32_t *pids, *tids;		/* what collect points to */
	const char *output, *format, *stats;
};

struct tool_spec {
	const char *name, *usage, *summary;
	const struct option_spec *options;	/* the tool's own */
	bool common;				/* takes common_options too */
	const char *without;			/* those of them that it refuses, by letter; NULL: none */
	const char *examples;
};

/*
 * getopt_long over the tables. Returns the next option's id with *ret_arg, -1 at the end (optind is then the first
 * operand), '?' after having printed what is wrong. --help and --version are handled here: they print and return -2.
 */
int options_next(const struct tool_spec *tool, int argc, char **argv, const char **ret_arg);
void common_opts_init(struct common_opts *o, uint64_t hz);
/* Takes one of the common options. 0, EXIT_USAGE or EXIT_FAILED after having said why; -1: not a common one. */
int common_opts_take(struct common_opts *o, int id, const char *arg);
/* After the last option: contradictions, processes that do not exist. 0 or an exit code. */
int common_opts_check(struct common_opts *o);
void common_opts_free(struct common_opts *o);
/* "sfbpf: ..." on stderr; returns code. */
int complain(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
