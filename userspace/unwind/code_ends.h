/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of other files' functions that do not return, such as abort and __stack_chk_fail. What
 * follows such a call is other code, with another state of registers and stack.
 */
#ifndef SFBPF_UNWIND_CODE_ENDS_H
#define SFBPF_UNWIND_CODE_ENDS_H

#include "unwind/code_fn.h"

/* Takes a function's start. 0 or -ENOMEM. */
typedef int (*code_note_fn)(void *ctx, uint64_t addr, bool certain);

/*
 * Fills bin->ends with the GOT slots of such functions, and marks the PLT stubs that jump through
 * them with MARK_ENDS. Fills bin->may_end with the slots and stubs of error() and its like.
 * Calls note() for each stub. bin->arch, bin->img and bin->texts are set. 0 or -ENOMEM.
 */
int code_ends(struct code_binary *bin, code_note_fn note, void *ctx);
/* Whether it is such a slot. */
bool code_ends_at(const struct code_binary *bin, uint64_t slot);

#endif
