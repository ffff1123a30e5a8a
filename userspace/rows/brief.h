/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brief rows: the compact form in which packing reads nearly all functions.
 *
 * A brief row is the pair (end, rule number). The rows of a function follow each other without a
 * gap, so each starts where the one before it ends. The reader numbers the rules that it meets; a
 * rule that occurs again costs no struct row. The consumer evaluates each number once, not once per
 * row (eh_brief_rule, sframe_brief_rule).
 *
 * Not every function has a brief form. Its rows are then read as struct row.
 */
#ifndef SFBPF_ROWS_BRIEF_H
#define SFBPF_ROWS_BRIEF_H

#include "base/vec.h"
#include "rows/row.h"

struct brief_row {
	uint64_t end;  /* virtual address; the row starts where the one before it ends */
	uint32_t rule; /* the reader's number for all but start and end */
};

struct brief {
	/* n + 1 entries: [0] is not a row, its end is where the first row starts */
	struct brief_row *rows;
	size_t n, cap;
	/* All rule numbers are below this; it grows from function to function */
	uint32_t rules;
	/* Set for .sframe only: all rows are row_usable() */
	bool usable;
};

#define BRIEF_MAX_ROWS (1u << 20) /* functions that may have more rows have no brief form */

#endif
