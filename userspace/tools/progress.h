/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What record and offcpu say. On a terminal: what is recorded and how it ends, a line that is
 * updated, and why stacks are incomplete. Everywhere: one line on what was written. With -q nothing
 * of it.
 */
#ifndef SFBPF_TOOLS_PROGRESS_H
#define SFBPF_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "prof/run_stats.h"

struct session;

struct progress {
	bool sums, on, shown; /* on: stderr is a terminal */
	uint64_t next_ns;     /* CLOCK_MONOTONIC; when the line is updated */
};

/* command: NULL without one. duration_ns 0: no limit. */
void progress_begin(struct progress *p, const struct common_opts *o, const char *command,
		    uint64_t duration_ns);
void progress_tick(struct progress *p, struct session *s);
void progress_clear(struct progress *p); /* removes the line */
/* wrote: "html in run.html, text". things: "samples" or "blocks". */
void progress_wrote(const struct progress *p, const char *wrote, const struct run_stats *st,
		    const char *things);

#endif
