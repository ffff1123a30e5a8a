/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of one function from its instructions. All ways through it are followed from its entry,
 * with what is known of registers and stack at each instruction (code_state.h). Where two ways
 * meet, only what both know is kept.
 *
 * The function is rejected, and has no rows, if it holds bytes that are no instructions, if
 * instructions overlap, if two ways disagree about the height of the stack, if it returns at
 * another height than it was entered, writes its return address, or jumps where its code does not
 * tell.
 */
#ifndef SFBPF_CODEWALK_CODEWALK_H
#define SFBPF_CODEWALK_CODEWALK_H

#include "base/bytes.h"
#include "codewalk/code_op.h"
#include "rows/row.h"

struct code_range {
	uint64_t start, end; /* virtual addresses, half-open */
};

/* An executable segment. Each byte of code has a byte of marks, which are 0 at first. */
struct code_text {
	uint64_t start, end;
	struct bytes bytes;
	uint8_t *marks;
};

/* Marks. Bits that are not here are the caller's. */
enum {
	/* The analysis sets these, of the function in progress */
	MARK_START = 1,	 /* an instruction starts here */
	MARK_BODY = 2,	 /* it goes on here */
	MARK_LEADER = 4, /* a jump leads here */
	/* The caller sets these, of the file */
	MARK_CALLED = 8, /* trusted code calls this address */
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
 * `budget` and marks alone. What the functions return must stay until the next call of them.
 */
struct code_binary {
	const struct code_arch *arch;
	struct code_text *texts; /* ascending, without overlaps */
	size_t ntexts;
	uint64_t budget;	 /* instructions that may still be looked at, over all functions */
	const uint64_t *ends;	 /* GOT slots of functions that do not return */
	const uint64_t *may_end; /* GOT slots and stubs of those that return if the argument is 0 */
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
	/* What is known of the function at `addr`, which is called */
	struct code_callee (*callee_at)(void *ctx, uint64_t addr);
	/*
	 * The data around addr, which may be a jump table, and the address of its first byte. 1, 0:
	 * none, -ENOMEM. NULL: there is no data.
	 */
	int (*data_at)(void *ctx, uint64_t addr, struct bytes *ret, uint64_t *ret_start);
	/* Addresses of code that are in data, ascending. 0 or -ENOMEM. NULL: none are known. */
	int (*labels)(void *ctx, const uint64_t **ret, size_t *ret_n);
	void *ctx;
};

/* The function to be analysed */
struct code_subject {
	struct code_range range;
	bool sized;	/* it certainly ends where its range does */
	bool outermost; /* it is the program's entry: all of its rows say so */
	bool by_finals; /* what code_fn_finals() counts is taken not to return */
};

/* What was found. The arrays are valid until the next analysis. */
struct code_result {
	const struct row *rows; /* ascending, without overlaps */
	size_t nrows;
	const uint64_t *calls, *addressed; /* code that it calls; code whose address it takes */
	const uint64_t *tails;	/* code that it jumps to with stack and registers as at entry */
	const uint64_t *joined; /* functions that it goes on into with other registers */
	const uint64_t *last;	/* callees of calls after which another function may start */
	size_t ncalls, naddressed, ntails, njoined, nlast;
	/*
	 * It returns; some ways lead to other functions; the caller's registers are lost; they are
	 * on a way to `tails`
	 */
	bool returns, leaps, loses, tail_loses;
	/*
	 * It ends in a jump through a pointer, with sp and fp as at entry; it goes to another frame
	 * (code_leap.c); it leads to other functions in yet another way than by `tails`
	 */
	bool hands_over, goes_away, strays;
	bool loses_fp;	 /* it returns with another fp */
	bool guessed;	 /* a call was taken not to return, as what follows makes no sense */
	bool saves;	 /* a register of the caller is saved and overwritten at a call */
	uint32_t writes; /* registers, by it and by what it calls; all, if not all of it was seen */
	int32_t pops;	 /* bytes of arguments that it removes when it returns */
};

enum code_verdict {
	CODE_REJECTED,
	CODE_SOUND,
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
/* CODE_*, -ENOMEM. A function that was rejected has no rows. */
int code_fn_analyse(struct code_fn *f, const struct code_subject *fn, struct code_result *ret);
/*
 * Finals are functions after one of whose calls another function starts. Each analysis may find
 * some; those of one that is not trusted are to be forgotten. Their number; only the first n stay;
 * whether the function that was analysed last, even if it was rejected, calls one.
 */
size_t code_fn_finals(const struct code_fn *f);
void code_fn_keep_finals(struct code_fn *f, size_t n);
bool code_fn_calls_final(const struct code_fn *f);

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
