/* SPDX-License-Identifier: BSD-2-Clause */
/* The events that trigger samples: perf's event names, and one perf event per CPU. */
#ifndef SFBPF_KERN_PERF_EVENT_H
#define SFBPF_KERN_PERF_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct perf_event_kind {
	const char *name;
	uint32_t type;		 /* PERF_TYPE_* */
	uint64_t config;	 /* PERF_COUNT_* */
	bool no_user, no_kernel; /* not while in this mode */
};

/* Finds a kind by perf's name ("cpu-clock", "page-faults", "cycles", ...); NULL if unknown. */
const struct perf_event_kind *perf_event_named(const char *name);
const struct perf_event_kind *perf_event_at(unsigned int i); /* NULL after the last one */

/*
 * Opens an event for all tasks on one CPU, disabled. hz or (if 0) period. File descriptor or
 * -errno.
 */
int perf_event_open_cpu(const struct perf_event_kind *kind, uint64_t hz, uint64_t period, int cpu);

#endif
