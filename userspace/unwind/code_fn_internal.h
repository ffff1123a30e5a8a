/* SPDX-License-Identifier: BSD-2-Clause */
/* What code_fn.c and code_fn_rows.c share. */
#ifndef SFBPF_UNWIND_CODE_FN_INTERNAL_H
#define SFBPF_UNWIND_CODE_FN_INTERNAL_H

#include "unwind/code_fn.h"

/* Whether the address is within a part of the function. */
bool code_fn_inside(const struct code_fn *f, uint64_t addr);
/* Whether what follows the call at `addr` is not reached from it. */
bool code_fn_ends_there(const struct code_fn *f, const struct code_op *op, uint64_t addr);
/* Makes a call that only pushes its return address a push. next: what follows it */
void code_fn_call_as_push(const struct code_fn *f, struct code_op *op, uint64_t next);
/* Fills f->rows from f->leaders. 0 or -ENOMEM. */
int code_fn_make_rows(struct code_fn *f);

#endif
