/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracks the used cells of a memory area with one bit each. Taking and giving back need no memory,
 * so they cannot fail for lack of it.
 */
#ifndef SFBPF_BASE_CELLS_H
#define SFBPF_BASE_CELLS_H

#include <stdint.h>

#define CELLS_NONE UINT32_MAX

struct cells {
	uint64_t *bits; /* 1: used */
	uint32_t n, used;
	uint32_t longest; /* no free run is longer than this */
};

/* all cells free; n must be a multiple of 64. 0 or -ENOMEM */
int cells_init(struct cells *c, uint32_t n);
void cells_fini(struct cells *c);
/* Takes the first run of `len` free cells, len > 0. CELLS_NONE: no such run. */
uint32_t cells_take(struct cells *c, uint32_t len);
/* Gives back a taken run, or a part of one. */
void cells_give(struct cells *c, uint32_t start, uint32_t len);

#endif
