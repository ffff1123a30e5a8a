/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of blocked time in the text output: by state, the longest stacks, and threads. */
#ifndef SFBPF_OUT_OUT_BLOCKS_H
#define SFBPF_OUT_OUT_BLOCKS_H

#include "out/out.h"

struct out_block {	 /* the blocks of a stack */
	uint64_t max_ns; /* the longest */
	struct sf_off_hist hist;
};

struct out_blocked_thread {
	struct sf_off_thread t;
	uint64_t ns; /* blocked time in all states */
	uint32_t tid;
};

/* What off-CPU profiles have besides stacks. */
struct out_blocks {		      /* zeroed: empty */
	const struct out_block *list; /* index: the profile's; stacks from n on have none */
	size_t n;
	bool hist;	  /* show histograms */
	bool has_threads; /* threads were counted */
	struct out_blocked_thread *threads;
	size_t nthreads, threads_cap;
};

/* Adds a thread. 0 or -ENOMEM */
int out_blocks_thread(struct out_blocks *b, uint32_t tid, const struct sf_off_thread *t);
void out_blocks_free(struct out_blocks *b);		   /* frees the threads */
int out_blocks_write(const struct out_report *r, FILE *f); /* 0 or -errno */

#endif
