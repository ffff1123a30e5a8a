/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of u64. */
#ifndef SFBPF_BASE_U64S_H
#define SFBPF_BASE_U64S_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/vec.h"

/* Appends v. 0 or -ENOMEM. */
static inline int u64_push(uint64_t **list, size_t *n, size_t *cap, uint64_t v)
{
	int err = vec_reserve(list, cap, *n + 1, sizeof(**list));

	if (!err)
		(*list)[(*n)++] = v;
	return err;
}

static inline bool u64_has(const uint64_t *list, size_t n, uint64_t v)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

/* Compares two numbers for qsort. */
static inline int u64_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorts the list, and removes what is in it twice. Returns how many are left. */
static inline size_t u64_sort_unique(uint64_t *list, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(list, n, sizeof(*list), u64_compare);
	for (size_t i = 0; i < n; i++)
		if (!i || list[i] != list[i - 1])
			list[kept++] = list[i];
	return kept;
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
