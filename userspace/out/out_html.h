/* SPDX-License-Identifier: BSD-2-Clause */
/* Flame graphs as one HTML file that needs nothing else. */
#ifndef SFBPF_OUT_OUT_HTML_H
#define SFBPF_OUT_OUT_HTML_H

#include <stdio.h>

#include "out/out.h"
#include "prof/stackset.h"

/* What the page says about where its numbers come from. Strings may be NULL, numbers 0: unknown. They need not be clean. */
struct html_meta {
	const char *title, *before;	/* the profile's name; of a comparison, also that of the older one */
	const char *unit;		/* of values: "samples", "microseconds" or "nanoseconds" */
	const char *event, *host;
	double hz;			/* only of clock events: a sample is then 1/hz s of CPU time */
	double duration_s;
	uint64_t start_unix_ns;
	uint64_t lost;
	uint64_t user_stacks, complete;
};

/* With meta->before, differences of the two sides are shown in red and blue. 0 or -errno. */
int html_write(const struct stackset *ss, const struct html_meta *meta, FILE *f);
/* All stacks of a report, with the parts that its options ask for. 0 or -ENOMEM. */
int out_stackset(const struct out_report *r, struct stackset *ss, enum stack_side side);

#endif
