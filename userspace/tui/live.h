/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last seconds of a running profile. Samples come in slices of about a second; a window is the sum of the
 * newest ones. The counters that say how far to trust a window are kept by slice too, so that a loss is shown for
 * as long as the window it fell into.
 */
#ifndef SFBPF_TUI_LIVE_H
#define SFBPF_TUI_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "prof/profile.h"

enum live_span { LIVE_5S, LIVE_30S, LIVE_ALL, LIVE_SPANS };

struct live_counters {			/* all of them only grow */
	uint64_t taken;			/* samples: received and lost ones; off-CPU: blocks */
	uint64_t lost[SF_LOST_MAX];
	uint64_t cpu_ns;		/* our own CPU time */
	uint64_t bpf_ns;		/* and that of our BPF programs, which is the tasks' */
	uint64_t sampled_ns, lost_ns;	/* off-CPU: blocked time that is sampled, or not there */
};

struct live_sum {			/* of a window */
	double seconds;			/* that it covers */
	struct live_counters c;
};

struct live;

struct live *live_new(void);		/* NULL: out of memory */
void live_free(struct live *l);
/* Where the first slice starts. */
void live_start(struct live *l, const struct live_counters *now, uint64_t now_ns);
/*
 * Takes p, what was sampled since the last call or live_start, into the windows, or only into LIVE_ALL if
 * `late` (the display was held meanwhile: the short windows must not show old samples as new). Returns an empty
 * profile to go on with: p or another one. Without memory p's samples are missing from the windows.
 */
struct profile *live_take(struct live *l, struct profile *p, struct symbolizer *sz, const struct live_counters *now,
			  uint64_t now_ns, bool late);
/*
 * The window's samples. Valid until the next live_window or live_reset; that of LIVE_ALL grows with every live_take.
 * NULL: out of memory.
 */
struct profile *live_window(struct live *l, enum live_span span, struct live_sum *ret);
void live_see(const struct live *l, const struct modules *ms);	/* profile_see for all of them */
void live_reset(struct live *l);	/* forgets everything taken so far */

#endif
