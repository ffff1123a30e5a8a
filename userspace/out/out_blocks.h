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
	const struct locks *locks; /* --locks; NULL: not requested */
};

/* Adds a thread. 0 or -ENOMEM */
int out_blocks_thread(struct out_blocks *b, uint32_t tid, const struct sf_off_thread *t);
void out_blocks_free(struct out_blocks *b);		   /* frees the threads */
int out_blocks_write(const struct out_report *r, FILE *f); /* 0 or -errno */
/* What is shown of stack i of p, as a hash. 0 or -ENOMEM. */
int out_blocks_look(const struct out_report *r, struct profile *p, size_t i, uint64_t *ret);
/* Writes the frames of stack i of p, the outermost one first, each on a line. 0 or -errno. */
int out_blocks_frames(const struct out_report *r, struct profile *p, size_t i, FILE *f);

#endif
