/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Histograms of durations: the places 0 to 31 are those of 0 to 31 ns, then there are 32 for each
 * power of two. A place is at most 1/32 wide. For BPF and for the host.
 */
#ifndef SFBPF_CALL_HIST_H
#define SFBPF_CALL_HIST_H

#include "border/sfbpf_types.h"

#define SF_CALL_SUB	  5 /* log2 of the places for a power of two */
#define SF_CALL_HIST	  2048
#define SF_CALL_HIST_MOST ((64 - SF_CALL_SUB) << SF_CALL_SUB | 31)

_Static_assert(SF_CALL_HIST_MOST < SF_CALL_HIST, "all durations have a place");

static inline __attribute__((always_inline)) sf_u32 call_hist_place(sf_u64 ns)
{
	sf_u32 shift = 0;

	if (ns >> 32 >> SF_CALL_SUB)
		shift += 32;
	if (ns >> (shift + 16) >> SF_CALL_SUB)
		shift += 16;
	if (ns >> (shift + 8) >> SF_CALL_SUB)
		shift += 8;
	if (ns >> (shift + 4) >> SF_CALL_SUB)
		shift += 4;
	if (ns >> (shift + 2) >> SF_CALL_SUB)
		shift += 2;
	if (ns >> (shift + 1) >> SF_CALL_SUB)
		shift += 1;
	if (ns >> shift >> SF_CALL_SUB)
		shift += 1;
	/* The highest bit of the six that are left says that it is not below 32. */
	return (shift << SF_CALL_SUB) + (sf_u32)(ns >> (shift ? shift - 1 : 0)) -
	       (shift ? 1u << SF_CALL_SUB : 0);
}

/* The shortest duration of a place, in ns. */
static inline sf_u64 call_hist_from(sf_u32 place)
{
	sf_u32 shift = place >> SF_CALL_SUB;

	return shift ? (sf_u64)((place & 31) | 32) << (shift - 1) : place;
}

#endif
