/* SPDX-License-Identifier: BSD-2-Clause */
/* The account of a run: what was sampled, lost and loaded, and the cost. */
#ifndef SFBPF_PROF_RUN_STATS_H
#define SFBPF_PROF_RUN_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "prof/profile.h"
#include "worker/totals.h"

struct run_program {
	char name[32];
	uint64_t run_cnt, run_ns;
	/* Verifier work for loading it; size of the machine code. */
	uint64_t verified_insns, verifier_states, code_bytes;
};

/* The account of a run, for --stats and the last line of text output. */
struct run_stats {
	double duration_s;
	uint64_t samples;		/* taken: received + lost */
	struct profile_account account; /* account of the received samples */
	uint64_t lost[SF_LOST_MAX];
	/* Needs that were sent; needs that did not fit the ring (sent again later). */
	uint64_t needs, needs_dropped;
	uint64_t needs_refused; /* needs beyond the share of a user (sent again later) */
	struct {
		uint64_t modules, rows, rules, bytes;
		double build_ms;
		uint64_t evicted, recycled; /* tables and module ids that were taken away */
		/* Times there was no room for a file and nothing could be evicted. */
		uint64_t full;
	} tables;
	struct worker_totals parsers;
	const struct run_program *programs;
	size_t nprograms;
	struct {
		double cpu_ms;
		uint64_t rss_peak_kb;
	} self;
	bool offcpu;			/* the members below are valid */
	uint64_t off_ns[SF_OFF_STATES]; /* time by state, of received blocks */
	uint64_t off_sampled_ns;	/* part of off_ns that is estimated from samples */
	uint64_t off_lost_ns;		/* lost time, not in off_ns */
	/* Times the counts in the kernel were read and cleared to make room. */
	uint64_t off_generations;
};

/* Samples lost for any cause. */
static inline uint64_t run_lost(const struct run_stats *st)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		sum += st->lost[i];
	return sum;
}

#endif
