/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether runs of a program before and after a change differ, in one line.
 *
 * The relative difference d is that of the mean logarithms of the runs' values. Its standard error
 * comes from two sources: samples are counts, so a run of n samples is known to 1 / sqrt(n); and
 * runs of the same program differ. With more than one run on a side, the variance of all runs
 * around the mean of their side says how much. With one on each side nothing does: runs are then
 * taken to differ by VERDICT_SPREAD, or by VERDICT_SPREAD_BLOCKED.
 *
 * The 95 % interval is d +- t * error (Student's t). If it excludes 0, the verdict is `faster` or
 * `slower`. A change of (t + 1.645) * error leaves the interval without 0 in 95 of 100 cases: that
 * is the smallest change that would have been seen.
 */
#ifndef SFBPF_OUT_VERDICT_H
#define SFBPF_OUT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prof/read_stacks.h"

#define VERDICT_RUNS	       64   /* the most runs of a side */
#define VERDICT_SPREAD	       0.01 /* standard deviation of CPU time, part of the value */
#define VERDICT_SPREAD_BLOCKED 0.1  /* standard deviation of blocked and of wall-clock time */

enum verdict_per {
	VERDICT_PER_DEFAULT, /* a second if no command was run and the durations are known */
	VERDICT_PER_RUN,
	VERDICT_PER_SECOND,
	VERDICT_PER_WORK, /* units of work that the user has counted */
};

struct verdict_run {
	uint64_t value;	   /* samples, or microseconds if blocked */
	double hz;	   /* samples of CPU time at this frequency; 0: not a clock's */
	double duration_s; /* 0: unknown */
	bool blocked;	   /* value is microseconds, of blocked or of wall-clock time */
	bool wall;	   /* the time is wall-clock time */
	bool command;	   /* the run is that of a command, from its start to its end */
};

struct verdict_side {
	struct verdict_run runs[VERDICT_RUNS];
	size_t n;
	double work; /* VERDICT_PER_WORK: units of work in all of its runs */
};

/* value: what the run adds to the side. False: there are too many runs. */
bool verdict_add(struct verdict_side *side, const struct stacks_meta *meta, uint64_t value);

/* What the numbers of a comparison are. */
struct verdict_unit {
	enum verdict_per per; /* not VERDICT_PER_DEFAULT */
	bool seconds;	      /* else samples */
	bool share;	      /* parts of the value of a run, whatever the others say */
	const char *what;     /* what the seconds are of: "CPU time" */
};

enum verdict_word { VERDICT_SAME, VERDICT_FASTER, VERDICT_SLOWER };

struct verdict {
	struct verdict_unit unit;
	enum verdict_word word;
	bool empty;	      /* there are no samples; nothing below is set */
	double before, after; /* geometric means of the runs, in the unit */
	/* Logarithms of AFTER / BEFORE: the change, half of its interval, what would be seen */
	double log_change, log_interval, log_visible;
};

/* Both sides have runs. 0; -EINVAL: VERDICT_PER_SECOND, and the duration of a run is unknown. */
int verdict_make(const struct verdict_side *before, const struct verdict_side *after,
		 enum verdict_per per, struct verdict *ret);
/* Writes the line without a newline. Returns its length as snprintf does. */
int verdict_text(const struct verdict *v, char *buf, size_t cap);

/* How much one sample, or one microsecond of blocked time, of a run is in the unit. */
double verdict_scale(const struct verdict_side *side, const struct verdict_run *r,
		     const struct verdict_unit *u);
/* What runs are taken to differ by where only one on each side is known. */
double verdict_spread(const struct verdict_side *side);
/* Student's t: the quantile for an interval of 95 %. freedom 0: of the normal distribution. */
double verdict_t(size_t freedom);

#endif
