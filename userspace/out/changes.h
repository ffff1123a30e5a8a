/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions changed between two sides of a comparison, in the unit of its verdict.
 *
 * The change of a function is the difference of the means of the runs. Its variance has the two
 * sources that verdict.h describes: counts, and runs that differ. With several runs on a side, the
 * spread that all functions share is estimated first. It stands for MOMENTS_PRIOR degrees of
 * freedom, and each function's own variance around its means for the rest: a few runs alone would
 * let functions that happened to be steady appear sure.
 *
 * Of thousands of functions some would lie outside of their 95 % interval by chance. So a change is
 * called real only if Benjamini and Hochberg's procedure, at a false discovery rate of
 * CHANGES_FALSE, keeps it. It looks at the functions with enough samples.
 */
#ifndef SFBPF_OUT_CHANGES_H
#define SFBPF_OUT_CHANGES_H

#include "out/moves.h"
#include "out/out_stacks.h"
#include "out/verdict.h"

#define CHANGES_FALSE	0.01  /* part of the changes called real that are not */
#define CHANGES_SAMPLES 10    /* fewer on both sides together cannot show a change */
#define CHANGES_BLOCKED 0.001 /* less blocked time cannot, as a part of all */

struct function_change {
	uint32_t frame;
	enum change_note note;
	uint32_t other; /* the function that the note names */
	struct change_value self, total;
};

/* What one run adds to its side, by function. */
struct change_run {
	enum stack_side side;
	struct change_run_part {
		uint32_t frame;
		uint64_t self, total;
	} * parts;
	size_t n;
};

struct changes { /* zeroed: no runs */
	struct change_run runs[STACK_SIDES * VERDICT_RUNS];
	size_t nruns;
	/* The following are set by changes_make. */
	struct verdict_unit unit;
	struct change_value all;      /* all functions together */
	struct function_change *list; /* real changes first, then by size */
	size_t n;
};

/* Takes what was added to a side since the last call as a run. 0 or -ENOMEM. */
int changes_add_run(struct changes *c, const struct stackset *ss, enum stack_side side);
/* sides: by enum stack_side, with the runs in the order of changes_add_run. 0 or -ENOMEM. */
int changes_make(struct changes *c, const struct stackset *ss,
		 const struct verdict_side sides[STACK_SIDES], const struct verdict_unit *unit);
void changes_free(struct changes *c); /* c may be zeroed */

/* "renamed from X", "moved below X", ...; "" if there is nothing to say. Returns buf. */
#define CHANGE_NOTE_TEXT (STACK_TEXT_MAX + 64)
char *change_note_text(const struct stackset *ss, const struct function_change *c,
		       char buf[CHANGE_NOTE_TEXT]);
/* AFTER / BEFORE of all in the unit; 1 if shares are compared, or one is 0. c may be NULL. */
double changes_ratio(const struct changes *c);
/* *ret, by frame: whether its change is real, in self or total. Freed by the caller. 0, -ENOMEM. */
int changes_real(const struct changes *c, const struct stackset *ss, uint8_t **ret);
/*
 * The fewest functions whose real changes make up 90 % of the change of all, or if there are none
 * such, all that have its direction. *ret_part: the part that they make up; 0: there is nothing to
 * explain, or only one function.
 */
size_t changes_explain(const struct changes *c, double *ret_part);
/* The largest changes of self time first, whether real or not. The caller frees *ret. */
int changes_by_size(const struct changes *c, const struct function_change ***ret);

#endif
