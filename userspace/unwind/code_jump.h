/* SPDX-License-Identifier: BSD-2-Clause */
/* Jump tables, read from the file. */
#ifndef SFBPF_UNWIND_CODE_JUMP_H
#define SFBPF_UNWIND_CODE_JUMP_H

#include "unwind/code_fn.h"

/*
 * Where entry i of the table leads (v: VAL_TARGET). 1; 0: it does not lead to code, or another
 * table of the function starts there; -ENOMEM.
 */
int code_jump_entry(struct code_fn *f, const struct code_val *v, unsigned int i,
		    uint64_t *ret_target);

/*
 * The table of the jump at `at`. On one of several ways to it less may be known, such as after a
 * call that does not return: then v becomes what it was on another way. 0 or -ENOMEM.
 */
int code_jump_known(struct code_fn *f, uint64_t at, struct code_val *v);

/* Whether the word at slot is where ld.so puts its resolver of symbols. */
bool code_jump_to_resolver(const struct code_fn *f, uint64_t slot);

#endif
