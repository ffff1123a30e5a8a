/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files that follow the code of one function. */
#ifndef SFBPF_UNWIND_CODE_FN_INTERNAL_H
#define SFBPF_UNWIND_CODE_FN_INTERNAL_H

#include "unwind/code_fn.h"

#define CODE_FN_VISITS 16 /* instructions looked at in each byte of a function, on average */
/* Entries at the start of a table that no index reaches: it may be the log2 of a width from 4 on */
#define CODE_FN_UNUSED 4u

/* Results beyond 0 and -errno: start over with what was learnt; the function has no rows. */
enum { CODE_FN_AGAIN = 1, CODE_FN_REJECT = 2 };

#define SLOTS_KEPT 4096

/* The slots of a large function are not emptied for each small one after it. */
static inline void code_empty_slots(struct slots *s)
{
	if (s->n > SLOTS_KEPT)
		slots_free(s);
	else
		slots_reset(s);
}

/* Whether the address is within a part of the function. */
bool code_fn_inside(const struct code_fn *f, uint64_t addr);
/*
 * Whether sp was loaded from memory that holds no known value: of another stack, or of an outer
 * frame, as OCaml raises exceptions. by_jump: or was set to a register that holds none
 */
bool code_fn_left_frame(const struct code_fn *f, const struct code_state *s, bool by_jump);
/* Whether what follows the call at `addr` is not reached from it. */
bool code_fn_ends_there(const struct code_fn *f, const struct code_op *op, uint64_t addr);
/*
 * The op, or a copy in *refined with what is known of a call: it may only push its return address,
 * and the callee may spare registers, or remove its arguments. A system call may be an exit, or
 * start a thread on another stack: then the op is OP_BAD. next: what follows it
 */
const struct code_op *code_fn_refine(const struct code_fn *f, const struct code_op *op,
				     const struct code_state *s, uint64_t next,
				     struct code_op *refined);
/* Follows the code of all leaders that are queued. As code_edge(). */
int code_fn_explore(struct code_fn *f);
/* All but the first n pieces of code that was followed are no longer marked. */
void code_fn_drop_runs(struct code_fn *f, size_t n);

/* Goes through the instructions of a leader, with what is known before each. */
struct code_walk {
	struct code_state state;
	uint64_t at, end; /* addresses of the instruction */
	const struct code_op *op;
	struct code_op refined;
	bool on; /* the next one is reached */
};

void code_walk_begin(struct code_walk *w, const struct code_leader *l);
/* Decodes the next instruction; false: there is none, w->end is where the code ends. */
bool code_walk_next(const struct code_fn *f, struct code_walk *w);
void code_walk_apply(const struct code_fn *f, struct code_walk *w);

/* Follows landing pads, to which no jump leads. 0; CODE_FN_REJECT: start over without; -ENOMEM. */
int code_pads(struct code_fn *f);

/* Fills f->rows from f->leaders. 0 or -ENOMEM. */
int code_fn_make_rows(struct code_fn *f);

/*
 * Puts the rows of the leader's code in the place of its last ones, where it jumps to another
 * frame. 0 or -ENOMEM.
 */
int code_leap_rows(struct code_fn *f, const struct code_leader *l, struct rowbuf *rows);

/* Notes that a table starts there, or ends. 0 or -ENOMEM. */
int code_note_table(struct code_fn *f, uint64_t addr);
/* Whether a table that was noted starts there. */
bool code_is_table(const struct code_fn *f, uint64_t addr);

/* Where ways meet. All return 0, CODE_FN_* or -ENOMEM. */

/* call: directly after that call, as its return; 0: otherwise */
int code_new_leader(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call);
/* The state reaches the leader, which may be new. */
int code_edge(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call);
int code_jump_to(struct code_fn *f, uint64_t target, const struct code_state *s);
/* Only the first n leaders remain. */
void code_drop_leaders(struct code_fn *f, size_t n);
/* What follows the call makes no sense, so it does not return. 0: there is none. */
int code_no_return(struct code_fn *f, uint64_t call);
/* The height of the stack; false: unknown. */
bool code_height_of(const struct code_fn *f, const struct code_state *s, int64_t *ret);

#endif
