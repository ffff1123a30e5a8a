/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of one function from its instructions. All ways through it are followed from its entry,
 * with what is known of registers and stack at each instruction. Where two ways meet, only what
 * both know is kept.
 *
 * 	struct code_text text = { start, end, bytes, marks };
 * 	struct code_binary bin = { .arch = &code_arch_arm64, .texts = &text, .ntexts = 1, ... };
 * 	struct code_fn *f = code_fn_new(&bin);
 *
 * 	verdict = code_fn_analyse(f, &(struct code_subject){ .range = { from, to } }, &found);
 * 	if (verdict > 0)
 * 		found.rows[0 .. found.nrows - 1] are the function's
 * 	code_fn_free(f);
 *
 * The function is rejected, and has no rows, if it holds bytes that are no instructions, if
 * instructions overlap, if two ways disagree about the height of the stack, if it returns at
 * another height than it was entered, writes its return address, or jumps where its code does not
 * tell. docs/codewalk.md explains the method.
 *
 * The bytes may be hostile: whatever they are, the work is bounded by `budget`, and all rows are
 * within texts. Addresses are virtual addresses of the file. Registers are DWARF numbers, a set of
 * registers has bit 1 << number. A struct code_binary is used by one thread at a time.
 */
#ifndef SFBPF_CODEWALK_CODEWALK_H
#define SFBPF_CODEWALK_CODEWALK_H

#include "base/bytes.h"
#include "codewalk/code_op.h"
#include "rows/row.h"

struct code_range {
	uint64_t start, end; /* half-open */
};

/* An executable segment. Each byte of code has a byte of marks, which are 0 at first. */
struct code_text {
	uint64_t start, end;
	struct bytes bytes; /* little-endian; as many as there are addresses */
	uint8_t *marks;
};

/* Marks. Bits that are not here are the caller's. */
enum {
	/* The analysis sets these, of the function in progress */
	MARK_START = 1,	 /* an instruction starts here */
	MARK_BODY = 2,	 /* an instruction goes on here */
	MARK_LEADER = 4, /* a jump leads here */
	/* The caller sets these, of the file */
	MARK_CALLED = 8, /* a function starts here: trusted code calls this address */
	MARK_ENDS = 64,	 /* the function that starts here does not return */
};

/*
 * What a call of a function does. Some remove their arguments from the stack (x86's `ret 8`), but
 * none in most files.
 */
struct code_callee {
	uint32_t writes; /* registers; all, if the function was not analysed to its end */
	int32_t pops;	 /* bytes, beyond the return address */
};

#define CODE_POPS_UNKNOWN (-1)

/*
 * The file whose functions are analysed: its code, and what is known of it. The analysis changes
 * `budget` and marks alone; the caller may change all but `arch` from function to function.
 */
struct code_binary {
	const struct code_arch *arch;
	struct code_text *texts; /* ascending, without overlaps */
	size_t ntexts;
	uint64_t budget;	 /* instructions that may still be looked at; counts down */
	const uint64_t *ends;	 /* GOT slots of functions that do not return */
	const uint64_t *may_end; /* GOT slots and stubs of functions that return if called with 0 */
	size_t nends, nmay_end;
	uint64_t resolver; /* the GOT slot of ld.so's resolver of symbols; 0: none */
	bool movable;	   /* it may be mapped anywhere, so no number in its code is an address */
	bool has_pads;	   /* it has landing pads, as its tables for exceptions say */
	bool has_poppers;  /* one of its functions removes its arguments */
	/*
	 * The part of the file that addr, the target of a jump from the middle of a function, may
	 * belong to; false: it belongs to other code. *sized: all of it is the function's.
	 */
	bool (*part_of)(void *ctx, uint64_t addr, struct code_range *ret, bool *sized);
	/* What is known of the function at `addr`, which is called; { UINT32_MAX, 0 }: nothing */
	struct code_callee (*callee_at)(void *ctx, uint64_t addr);
	/*
	 * Finds the data around addr, which may be a jump table, and the address of its first byte.
	 * Returns 1; 0 if the file has no data there; or -ENOMEM. A NULL pointer says that the file
	 * has no data outside of its texts.
	 */
	int (*data_at)(void *ctx, uint64_t addr, struct bytes *ret, uint64_t *ret_start);
	/*
	 * Addresses of code that are in data, ascending: computed gotos may lead there. 0 or
	 * -ENOMEM. NULL: none are known. What it returns must stay until it is called again.
	 */
	int (*labels)(void *ctx, const uint64_t **ret, size_t *ret_n);
	void *ctx; /* passed to all four */
};

/* The function to be analysed */
struct code_subject {
	struct code_range range; /* starts in a text */
	bool sized;		 /* it certainly ends where its range does */
	bool outermost;		 /* it is the program's entry: all of its rows say so */
	bool by_finals;		 /* see code_fn_finals() */
};

/* What was found. The arrays are valid until the next analysis. */
struct code_result {
	const struct row *rows; /* ascending, without overlaps; code without any has no row */
	size_t nrows;
	const uint64_t *calls;	   /* functions that it calls */
	const uint64_t *addressed; /* code whose address it takes */
	const uint64_t *tails;	   /* code that it jumps to with stack and registers as at entry */
	const uint64_t *joined;	   /* functions that it goes on into with other registers */
	const uint64_t *last;	   /* callees of calls after which another function may start */
	size_t ncalls, naddressed, ntails, njoined, nlast;
	bool returns;	 /* some way ends in a return */
	bool leaps;	 /* some way leads to another function or frame */
	bool strays;	 /* some way leads to another function, and not by `tails` */
	bool hands_over; /* it ends in a jump through a pointer, with sp and fp as at entry */
	bool goes_away;	 /* it jumps to another frame, as longjmp() */
	bool loses;	 /* registers of the caller are lost where it returns or jumps indirectly */
	bool tail_loses; /* registers of the caller are lost on a way to `tails` */
	bool loses_fp;	 /* it returns with another fp */
	bool guessed;	 /* a call was taken not to return, as what follows makes no sense */
	bool saves;	 /* a register of the caller is saved and overwritten at a call */
	uint32_t writes; /* registers, by it and by what it calls; all, if not all of it was seen */
	int32_t pops;	 /* bytes of arguments that it removes when it returns */
};

enum code_verdict {
	CODE_REJECTED, /* no row can be trusted, so there is none */
	CODE_SOUND,    /* the rows are right if a function starts where the range does */
	/*
	 * Besides, it does not return, but jumps to `tails`, and no call was guessed not to return:
	 * its start is one if those are.
	 */
	CODE_TAILS,
	/*
	 * Besides, its code shows that its start is one: it returns at the height of its entry,
	 * with all of the caller's registers restored; or it never leaves, or leaves by jumps
	 * through pointers as it would return, and saves the caller's registers first; or it goes
	 * to another frame.
	 */
	CODE_PROVEN,
};

/* Analyses the functions of a file one after another, and keeps its memory for the next one. */
struct code_fn;

/* The file must outlive it. NULL: no memory. */
struct code_fn *code_fn_new(struct code_binary *bin);
void code_fn_free(struct code_fn *f); /* NULL is allowed */
/* CODE_*, or -ENOMEM, also from a function of the file. Then, and if rejected, *ret is zeroed. */
int code_fn_analyse(struct code_fn *f, const struct code_subject *fn, struct code_result *ret);

/*
 * A final is a function after one of whose calls another function starts, so that it may be one
 * that does not return. Each analysis adds to the finals; if it is not trusted, the caller drops
 * what it added. An analysis `by_finals` takes all of them not to return.
 */
size_t code_fn_finals(const struct code_fn *f);	       /* how many there are */
void code_fn_keep_finals(struct code_fn *f, size_t n); /* drops all but the first n */
bool code_fn_calls_final(const struct code_fn *f);     /* the last function calls one */

/* The text that holds the address, or NULL. None holds 0: AArch64's files have a header there. */
struct code_text *code_text_of(const struct code_binary *bin, uint64_t addr);
uint8_t *code_mark_of(const struct code_binary *bin, uint64_t addr); /* NULL: outside of text */
/* Decodes the instruction; OP_BAD outside of text. */
void code_decode(const struct code_binary *bin, uint64_t addr, struct code_op *ret);
/*
 * The address that the instruction takes; 0: none. In files that may be mapped anywhere, a number
 * is none: some are as small as the addresses of small files.
 */
static inline uint64_t code_address_of(const struct code_binary *bin, const struct code_op *op)
{
	return op->kind != OP_CONST || (op->is_number && bin->movable)
		       ? 0
		       : (uint64_t)(op->imm + op->imm2);
}

#endif
