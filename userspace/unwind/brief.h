/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function's rows in brief, which is how packing reads nearly all of them: they follow each other without a hole, and their rules
 * are numbers. A reader that has met a rule before says its number without making a row of it; whoever wants to know what
 * it means asks once a number, not once a row.
 */
#ifndef SFBPF_UNWIND_BRIEF_H
#define SFBPF_UNWIND_BRIEF_H

#include "base/vec.h"
#include "unwind/row.h"

struct brief_row {
	uint64_t end;		/* virtual address; the row starts where the one before ends */
	uint32_t rule;		/* its reader's number for all but start and end */
};

struct brief {
	struct brief_row *rows;	/* n + 1: no row is at [0], the first one starts at its end */
	size_t n, cap;
	uint32_t rules;		/* their numbers are below that; it grows from function to function */
	bool usable;		/* from .sframe: CFA and RA of all rows can be expressed, or the RA is undefined */
};

#define BRIEF_MAX_ROWS (1u << 20)	/* functions with more are not told in brief */

#endif
