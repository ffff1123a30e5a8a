/* SPDX-License-Identifier: BSD-2-Clause */
/* Brief rows (rows/brief.h) of .sframe's functions. */
#ifndef SFBPF_READERS_SFRAME_BRIEF_H
#define SFBPF_READERS_SFRAME_BRIEF_H

#include "readers/sframe.h"
#include "rows/brief.h"

struct sframe_brief;

/* The result is for functions of s, which must outlive it. NULL: out of memory. */
struct sframe_brief *sframe_brief_new(const struct sframe *s);
void sframe_brief_free(struct sframe_brief *m);
/*
 * Fills `out` with the rows that sframe_rows gives. 1; 0: the function has no brief form, or
 * something that sframe_rows has to note; -ENOMEM.
 */
int sframe_brief_rows(struct sframe_brief *m, const struct fn *fn, struct brief *out);
/* The row of a rule number, with start and end 0. */
void sframe_brief_rule(const struct sframe_brief *m, uint32_t rule, struct row *ret);

#endif
