/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stable radix sort of records that begin with a uint64_t key. Symbol tables have addresses in
 * nearly random order, and a comparison sort takes three times as long on these.
 */
#ifndef SFBPF_BASE_RADIX_H
#define SFBPF_BASE_RADIX_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RADIX_BITS 11
#define RADIX_SIZE (1u << RADIX_BITS)

static inline uint64_t radix_key(const uint8_t *record)
{
	uint64_t key;

	memcpy(&key, record, sizeof(key));
	return key;
}

/*
 * Sorts n records of `size` bytes, size >= 8. 0; -ENOMEM: the order is unchanged. Inlined, so that
 * `size` is a constant.
 */
static inline __attribute__((always_inline)) int radix_sort(void *records, size_t n, size_t size)
{
	uint8_t *from = records, *to, *spare;
	uint64_t differ = 0, first;
	size_t at[RADIX_SIZE];

	if (n < 2)
		return 0;
	first = radix_key(from);
	for (size_t i = 1; i < n; i++)
		differ |= first ^ radix_key(from + i * size);
	spare = to = malloc(n * size);
	if (!spare)
		return -ENOMEM;
	for (unsigned int shift = 0; shift < 64; shift += RADIX_BITS) {
		size_t sum = 0;

		if (!(differ >> shift & (RADIX_SIZE - 1)))
			continue; /* all keys agree in these bits */
		memset(at, 0, sizeof(at));
		for (size_t i = 0; i < n; i++)
			at[radix_key(from + i * size) >> shift & (RADIX_SIZE - 1)]++;
		for (size_t d = 0; d < RADIX_SIZE; d++) {
			size_t count = at[d];

			at[d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			memcpy(to + at[radix_key(from + i * size) >> shift & (RADIX_SIZE - 1)]++ *
					       size,
			       from + i * size, size);
		uint8_t *t = from;

		from = to;
		to = t;
	}
	if (from != (uint8_t *)records)
		memcpy(records, from, n * size);
	free(spare);
	return 0;
}

#endif
