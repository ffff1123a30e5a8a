/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of probed functions, and what threads did in them: which calls were slow, and where typical
 * and slow calls spent their time.
 *
 * A piece is a sample, or a wait, with the number of the call that it was taken in. Pieces come
 * before the record of their call. A turn (calls_turn) gives the pieces of ended calls to the class
 * of the call and forgets the calls, but for the slowest ones: memory follows the number of
 * distinct stacks.
 *
 *   piece --record of its call--> class of the call's duration --calls_finish--> typical or slow
 *
 * If the limit of slow calls is given, there are two classes. Without it, each place of the
 * histogram is a class, and calls_finish finds the place from which on calls are the slowest 1 %.
 *
 * The time of a call is measured: its waits are measured, and the rest is CPU time. Samples only
 * divide the CPU time of all typical, and of all slow calls among stacks.
 */
#ifndef SFBPF_PROF_CALLS_H
#define SFBPF_PROF_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "prof/profile.h"

#define CALLS_SLOWEST 20
#define CALLS_PIECES  (8u << 20) /* most pieces of calls that have not ended */

enum calls_group { CALLS_TYPICAL, CALLS_SLOW, CALLS_GROUPS };

struct calls_piece {
	uint32_t number; /* the number of its call */
	uint32_t stack;	 /* index in the profile */
	/* A wait: from start to woken for something, then for a CPU. A sample: all equal */
	uint64_t start_ns, woken_ns, end_ns;
};

/* One of the slowest calls, with its pieces in the order of time. */
struct calls_one {
	struct sf_call call;
	struct calls_piece *pieces;
	size_t n;
};

struct calls_sum {
	uint64_t calls, ns;
	uint64_t waited_ns, runnable_ns; /* parts of ns; the rest is CPU time */
	uint64_t samples;
};

struct calls_result {
	struct sf_call_stats all;
	uint64_t over_ns; /* calls of this length or more are slow; UINT64_MAX: none is */
	struct calls_sum groups[CALLS_GROUPS];
	uint64_t missing;		 /* pieces for which there was no room */
	const struct calls_one *slowest; /* the slowest first */
	size_t nslowest;
};

struct calls;

/* over_ns 0: the slowest 1 % are slow. NULL: out of memory. */
struct calls *calls_new(uint64_t over_ns);
void calls_free(struct calls *c);
void calls_piece(struct calls *c, const struct calls_piece *p);
void calls_end(struct calls *c, const struct sf_call *rec);
/*
 * Settles the calls whose records came before the last turn (last: all). Stacks of their pieces may
 * come a little later than the records. 0 or -ENOMEM.
 */
int calls_turn(struct calls *c, bool last);
/* ns: the length from which on calls may turn out to be slow, and have to be kept */
uint64_t calls_keep_over(const struct calls *c, const struct sf_call_stats *all);
/* Call it after the last turn. *ret is valid until calls_free. */
void calls_finish(struct calls *c, const struct sf_call_stats *all, struct calls_result *ret);
/*
 * Adds the stacks of both groups to dst, in ns; src is the profile that pieces refer to. A group's
 * CPU time without any sample is a stack without frames. After calls_finish. 0 or -ENOMEM
 */
int calls_profile(const struct calls *c, const struct profile *src, struct profile *dst);
/* The duration below which this share of all calls is, in ns; 0: there are none. */
uint64_t calls_quantile(const struct sf_call_stats *all, double share);

#endif
