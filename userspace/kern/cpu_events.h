/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The perf events that trigger samples, one per CPU. Opened and attached in two steps, because
 * opening may need CAP_SYS_ADMIN, which is dropped before attaching: Debian's kernels require it if
 * kernel.perf_event_paranoid is 3, Debian's default.
 */
#ifndef SFBPF_KERN_CPU_EVENTS_H
#define SFBPF_KERN_CPU_EVENTS_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "kern/perf_event.h"

struct cpu_event {
	int fd;		       /* -1: not open */
	struct bpf_link *link; /* owns fd; NULL: not attached */
};

struct cpu_events {
	const struct perf_event_kind *kind;
	uint64_t hz, period;	     /* see perf_event_open_cpu */
	uint64_t cookie;	     /* bpf_get_attach_cookie() in the program */
	const struct num_cpus *cpus; /* NULL: all */
	int ncpus;		     /* possible */
	struct cpu_event *of;	     /* indexed by CPU; NULL: not opened */
	/* Time suspended since boot, at the last check; 0: not checked yet */
	uint64_t asleep_ns;
	bool paused;
};

/* The caller fills e except `of`. 0 or -errno; -ENODEV: none of the CPUs is online. */
int cpu_events_open(struct cpu_events *e);
/* Starts sampling. 0 or -errno. */
int cpu_events_attach(struct cpu_events *e, const struct bpf_program *prog);
/* Changes the frequency. Call during sampling. 0 or -errno. */
int cpu_events_set_hz(struct cpu_events *e, uint64_t hz);
/* Takes no samples until it is called with false. Call during sampling. 0 or -errno. */
int cpu_events_pause(struct cpu_events *e, bool pause);
/* Follows CPU hotplug. Returns the number of CPUs that are sampled now. */
int cpu_events_follow(struct cpu_events *e, const struct bpf_program *prog);
void cpu_events_close(struct cpu_events *e);

#endif
