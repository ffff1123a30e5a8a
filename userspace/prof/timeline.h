/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When and where each sample of a profile was taken. The profile keeps threads apart
 * (profile_by_thread); a sample is its time, its CPU and the index of its stack.
 */
#ifndef SFBPF_PROF_TIMELINE_H
#define SFBPF_PROF_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"

#define TIMELINE_BYTES (256u << 20) /* limit on the memory of the samples */

struct timeline_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t stack, cpu;
};

struct timeline { /* zeroed: empty */
	struct timeline_sample *list;
	size_t n, cap;
	size_t max;	       /* samples; 0: TIMELINE_BYTES */
	uint64_t dropped;      /* samples beyond max; they are in the profile only */
	uint64_t start_ns;     /* of the recording, CLOCK_MONOTONIC */
	uint64_t suspended_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC */
};

/* A thread, or a CPU, and its samples in the order of time: list[first .. first + n). */
struct timeline_track {
	uint32_t pid, tid; /* of a CPU: 0, its number */
	size_t first, n;
	/* Of its last sample, and of the last one of the process's main thread if it has any */
	const char *comm, *process; /* foreign bytes, valid as long as the profile is unchanged */
};

struct timeline_tracks {
	struct timeline_track *list;
	size_t n;
};

void timeline_free(struct timeline *t);
void timeline_add(struct timeline *t, uint64_t time_ns, uint32_t cpu, size_t stack);
/* The time of the first sample, or of the start if that is earlier. */
uint64_t timeline_begin(const struct timeline *t);
/*
 * Sorts the samples by thread (processes by id, the main thread first) or by CPU, which ends the
 * use of earlier tracks. The caller frees ret->list. 0 or -ENOMEM.
 */
int timeline_by_thread(struct timeline *t, const struct profile *p, struct timeline_tracks *ret);
int timeline_by_cpu(struct timeline *t, struct timeline_tracks *ret);
void timeline_by_time(struct timeline *t); /* sorts, which ends the use of tracks, too */

#endif
