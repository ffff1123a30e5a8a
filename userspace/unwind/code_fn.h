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
#ifndef SFBPF_UNWIND_CODE_FN_H
#define SFBPF_UNWIND_CODE_FN_H

#include "elf/elf_image.h"
#include "rows/row.h"
#include "unwind/code_op.h"

struct code_range {
	uint64_t start, end; /* virtual addresses, half-open */
};

#define CODE_LINE 64 /* bytes of code for a bit of gap_lines: a cache line of marks */

/* An executable segment in memory. Each byte of code has a byte of marks. */
struct code_text {
	uint64_t start, end;
	struct elf_blob blob;
	uint8_t *marks;
	uint8_t *gap_lines; /* a bit: bytes there have MARK_GAP */
};

/* A PT_LOAD segment that was read because a jump table lies in it. */
struct code_data {
	uint64_t start;
	struct elf_blob blob;
};

enum {
	/* Marks of the function in progress */
	MARK_START = 1,	 /* an instruction starts here */
	MARK_BODY = 2,	 /* it goes on here */
	MARK_LEADER = 4, /* a jump leads here */
	/* Marks of the file */
	MARK_CALLED = 8,     /* trusted code calls this address */
	MARK_ADDRESSED = 16, /* trusted code takes this address, or jumps to it */
	MARK_GAP = 32,	     /* no table describes this byte */
	MARK_ENDS = 64,	     /* the function that starts here does not return */
	MARK_DONE = 128,     /* a function that starts here was analysed */
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

/* The file whose functions are analysed, and what is known of it from one function to the next */
struct code_binary {
	const struct code_arch *arch;
	const struct elf_image *img;
	struct code_text *texts;
	size_t ntexts;
	struct code_data data[4];
	size_t ndata;
	/*
	 * The part of the file that addr, the target of a jump from the middle of a function, may
	 * belong to; false: it belongs to other code. *sized: all of it is the function's.
	 */
	bool (*part_of)(void *ctx, uint64_t addr, struct code_range *ret, bool *sized);
	/* What is known of the function at `addr`, which is called */
	struct code_callee (*callee_at)(void *ctx, uint64_t addr);
	void *ctx;
	uint64_t budget; /* instructions that may still be looked at */
	uint64_t *ends;	 /* GOT slots of functions that do not return (code_ends.h) */
	size_t nends, ends_cap;
	uint64_t *may_end; /* GOT slots and stubs of those that return if their argument is 0 */
	size_t nmay_end, may_end_cap;
	uint64_t *finals; /* functions after one of whose calls another function starts */
	size_t nfinals, finals_cap;
	uint64_t *labels; /* labels of the file (code_labels.h) */
	size_t nlabels, labels_cap;
	uint64_t *data_labels;
	size_t ndata_labels, data_labels_cap;
	bool has_labels, has_data_labels;
	bool has_pads;	  /* the file has landing pads, as its tables for exceptions say */
	bool has_poppers; /* a function of the file removes its arguments */
};

/* The function to be analysed */
struct code_subject {
	struct code_range range;
	bool sized;	/* it certainly ends where its range does */
	bool outermost; /* it is the program's entry: all of its rows say so */
	bool by_finals; /* `finals` of the file are taken not to return */
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
/* Whether the function that was analysed last calls the one at target. */
bool code_calls(const struct code_fn *f, uint64_t target);

void code_binary_free(struct code_binary *bin); /* all but img and texts, which are the caller's */
/* The text that holds the address, or NULL. None holds 0: AArch64's files have a header there. */
struct code_text *code_text_of(const struct code_binary *bin, uint64_t addr);
/* Decodes the instruction; OP_BAD outside of text. */
void code_decode(const struct code_binary *bin, uint64_t addr, struct code_op *ret);
/*
 * Whether no table describes the byte at the address. The bits of gap_lines answer that for most
 * addresses; to read the mark of one in a large file is a cache miss.
 */
static inline bool code_in_gap(const struct code_binary *bin, uint64_t addr)
{
	for (size_t i = 0; i < bin->ntexts; i++) {
		const struct code_text *t = &bin->texts[i];
		const uint64_t at = addr - t->start, line = at / CODE_LINE;

		if (at < t->end - t->start)
			return t->gap_lines[line / 8] >> line % 8 & 1 && t->marks[at] & MARK_GAP;
	}
	return false;
}
/*
 * The address that the instruction takes; 0: none. In files that may be mapped anywhere, a number
 * is none: some are as small as the addresses of small files.
 */
static inline uint64_t code_address_of(const struct code_binary *bin, const struct code_op *op)
{
	return op->kind != OP_CONST || (op->is_number && bin->img->type == ET_DYN)
		       ? 0
		       : (uint64_t)(op->imm + op->imm2);
}
uint8_t *code_mark_of(const struct code_binary *bin, uint64_t addr); /* NULL: outside of text */
/* Removes these marks from the range. */
void code_unmark(const struct code_binary *bin, struct code_range range, uint8_t marks);

#endif
