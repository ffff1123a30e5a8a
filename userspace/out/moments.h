/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of one change of a comparison; changes.h says which variances there are. */
#ifndef SFBPF_OUT_MOMENTS_H
#define SFBPF_OUT_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "prof/stackset.h"

#define MOMENTS_PRIOR 8 /* degrees of freedom of the shared spread */

struct change_value {
	double before, after; /* means of the runs */
	double interval;      /* half of the 95 % interval of after - before */
	double p;	      /* the probability of such a change by chance; 2: too few samples */
	bool real;
};

/* Sums over the runs of one function, in the unit. Those of several functions are added up. */
struct moments {
	double sum[STACK_SIDES];
	double around[STACK_SIDES];  /* the squares of the distances from the mean */
	double counted[STACK_SIDES]; /* the variance of the sum that is a count */
	double raw;		     /* samples or microseconds, on both sides */
};

struct statistics {
	size_t n[STACK_SIDES], freedom;
	double count_scale[STACK_SIDES]; /* the mean of the squares of the scales; 0: no counts */
	double least;			 /* raw: less shows nothing */
	double spread;			 /* relative variance of runs that all functions share */
};

void moments_add(struct moments *to, const struct moments *m);
/* Sets all but `real`. */
struct change_value moments_value(const struct statistics *st, const struct moments *m);

#endif
