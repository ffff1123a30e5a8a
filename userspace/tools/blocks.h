/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves the kernel's counts of blocked time to a session's profile. Weights are nanoseconds.
 *
 * Memory is bounded: once the profile holds max_stacks, blocks with a new stack are sampled, one
 * for each period_ns of their total time. The period doubles with each quarter of max_stacks that
 * the samples add.
 */
#ifndef SFBPF_TOOLS_BLOCKS_H
#define SFBPF_TOOLS_BLOCKS_H

#include "out/out_blocks.h"
#include "prof/locks.h"
#include "tools/session.h"

/*
 * Samples short blocks if measuring all of them costs more than 1 % of the CPUs. Zeroed: all blocks
 * are measured so far.
 */
struct blocks_limit {
	uint64_t thin_ns, thinnest_ns; /* offcpu_thin now, and the most of the run */
	/* When the programs' time was last read, and its value then */
	uint64_t cost_at_ns, cost_ns;
};

struct blocks {
	struct session *session;
	struct profile *profile;   /* the session's, unless the caller sets another one */
	struct profile *wakers;	   /* NULL: no wakers requested */
	bool no_info;		   /* do not fill info */
	struct locks *locks;	   /* takes waits for futexes; NULL: not requested */
	struct timeline *timeline; /* set during blocks_singles */
	/* Takes blocks one by one instead of the timeline; stack: index in the profile */
	void (*single)(void *ctx, const struct sf_off_single *rec, uint32_t stack);
	void *single_ctx;
	struct out_block *info; /* index: the profile's; sampled stacks have none */
	size_t ninfo, info_cap;
	struct sf_sample *buf; /* room for the longest record */
	uint64_t ns[SF_OFF_STATES];
	uint64_t period_ns, acc_ns; /* acc_ns: time of new stacks that no sample represents yet */
	uint64_t sampled_ns;	    /* time that samples represent */
	uint64_t skipped;	    /* blocks whose time is in the samples of other stacks */
	size_t max_stacks, doubled;
};

/* Call it after session_open. The caller may then change max_stacks. 0 or -ENOMEM. */
int blocks_open(struct blocks *b, struct session *s, bool wakers);
/* Takes an SF_REC_BLOCK: a collector_sample_fn. */
void blocks_take(void *blocks, const struct sf_sample *rec);
/* Adds the counts since the last call to the profile. 0 or -errno. */
int blocks_merge(struct blocks *b);
/* Calls blocks_merge if the kernel's maps are filling up. Called between polls. */
int blocks_tick(struct blocks *b);
/*
 * Adds the blocks that the kernel sent one by one to the timeline. The blocks need wakers. Called
 * between polls, before blocks_tick; last: after the end of the run.
 */
void blocks_singles(struct blocks *b, struct timeline *t, bool last);
/* Called between polls, before blocks_tick. */
void blocks_limit_cost(const struct blocks *b, struct blocks_limit *l);
#define BLOCKS_COST 0.01 /* share of all CPUs that the programs may take */
void blocks_stats(const struct blocks *b, struct run_stats *st); /* called after session_stats */
void blocks_close(struct blocks *b);

#endif
