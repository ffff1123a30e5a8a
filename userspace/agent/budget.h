/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits on what the agent may use. The arithmetic is here; the caller measures and applies it. */
#ifndef SFBPF_AGENT_BUDGET_H
#define SFBPF_AGENT_BUDGET_H

#include <stdint.h>

/* Windows above the limit until the frequency is lowered by a third */
#define BUDGET_SLOW 2
#define BUDGET_FAST 6 /* windows below half of the limit until it is raised by half */

struct budget {
	double limit_pct;     /* percent of one CPU */
	uint64_t want_hz, hz; /* configured, in use */
	unsigned int above, below;
};

/*
 * Called after a window with its CPU time and its length. Returns the frequency to use from now on.
 */
uint64_t budget_step(struct budget *b, uint64_t cpu_ns, uint64_t wall_ns);
/* Resident bytes of this process, including mapped tables and libraries; 0: unknown */
uint64_t budget_rss(void);
uint64_t budget_heap(void);   /* anonymous memory only */
uint64_t budget_cpu_ns(void); /* CPU time of this process, all threads */
/*
 * Has malloc return large buffers (conversions, requests) to the kernel when they are freed. Call
 * it before the first thread starts. By default, malloc raises its thresholds to the sizes it has
 * seen and keeps up to 32 MB in each arena.
 */
void budget_return_memory(void);

#endif
