/* SPDX-License-Identifier: BSD-2-Clause */
/* Indirect jumps: by tables, which are read from the file, and to labels. */
#ifndef SFBPF_CODEWALK_CODE_JUMP_H
#define SFBPF_CODEWALK_CODE_JUMP_H

#include "codewalk/code_fn.h"

/* The jump at addr. 0, CODE_FN_*, -ENOMEM. */
int code_jump_indirect(struct code_fn *f, const struct code_op *op, struct code_state *s,
		       uint64_t addr);
/* Goes on in a table whose length is not told, with its next entry. The same results. */
int code_jump_go_on(struct code_fn *f);
/* Notes an address of code that the function loads. 0 or -ENOMEM. */
int code_jump_note_own(struct code_fn *f, uint8_t reg, uint64_t label);

#endif
