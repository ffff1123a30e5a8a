/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events that trigger samples, one a CPU. Opened and attached in two steps: with kernel.perf_event_paranoid at 3, Debian's default,
 * Debian's kernels ask for CAP_SYS_ADMIN to open them, which does not stay until they are attached.
 */
#ifndef SFBPF_KERN_CPU_EVENTS_H
#define SFBPF_KERN_CPU_EVENTS_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "kern/perf_event.h"

struct cpu_event {
	int fd;				/* -1: none there */
	struct bpf_link *link;		/* owns fd; NULL: not attached */
};

struct cpu_events {
	const struct perf_event_kind *kind;
	uint64_t hz, period;		/* as perf_event_open_cpu's */
	const struct num_cpus *cpus;	/* NULL: all */
	int ncpus;			/* possible */
	struct cpu_event *of;		/* by CPU; NULL: none at all */
	uint64_t asleep_ns;		/* suspended since boot, when that was last looked at; 0: not yet */
};

/* e is filled but for `of`. 0 or -errno; -ENODEV: none of the CPUs is online. */
int cpu_events_open(struct cpu_events *e);
/* They count from here on. 0 or -errno. */
int cpu_events_attach(struct cpu_events *e, const struct bpf_program *prog);
/* While they count: another frequency. 0 or -errno. */
int cpu_events_set_hz(struct cpu_events *e, uint64_t hz);
/* CPUs may have come and gone since. Returns how many are sampled now. */
int cpu_events_follow(struct cpu_events *e, const struct bpf_program *prog);
void cpu_events_close(struct cpu_events *e);

#endif
