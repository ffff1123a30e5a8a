/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorted arrays of u64. */
#ifndef SFBPF_BASE_U64S_H
#define SFBPF_BASE_U64S_H

#include <stddef.h>
#include <stdint.h>

/* For qsort. */
static inline int u64_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The index of the first value that is v or above; n: there is none. */
static inline size_t u64_first_from(const uint64_t *sorted, size_t n, uint64_t v)
{
	/* Values before lo are below v, those from hi on are not */
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sorted[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

#endif
