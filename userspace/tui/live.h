/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last seconds of a running profile. Samples are grouped in slices of about a second; a window
 * is the sum of the newest slices. The counters of losses and costs are kept per slice, too, so
 * that a loss is shown as long as its slice is in the window.
 */
#ifndef SFBPF_TUI_LIVE_H
#define SFBPF_TUI_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "prof/profile.h"

enum live_span { LIVE_5S, LIVE_30S, LIVE_ALL, LIVE_SPANS };

struct live_counters {	/* all of them are monotonic */
	uint64_t taken; /* samples, received and lost; off-CPU: blocks */
	uint64_t lost[SF_LOST_MAX];
	uint64_t cpu_ns;	      /* CPU time of the profiler */
	uint64_t bpf_ns;	      /* CPU time of its BPF programs, charged to the tasks */
	uint64_t sampled_ns, lost_ns; /* off-CPU: blocked time that is sampled, or lost */
};

struct live_sum {	/* sums of a window */
	double seconds; /* duration */
	struct live_counters c;
};

struct live;

struct live *live_new(void); /* NULL: out of memory */
void live_free(struct live *l);
/* Starts the first slice. */
void live_start(struct live *l, const struct live_counters *now, uint64_t now_ns);
/*
 * Adds p, the samples since the last call or live_start, to the windows. late: only to LIVE_ALL,
 * because the display was paused and the short windows must not show old samples as new. Returns an
 * empty profile for the next samples: p or another one. Out of memory, the windows lack p's
 * samples.
 */
struct profile *live_take(struct live *l, struct profile *p, struct symbolizer *sz,
			  const struct live_counters *now, uint64_t now_ns, bool late);
/*
 * The samples of a window, valid until the next live_window or live_reset. The window of LIVE_ALL
 * grows with every live_take. NULL: out of memory.
 */
struct profile *live_window(struct live *l, enum live_span span, struct live_sum *ret);
void live_mark(const struct live *l, const struct modules *ms); /* profile_mark for all of them */
void live_reset(struct live *l);				/* discards all samples */

#endif
