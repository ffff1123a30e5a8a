/* SPDX-License-Identifier: BSD-2-Clause */
/* A stackset as text: what `report` and `diff` print. */
#ifndef SFBPF_OUT_OUT_STACKS_H
#define SFBPF_OUT_OUT_STACKS_H

#include <stdbool.h>
#include <stdio.h>

#include "prof/stackset.h"

struct stacks_text {
	bool two_sides;		/* differences instead of one profile */
	const char *unit;	/* "samples", "microseconds" */
	size_t rows;		/* of the table */
	int columns;		/* of the screen; 0: lines are not cut */
	double tree_min;	/* percent of all below which a branch is left out of the call tree */
};

/* The folded line's text, without the count, as out_folded writes it; sorted. Of two sides: "stack BEFORE AFTER". 0 or -errno. */
int stacks_write_folded(const struct stackset *ss, bool two_sides, FILE *f);
int stacks_write_text(const struct stackset *ss, const struct stacks_text *opts, FILE *f);

/* Self and total of each function, by frame id; a recursive one counts once a stack. */
struct stacks_tally {
	uint32_t frame;
	uint64_t self[STACK_SIDES], total[STACK_SIDES];
};
int stacks_tally(const struct stackset *ss, struct stacks_tally **ret);	/* ss->frames.n of them, malloc'ed */

#endif
