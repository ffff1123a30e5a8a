/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of other files' functions that do not return, such as abort and __stack_chk_fail. What
 * follows such a call is other code, with another state of registers and stack.
 */
#ifndef SFBPF_READERS_CODE_ENDS_H
#define SFBPF_READERS_CODE_ENDS_H

#include "codewalk/codewalk.h"
#include "elf/elf_image.h"

/* Takes a function's start. 0 or -ENOMEM. */
typedef int (*code_note_fn)(void *ctx, uint64_t addr, bool certain);

struct code_ends { /* see struct code_binary */
	uint64_t *ends, *may_end;
	size_t nends, ends_cap, nmay_end, may_end_cap;
};

/*
 * Fills bin->ends with the GOT slots of such functions, and marks the PLT stubs that jump through
 * them with MARK_ENDS. Fills bin->may_end with the slots and stubs of error() and its like. Calls
 * note() for each stub. *e, which is empty, holds the lists. 0 or -ENOMEM.
 */
int code_ends(struct code_ends *e, const struct elf_image *img, struct code_binary *bin,
	      code_note_fn note, void *ctx);
void code_ends_free(struct code_ends *e);

#endif
