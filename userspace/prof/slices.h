/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples of each stack by time, coarsely: a recording has at most SLICES_MAX slices of equal
 * width. When it gets longer, pairs of slices become one, so memory is bounded by the number of
 * stacks, whatever the duration.
 */
#ifndef SFBPF_PROF_SLICES_H
#define SFBPF_PROF_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"

#define SLICES_MAX	120
#define SLICES_WIDTH_NS 1000000u /* initial width */

struct slices {		    /* zeroed: empty */
	struct idmap cells; /* index of the stack, slice */
	uint64_t *counts;   /* indexed by cell */
	size_t cap;
	uint64_t width_ns; /* 0: empty */
	uint32_t n;	   /* the last slice with samples, plus 1 */
	bool failed;	   /* memory ran out: all counts were dropped */
};

void slices_free(struct slices *s);
/* Makes the slices wide enough for this time since the start. */
void slices_cover(struct slices *s, uint64_t ns);
/* Adds n samples of a stack to a slice, below SLICES_MAX. 0 or -ENOMEM. */
int slices_restore(struct slices *s, size_t stack, uint64_t slice, uint64_t n);
/* Adds a sample of a stack at this time since the start. */
void slices_add(struct slices *s, uint64_t ns, size_t stack);

#endif
