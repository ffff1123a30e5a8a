/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The analysis of one function, shared by the files that follow its code. Each record below has a
 * lifetime of its own, and is new when that begins:
 *
 * 	struct code_binary	the file, and what the caller knows of it
 * 	struct code_learnt	the file, too: what the functions so far told
 * 	struct code_run		one function, under one set of assumptions
 * 	struct code_try		one attempt to follow all of its code; what a run learns that
 * 				contradicts an attempt makes the run begin the next one
 * 	struct code_result	what the attempt in progress has found
 *
 * Arrays grow in struct code_room, whose memory is kept from function to function. How many items
 * of an array are in use is written in the record that they belong to.
 */
#ifndef SFBPF_CODEWALK_CODE_FN_H
#define SFBPF_CODEWALK_CODE_FN_H

#include "base/slots.h"
#include "codewalk/code_state.h"
#include "codewalk/codewalk.h"

#define CODE_FN_VISITS 16 /* instructions looked at in each byte of a function, on average */
/* Entries at the start of a table that no index reaches: it may be the log2 of a width from 4 on */
#define CODE_FN_UNUSED 4u

/* Results beyond 0 and -errno: start over with what was learnt; the function has no rows. */
enum { CODE_FN_AGAIN = 1, CODE_FN_REJECT = 2 };

/* The last call, and the bytes that were pushed before it and are still there */
struct code_pushed {
	uint64_t call; /* 0: none */
	int64_t bytes;
};

struct code_leader {
	uint64_t addr;
	uint64_t from_call; /* only the return of that call leads here; 0: other ways do too */
	bool queued;
	bool passed;		   /* code was followed across it before it was known to be one */
	bool is_pad;		   /* it is code of a landing pad */
	struct code_pushed pushed; /* what the way here pushed; no call: there are several */
	struct code_state state;
};

struct code_jump { /* an indirect jump, and the table that it was found to use */
	uint64_t at;
	struct code_val table;
};

/*
 * A table whose length the code does not tell. Its entries are followed one after the other: an
 * entry that leads to a contradiction is beyond the end.
 */
struct code_pending {
	struct code_val table;
	struct code_state state; /* what is known at the jump */
	uint64_t at;
	unsigned int next, to; /* the next entry; how many before it lead to code */
};

struct code_own { /* an address of code that the function loads into a register */
	uint64_t addr;
	uint8_t reg;
};

#define CODE_PARTS 32
#define CODE_CACHE 8192 /* decoded instructions that are kept, a power of two */

struct code_cached {
	uint64_t addr;
	struct code_op op;
};

struct code_fn_part {
	struct code_range range;
	uint64_t entry; /* where it was entered; 0: at a function's start */
	bool sized;	/* all of it is the function's; not set for the first part */
};

/* One function, under one set of assumptions: the assumptions, and what all tries have learnt */
struct code_run {
	struct code_subject fn; /* `sized` becomes false when landing pads are given up */
	bool doubt_masks;	/* tables whose length only a mask tells are taken to be shorter */
	unsigned int unused;	/* entries at the start of open tables that are not followed */

	uint64_t left;	  /* the part of the file's budget for this function */
	size_t ndead;	  /* what the function does not jump to, though it seems so */
	size_t nnoreturn; /* calls that do not return */
	size_t ntables;	  /* starts of tables, and ends: no other table is read across them */
	size_t nown;
	bool guessed;		/* see struct code_result */
	unsigned int cut_early; /* index of one of the first entries that contradicts; 0: none */
};

/* One attempt to follow all of the function's code from its entry */
struct code_try {
	struct code_fn_part parts[CODE_PARTS];
	size_t nparts;
	uint64_t at; /* the instruction in progress */
	size_t nleaders, nwork, njumps, npending;
	size_t nfollowed;	   /* pieces of code that have marks */
	size_t nread;		   /* what was read of tables so far */
	bool in_pad;		   /* the code in progress is that of a landing pad */
	struct code_pushed pushed; /* what the code in progress pushed */
	uint64_t entry; /* the address of the table's entry whose code is in progress; 0: none */
	unsigned int entry_index;
	bool has_open;	    /* there is a table whose length the code does not tell */
	bool has_masked;    /* there is a table whose length only a mask tells */
	uint32_t own_jumps; /* registers whose addresses in `own` a jump was followed to */
	bool own_late;	    /* such an address was found after that */
	bool uses_fp;	    /* its code addresses the frame by fp */
	bool by_fp;	    /* so the CFA is given by fp, as long as that is known */
};

/* What was learnt of the file */
struct code_learnt {
	uint64_t *finals; /* functions after one of whose calls another function starts */
	size_t nfinals, finals_cap;
	/*
	 * x86-64: the addresses outside code that any bytes of code would take with lea, relative
	 * to rip; ascending. None if there are too many.
	 */
	uint64_t *refs;
	size_t nrefs, refs_cap;
	bool has_refs;
};

/* Memory, and indices of what is in it */
struct code_room {
	struct code_cached *cache; /* indexed by the low bits of the address */
	/* Arrays of a run */
	uint64_t *dead, *noreturn, *tables;
	size_t dead_cap, noreturn_cap, tables_cap;
	struct code_own *own;
	size_t own_cap;
	/* Arrays of a try */
	struct code_leader *leaders;
	struct slots slots; /* index of leaders */
	uint32_t *work;
	struct code_range *followed, *read;
	struct code_jump *jumps;
	struct code_pending *pending;
	size_t leaders_cap, work_cap, followed_cap, read_cap, jumps_cap, pending_cap;
	/* Arrays of a result */
	uint64_t *calls, *addressed, *tails, *joined, *last;
	size_t calls_cap, addressed_cap, tails_cap, joined_cap, last_cap;
	struct slots call_slots; /* index of calls */
	struct rowbuf rows;
};

struct code_fn {
	struct code_binary *bin;
	const struct code_arch *arch; /* the file's */
	struct code_learnt learnt;
	struct code_run run;
	struct code_try try;
	struct code_result result; /* its arrays are set when it is handed out */
	struct code_room room;
};

#define SLOTS_KEPT 4096

/* The slots of a large function are not emptied for each small one after it. */
static inline void code_empty_slots(struct slots *s)
{
	if (s->n > SLOTS_KEPT)
		slots_free(s);
	else
		slots_reset(s);
}

/* Decodes the instruction through a cache: code is looked at several times. */
const struct code_op *code_op_at(const struct code_fn *f, uint64_t addr);

static inline bool code_in_part(const struct code_fn *f, size_t part, uint64_t addr)
{
	const struct code_range *r = &f->try.parts[part].range;

	return addr >= r->start && addr < r->end;
}
/* Removes these marks from the range. */
void code_unmark(const struct code_binary *bin, struct code_range range, uint8_t marks);
/* Fills f->learnt.refs at the first call. 0 or -ENOMEM. */
int code_refs_load(struct code_fn *f);
bool code_is_ref(const struct code_fn *f, uint64_t addr);
/* Whether the function calls the one at target. */
bool code_calls(const struct code_fn *f, uint64_t target);
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
void code_fn_drop_followed(struct code_fn *f, size_t n);

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

/* Fills f->room.rows from the leaders, which it sorts. 0 or -ENOMEM. */
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
