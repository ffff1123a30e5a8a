/* SPDX-License-Identifier: BSD-2-Clause */
/* Grows arrays by doubling, with an overflow check. */
#ifndef SFBPF_BASE_VEC_H
#define SFBPF_BASE_VEC_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Makes *arr (a malloc'ed array of *cap elements, or NULL) large enough for `want` elements of
 * `size` bytes. 0 or -ENOMEM.
 */
static inline int vec_reserve_(void **arr, size_t *cap, size_t want, size_t size)
{
	size_t grown;
	void *p;

	if (want <= *cap)
		return 0;
	grown = *cap > (size_t)-1 / 2 ? want : *cap * 2;
	if (grown < want)
		grown = want;
	if (grown < 16)
		grown = 16;
	if (grown > (size_t)-1 / size)
		return -ENOMEM;
	p = realloc(*arr, grown * size);
	if (!p)
		return -ENOMEM;
	*arr = p;
	*cap = grown;
	return 0;
}

#define vec_reserve(arr, cap, want, size) vec_reserve_((void **)(arr), (cap), (want), (size))

#endif
