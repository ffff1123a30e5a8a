/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a file from its machine code: of functions that no table describes, or, to compare, of
 * all.
 *
 * Where a function starts decides whether its rows are right. These starts are certain: sized
 * symbols of functions, the entry of a program and the functions that it names, and the targets of
 * calls in trusted code, which has tables or was analysed itself; of analysed code also the targets
 * of jumps with stack and registers as at entry, unless they are within another function. Other
 * addresses that trusted code takes or jumps to, words of data, and the first byte after a function
 * only count if the code there proves it: it returns at the height at which it was entered, with
 * all of the caller's registers restored, or jumps so to functions that are certain or proven, or
 * never leaves and saves registers of the caller first. Once proven, such a start counts as a
 * certain one: no other function goes on across it.
 * Padding, landing pads and the look of a prologue never count.
 */
#ifndef SFBPF_READERS_CODE_ROWS_H
#define SFBPF_READERS_CODE_ROWS_H

#include "readers/row_stream.h"

struct code_rows_opts {
	/*
	 * Analyse all functions, and ignore the rows of tables, but for the first of each: it tells
	 * the start of a function from that of a part which is elsewhere.
	 */
	bool whole;
	/* Analyse only the function whose symbol covers this address, and what it calls. 0: all */
	uint64_t at;
	/* The code of GHC programs is not read: calls with a lower rsp have the row of others. */
	bool brief;
	/* Called now and then; false: stop here, with what was found. NULL: not called. */
	bool (*tick)(void *ctx);
	void *ctx;
};

/*
 * Fills file->code and file->code_fns, ascending and without overlaps. 0, also for a machine whose
 * code is not analysed; -ENOMEM.
 */
int code_rows(struct unwind_file *file, const struct code_rows_opts *opts);

/* Whether a symbol's function holds the address. 1, 0 or -ENOMEM. */
int code_has_symbol(const struct unwind_file *file, uint64_t addr);

/*
 * Functions that no table describes: by symbols, else the whole range between two described ones.
 * 0 or -ENOMEM.
 */
int code_undescribed(const struct unwind_file *file, struct fntab *ret);

/* Bytes of executable segments that no function of a table covers, in holes above padding. */
uint64_t code_gap_bytes(const struct unwind_file *file);

#endif
