/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of .sframe's functions in brief. */
#ifndef SFBPF_UNWIND_SFRAME_BRIEF_H
#define SFBPF_UNWIND_SFRAME_BRIEF_H

#include "unwind/brief.h"
#include "unwind/sframe.h"

struct sframe_brief;

/* Of functions of s, which must outlive it. NULL: out of memory. */
struct sframe_brief *sframe_brief_new(const struct sframe *s);
void sframe_brief_free(struct sframe_brief *m);
/*
 * Fills `out` with what sframe_rows gives. 1; 0: it cannot be told in brief, or there is something that sframe_rows has to
 * note; -ENOMEM.
 */
int sframe_brief_rows(struct sframe_brief *m, const struct fn *fn, struct brief *out);
void sframe_brief_rule(const struct sframe_brief *m, uint32_t rule, struct row *ret);	/* all but start and end */

#endif
