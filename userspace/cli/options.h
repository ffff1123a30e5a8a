/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command lines. Each tool has one table of options, used by the parser, --help, man pages and
 * completions (cli/help.h). The tools that collect samples share the common options.
 */
#ifndef SFBPF_CLI_OPTIONS_H
#define SFBPF_CLI_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/complain.h"
#include "kern/collector.h"
#include "out/out.h"

struct option_spec {
	/* The letter of the short option, or >= 256 without one; 0 ends the table */
	int id;
	const char *name; /* long name; NULL: none */
	const char *arg;  /* metavariable, "[=X]" if optional; NULL: no argument */
	const char *help; /* text without newlines: the printers wrap it */
};

enum { /* ids of options without a letter */
       OPT_FORMAT = 256,
       OPT_VERSION,
       OPT_STATS,
       OPT_RING,
       OPT_TABLES,
       OPT_INLINE,
       OPT_LINES,
       OPT_DEBUGINFOD,
       OPT_TIMELINE,
       OPT_BY,
       OPT_WALL,
       OPT_STATE_AT,
       OPT_EXACT,
       OPT_CRITICAL,
       OPT_LATENCY, /* record */
       OPT_APART,   /* --threads */
       OPT_OPERAND, /* an operand of a tool that is `mixed` */
       OPT_TOOL,    /* the first one of a tool's own */
};

/* Options common to top, record, offcpu, agent. */
extern const struct option_spec common_options[];

struct common_opts {
	struct collector_opts collect;
	struct events events;
	struct num_cpus cpus;
	uint32_t *pids, *tids; /* what collect points to */
	const char *output, *format, *stats;
	bool hz_given; /* -F */
	bool quiet;    /* -q */
};

/* A tool of the command line, listed in main.c. */
struct tool_spec {
	const char *name, *usage;
	const char *brief;		   /* text in the list of tools, without a full stop */
	const char *summary;		   /* a paragraph; the printers wrap it */
	const struct option_spec *options; /* the tool's own */
	const struct option_spec *(*make_options)(void); /* replaces options; NULL: none */
	bool common;					 /* also takes common_options */
	bool permute;					 /* options may follow operands, up to -- */
	/* Operands are taken like options, as OPT_OPERAND, up to --; a command follows it */
	bool mixed;
	/* Letters of common options that the tool does not take; NULL: none */
	const char *without;
	const char *examples; /* lines indented by two spaces */
	/* argv[0] is the tool's name; returns an exit code, or OPTIONS_DONE */
	int (*run)(int argc, char **argv);
};

const struct option_spec *tool_options(const struct tool_spec *tool);

/* The text that --help, --version or the like asks for is printed: the tool ends with success. */
#define OPTIONS_DONE (-1)

/* Takes an option. 0; an exit code after printing the error; or OPTIONS_DONE. */
typedef int options_take_fn(void *ctx, int id, const char *arg);

/*
 * getopt_long over the tables. Passes each option to take() until one is not 0, and returns that.
 * 0: optind is the first operand that was not taken.
 */
int options_parse(const struct tool_spec *tool, int argc, char **argv, options_take_fn *take,
		  void *ctx);
/* Complains that out_format_choose found no format. Returns EXIT_USAGE. */
int options_unknown_format(const char *name, const char *path, enum out_source source);
/* Opens what -o names; NULL and - are standard output. 0 or an exit code. */
int options_open_output(const char *path, FILE **ret);
/* The file of an output, which may be given once. 0, or EXIT_USAGE after complaining. */
int options_take_once(const char *option, const char *arg, const char **ret);
/*
 * 0, or EXIT_FAILED after complaining: in another PID namespace than the host's, `what` cannot
 * select processes.
 */
int options_need_host_pids(const char *what);
/* A time whose unit is microseconds if it has none. 0, or EXIT_USAGE after complaining. */
int options_take_time(const char *option, const char *arg, uint64_t *ret);
void common_opts_init(struct common_opts *o, uint64_t hz);
/* Takes a common option. 0, or an exit code after printing the error. */
int common_opts_take(struct common_opts *o, int id, const char *arg);
/* Checks for contradictions and missing processes after the last option. 0 or an exit code. */
int common_opts_check(struct common_opts *o);
/* Refuses several events, and those that add up numbers. 0 or an exit code. */
int common_opts_one_count(const struct common_opts *o);
/*
 * Whether only some tasks or CPUs are profiled: progress, top and the message for an empty result
 * ask this function.
 */
bool common_opts_filter(const struct common_opts *o);
void common_opts_free(struct common_opts *o);

#endif
