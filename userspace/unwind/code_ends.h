/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of other files' functions that do not return, such as abort and __stack_chk_fail. What
 * follows such a call is other code, with another state of registers and stack.
 */
#ifndef SFBPF_UNWIND_CODE_ENDS_H
#define SFBPF_UNWIND_CODE_ENDS_H

#include "unwind/code_fn.h"

/*
 * Fills f->ends with the GOT slots of such functions, and marks the PLT stubs that jump through
 * them with MARK_ENDS. Fills f->may_end with the slots and stubs of error() and its like.
 * f->arch, f->img and f->texts are set. 0 or -ENOMEM.
 */
int code_ends(struct code_fn *f);
/* Whether it is such a slot. */
bool code_ends_at(const struct code_fn *f, uint64_t slot);

#endif
