/* SPDX-License-Identifier: BSD-2-Clause */
/* Brief rows (rows/brief.h) of .eh_frame's functions. */
#ifndef SFBPF_READERS_EH_BRIEF_H
#define SFBPF_READERS_EH_BRIEF_H

#include "readers/eh_frame.h"
#include "rows/brief.h"

struct eh_brief;

/* The result is for functions of e, which must outlive it. NULL: out of memory. */
struct eh_brief *eh_brief_new(const struct eh_frame *e);
void eh_brief_free(struct eh_brief *m);
/*
 * Fills `out` with the rows that eh_frame_rows gives, except that neighbours with equal rules are
 * not always joined. 1; 0: the function has no brief form, or damage that eh_frame_rows has to
 * note; -ENOMEM.
 */
int eh_brief_rows(struct eh_brief *m, const struct fn *fn, struct brief *out);
/*
 * Prefetches two functions that will be read next. Linkers sort functions but not their FDEs, so in
 * large files each read would wait for memory.
 */
void eh_brief_fetch(const struct eh_brief *m, const struct fn *soon, const struct fn *later);
/* The row of a rule number, with start and end 0. */
void eh_brief_rule(const struct eh_brief *m, uint32_t rule, struct row *ret);

#endif
