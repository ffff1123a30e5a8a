/* SPDX-License-Identifier: BSD-2-Clause */
/* Which cells of a piece of memory are taken: a bit for each. Taking and giving back never need memory, so neither fails for want of it. */
#ifndef SFBPF_BASE_CELLS_H
#define SFBPF_BASE_CELLS_H

#include <stdint.h>

#define CELLS_NONE UINT32_MAX

struct cells {
	uint64_t *bits;		/* 1: taken */
	uint32_t n, used;
	uint32_t longest;	/* no free run is longer than this */
};

int cells_init(struct cells *c, uint32_t n);	/* all free; n a multiple of 64. 0 or -ENOMEM */
void cells_fini(struct cells *c);
/* The first run of `len` free cells, which are taken then; CELLS_NONE if there is none. len > 0. */
uint32_t cells_take(struct cells *c, uint32_t len);
/* Gives back a run, or a part of one, that was taken. */
void cells_give(struct cells *c, uint32_t start, uint32_t len);

#endif
