/* SPDX-License-Identifier: BSD-2-Clause */
/* What the function starts of a table are relative to, and where there is code. */
#ifndef SFBPF_READERS_SFRAME_ANCHOR_H
#define SFBPF_READERS_SFRAME_ANCHOR_H

#include "readers/sframe_fde.h"

/* Executable address ranges, ascending and disjoint. */
struct sframe_exec {
	struct {
		uint64_t start, end;
	} * ranges;
	size_t n;
	bool known; /* false: there are no program headers, every address is accepted */
};

int sframe_exec_init(struct sframe_exec *x, const struct sframe_bounds *bounds);
void sframe_exec_free(struct sframe_exec *x);
/* sframe_exec_holds() for any number of ranges */
bool sframe_exec_search(const struct sframe_exec *x, uint64_t addr, uint64_t *ret_end);

/* Whether code may start at addr; *ret_end is then the end of its range. */
static inline bool sframe_exec_holds(const struct sframe_exec *x, uint64_t addr, uint64_t *ret_end)
{
	if (!x->known || x->n != 1)
		return sframe_exec_search(x, addr, ret_end);
	*ret_end = x->ranges[0].end;
	return addr >= x->ranges[0].start && addr < x->ranges[0].end;
}

static inline uint64_t sframe_fde_addr(const struct sframe *s, const struct sframe_table *t,
				       const struct sframe_fde *fde)
{
	return s->addr + (t->section_relative ? t->offset : fde->start_off) + (uint64_t)fde->start;
}

/*
 * Whether the linker dropped the function after the table was made: mold resolves the reference to
 * address 0, GNU ld stores 0 in the field, which then names itself. In a relocatable object every
 * field is 0 until it is relocated, and no function counts as dropped.
 */
static inline bool sframe_fde_is_tombstone(const struct sframe_exec *x,
					   const struct sframe_fde *fde, uint64_t addr)
{
	return x->known && (!addr || !fde->start);
}

/*
 * Sets t->section_relative. False: with neither reading does any function start in executable code.
 */
bool sframe_anchor_choose(const struct sframe *s, struct sframe_table *t,
			  const struct sframe_exec *x, struct diag *diag);

#endif
