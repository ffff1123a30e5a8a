/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares .sframe with .eh_frame of the same file, to check the producer of .sframe. The assembler
 * makes both from the same directives, so where both describe a byte and both can express a rule,
 * the rules are equal.
 */
#ifndef SFBPF_READERS_ROW_COMPARE_H
#define SFBPF_READERS_ROW_COMPARE_H

#include "readers/row_stream.h"

#define ROW_CFA	   1
#define ROW_RA	   2
#define ROW_FP	   4
#define ROW_SIGNED 8 /* AArch64: whether the RA carries an authentication code */

/*
 * The columns (ROW_*) in which the two rows disagree. *ret_judged: the columns that could be
 * compared. A column cannot be compared if either row cannot express it or, for the frame pointer,
 * if .eh_frame calls it undefined. If either RA is undefined, only the RAs are compared. Different
 * spellings of one place are equal: *(rsp+8) and *(cfa-8) where the CFA is rsp+16.
 */
unsigned int row_disagree(const struct row *sframe, const struct row *eh, unsigned int *ret_judged);

struct row_clash {
	/* Code that both rows describe; in a repeating block its first occurrence */
	uint64_t start, end;
	const struct row *sframe, *eh;
	unsigned int columns; /* ROW_* */
};

struct row_compare_totals {
	uint64_t rows;	   /* rows of .sframe */
	uint64_t compared; /* rows with a column that could be compared */
	uint64_t clashing; /* rows that disagree in any column */
};

typedef void (*row_clash_fn)(void *ctx, const struct row_clash *clash);

/*
 * Calls fn in ascending order. Of repeating blocks one common period is compared, and at most 64
 * KiB of it. 0 or -ENOMEM.
 */
int row_compare(struct unwind_file *file, row_clash_fn fn, void *ctx,
		struct row_compare_totals *ret, struct diag *diag);

#endif
