/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/cells.h"

#include <errno.h>
#include <stdlib.h>

int cells_init(struct cells *c, uint32_t n)
{
	*c = (struct cells){ .n = n, .longest = n };
	c->bits = calloc(n / 64, sizeof(*c->bits));
	return c->bits ? 0 : -ENOMEM;
}

void cells_fini(struct cells *c)
{
	free(c->bits);
	*c = (struct cells){ 0 };
}

/* The first used cell (or free cell, if flip is all ones) in [at, end), else end. */
static uint32_t next(const struct cells *c, uint32_t at, uint32_t end, uint64_t flip)
{
	while (at < end) {
		uint64_t word = (c->bits[at / 64] ^ flip) >> at % 64;

		if (word) {
			at += (uint32_t)__builtin_ctzll(word);
			return at < end ? at : end;
		}
		at = (at / 64 + 1) * 64;
	}
	return end;
}

static void set(struct cells *c, uint32_t start, uint32_t len, uint64_t to)
{
	while (len) {
		uint32_t shift = start % 64, n = 64 - shift < len ? 64 - shift : len;
		uint64_t mask = (n == 64 ? ~0ull : (1ull << n) - 1) << shift;

		c->bits[start / 64] = (c->bits[start / 64] & ~mask) | (to & mask);
		start += n;
		len -= n;
	}
}

uint32_t cells_take(struct cells *c, uint32_t len)
{
	uint32_t longest = 0;

	if (len > c->longest)
		return CELLS_NONE;
	for (uint32_t start = next(c, 0, c->n, ~0ull); start < c->n;) {
		uint32_t end = next(c, start, c->n - start > len ? start + len : c->n, 0);

		if (end - start == len) {
			set(c, start, len, ~0ull);
			c->used += len;
			return start;
		}
		if (end - start > longest)
			longest = end - start;
		start = next(c, end, c->n, ~0ull);
	}
	c->longest = longest;
	return CELLS_NONE;
}

void cells_give(struct cells *c, uint32_t start, uint32_t len)
{
	set(c, start, len, 0);
	c->used -= len;
	c->longest = c->n - c->used;
}
