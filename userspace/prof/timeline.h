/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When and where each sample of a profile was taken, and when threads were blocked. The profile
 * keeps threads apart (profile_by_thread); a sample is its time, its CPU and the index of its
 * stack.
 */
#ifndef SFBPF_PROF_TIMELINE_H
#define SFBPF_PROF_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/profile.h"

/* Limits on memory. Sorting the blocks takes three times their memory in addition. */
#define TIMELINE_BYTES	     (256u << 20) /* bytes of the samples */
#define TIMELINE_BLOCK_BYTES (64u << 20)  /* bytes of the blocks */

struct timeline_sample {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t stack, cpu;
};

struct timeline_block {
	uint64_t start_ns, woken_ns, end_ns; /* it waits for a CPU from woken to end */
	uint32_t stack;			     /* index in the profile, perhaps of another thread */
	uint32_t waker;			     /* 1 + index in the profile of wakers; 0: unknown */
	uint32_t tid, waker_tid;	     /* waker_tid 0: an interrupt */
};

struct timeline { /* zeroed: empty */
	struct timeline_sample *list;
	size_t n, cap;
	size_t max;	  /* samples, blocks; 0: by memory */
	uint64_t dropped; /* samples beyond max; they are in the profile only */
	/* Blocks of min_block_ns or more; missing: those that are not in the list */
	struct timeline_block *blocks;
	size_t nblocks, blocks_cap;
	uint64_t min_block_ns, missing;
	bool has_blocks;       /* blocks were recorded */
	uint64_t start_ns;     /* start of the recording, CLOCK_MONOTONIC */
	uint64_t suspended_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC */
};

/* What a thread did at a time: a block, its wait for a CPU, or waking the thread of a block. */
enum timeline_kind { TIMELINE_BLOCKED, TIMELINE_RUNNABLE, TIMELINE_WAKES };

struct timeline_mark {
	uint64_t thread;	   /* pid << 32 | tid, as in tracks: a main thread's tid is 0 */
	uint64_t start_ns, end_ns; /* TIMELINE_WAKES: equal */
	uint32_t block;
	enum timeline_kind kind;
};

/*
 * A thread, or a CPU, and its samples in the order of time: list[first .. first + n). marks:
 * likewise in timeline_tracks.marks.
 */
struct timeline_track {
	uint32_t pid, tid; /* a CPU's: 0, its number */
	size_t first, n;
	size_t first_mark, nmarks;
	/* Names in its last sample or mark, and in that of the process's main thread, if any */
	const char *comm, *process; /* foreign bytes, valid as long as the profile is unchanged */
};

struct timeline_tracks {
	struct timeline_track *list;
	size_t n;
	struct timeline_mark *marks;
	size_t nmarks;
};

void timeline_free(struct timeline *t);
void timeline_add(struct timeline *t, uint64_t time_ns, uint32_t cpu, size_t stack);
void timeline_add_block(struct timeline *t, const struct timeline_block *b);
void timeline_tracks_free(struct timeline_tracks *t);
/* The time of the first sample or block, or of the start if that is earlier. */
uint64_t timeline_begin(const struct timeline *t);
/*
 * Sorts the samples by thread (processes by id, the main thread first) or by CPU, which ends the
 * use of earlier tracks. wakers: NULL without blocks. Threads have marks, CPUs have none. 0 or
 * -ENOMEM; free *ret in either case.
 */
int timeline_by_thread(struct timeline *t, const struct profile *p, const struct profile *wakers,
		       struct timeline_tracks *ret);
int timeline_by_cpu(struct timeline *t, struct timeline_tracks *ret);
void timeline_by_time(struct timeline *t); /* sorts, which ends the use of tracks, too */

#endif
