/* SPDX-License-Identifier: BSD-2-Clause */
/* A stackset as text: what `report` and `diff` print. */
#ifndef SFBPF_OUT_OUT_STACKS_H
#define SFBPF_OUT_OUT_STACKS_H

#include <stdbool.h>
#include <stdio.h>

#include "prof/stackset.h"

struct changes;
struct html_meta;
struct verdict;

struct stacks_text {
	bool two_sides;	  /* show the differences of the sides instead of one profile */
	const char *unit; /* "samples", "microseconds" */
	size_t rows;	  /* rows of the table */
	int columns;	  /* width of the screen; 0: lines are not cut */
	/* Branches below this percentage of all are left out of the call tree */
	double tree_min;
	/* The name of what stacks begin with ("service"), for a table and call trees; NULL: none */
	const char *by;
	const struct html_meta *meta; /* metadata of one profile; NULL: unknown */
	/* What two sides have; NULL: there is one */
	const struct verdict *verdict;
	const char *verdict_line;
	const struct changes *changes;
	bool unicode; /* draw the lines of the tree with box characters */
};

/*
 * Writes sorted lines like out_folded, or with two sides "stack BEFORE AFTER". 0 or -errno; -EFBIG:
 * more than max bytes, because each line repeats the frames that it shares with others.
 */
int stacks_write_folded(const struct stackset *ss, bool two_sides, uint64_t max, FILE *f);
/*
 * Side AFTER as pprof. by: name of the label that stacks begin with; NULL: the thread's name. 0 or
 * -errno.
 */
int stacks_write_pprof(const struct stackset *ss, const struct html_meta *meta, const char *by,
		       FILE *f);
/* Text of one side. */
int stacks_write_text(const struct stackset *ss, const struct stacks_text *opts, FILE *f);

/* The sums of what stacks begin with, largest first (AFTER, then BEFORE). */
struct stacks_group {
	const char *name;
	uint64_t sum[STACK_SIDES];
};
/* The caller frees *ret. 0 or -ENOMEM. */
int stacks_groups(const struct stackset *ss, struct stacks_group **ret, size_t *ret_n);

/*
 * Self and total of each function, indexed by frame id. A recursive function counts once per stack.
 */
struct stacks_tally {
	uint32_t frame;
	uint64_t self[STACK_SIDES], total[STACK_SIDES];
};
/* Allocates ss->frames.n entries. 0 or -ENOMEM. */
int stacks_tally(const struct stackset *ss, struct stacks_tally **ret);

#endif
