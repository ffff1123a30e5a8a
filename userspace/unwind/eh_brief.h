/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of .eh_frame's functions in brief. */
#ifndef SFBPF_UNWIND_EH_BRIEF_H
#define SFBPF_UNWIND_EH_BRIEF_H

#include "unwind/brief.h"
#include "unwind/eh_frame.h"

struct eh_brief;

/* Of functions of e, which must outlive it. NULL: out of memory. */
struct eh_brief *eh_brief_new(const struct eh_frame *e);
void eh_brief_free(struct eh_brief *m);
/*
 * Fills `out` with what eh_frame_rows gives, though not always joined where nothing changes. 1; 0: it cannot be told in brief,
 * or there is damage that eh_frame_rows has to note; -ENOMEM.
 */
int eh_brief_rows(struct eh_brief *m, const struct fn *fn, struct brief *out);
/* These two of e's functions will be asked for. Linkers sort functions, not their FDEs: in large files each would wait for memory. */
void eh_brief_fetch(const struct eh_brief *m, const struct fn *soon, const struct fn *later);
void eh_brief_rule(const struct eh_brief *m, uint32_t rule, struct row *ret);	/* all but start and end */

#endif
