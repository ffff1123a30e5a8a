/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .sframe against .eh_frame of the same file: a check on whoever wrote the .sframe. Both come from the same
 * directives in the assembler, so where both describe a byte and both can express a rule, the rules are equal.
 */
#ifndef SFBPF_UNWIND_ROW_COMPARE_H
#define SFBPF_UNWIND_ROW_COMPARE_H

#include "unwind/row_stream.h"

#define ROW_CFA 1
#define ROW_RA 2
#define ROW_FP 4
#define ROW_SIGNED 8	/* AArch64: whether the RA carries an authentication code */

/*
 * Which of ROW_* the two rows disagree in. *ret_judged: which could be compared. Not comparable is what either
 * cannot express; a frame pointer that .eh_frame calls undefined; beside an undefined RA everything else.
 * Equal are also different spellings of one place: *(rsp+8) and *(cfa-8) where the CFA is rsp+16.
 */
unsigned int row_disagree(const struct row *sframe, const struct row *eh, unsigned int *ret_judged);

struct row_clash {
	uint64_t start, end;		/* code that both rows describe; in a repeating block its first occurrence */
	const struct row *sframe, *eh;
	unsigned int columns;		/* ROW_* */
};

struct row_compare_totals {
	uint64_t rows;		/* of .sframe */
	uint64_t compared;	/* of those: rows of which anything could be compared */
	uint64_t clashing;	/* of those: rows that disagree anywhere */
};

typedef void (*row_clash_fn)(void *ctx, const struct row_clash *clash);

/* Ascending. A repeating block of more than 64 KiB in common period is compared that far. 0 or -ENOMEM. */
int row_compare(struct unwind_file *file, row_clash_fn fn, void *ctx, struct row_compare_totals *ret, struct diag *diag);

#endif
