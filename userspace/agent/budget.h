/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent may cost, and what it does about it: pure arithmetic; the caller measures and acts. */
#ifndef SFBPF_AGENT_BUDGET_H
#define SFBPF_AGENT_BUDGET_H

#include <stdint.h>

#define BUDGET_SLOW 2		/* windows above the limit before the frequency goes down a step (by a third) */
#define BUDGET_FAST 6		/* windows below half of it before it goes up one */

struct budget {
	double limit_pct;	/* of one CPU */
	uint64_t want_hz, hz;	/* configured, in use */
	unsigned int above, below;
};

/* After a window: CPU time used in it, and its length. The frequency to use from now on. */
uint64_t budget_step(struct budget *b, uint64_t cpu_ns, uint64_t wall_ns);
uint64_t budget_rss(void);	/* resident bytes of this process, with mapped tables and libraries; 0: unknown */
uint64_t budget_heap(void);	/* of these: its own */
uint64_t budget_cpu_ns(void);	/* CPU time of this process, all threads */

#endif
