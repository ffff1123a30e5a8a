/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of a Go program from the table of its runtime (elf/go_table.h). The table has the height of
 * sp for every pc, stripped or not, and Go's own stack traces rely on it. .debug_frame, which is
 * made from the same heights, says neither where the frame pointer is saved, nor that the runtime
 * changes stacks, nor which frames are outermost.
 *
 * A function has no rows from the first instruction on that may write sp other than by a constant,
 * except for the functions of the runtime that change stacks (go_switch.h).
 */
#ifndef SFBPF_READERS_GO_ROWS_H
#define SFBPF_READERS_GO_ROWS_H

#include "border/sfbpf_shared.h"
#include "elf/go_table.h"
#include "rows/row.h"

#define GO_RULES_MAX 12

struct go_rows {
	struct go_table table;
	enum row_arch arch;
	struct fntab fns;		       /* ref: number of the function in the table */
	struct rowbuf special;		       /* rows that override heights; ascending */
	struct sf_go_rule rules[GO_RULES_MAX]; /* rules of rows; a row's `go` is the number + 1 */
	uint32_t nrules;
	uint64_t restorer; /* where signal handlers return to; 0: not known */
};

/* 0; -ENOENT: not a Go program, or one of a machine that is not known; -ENOMEM, -EIO. */
int go_rows_open(struct go_rows *g, const struct elf_image *img, enum row_arch arch);
void go_rows_close(struct go_rows *g); /* also on a zeroed one */
/* Appends the rows of a function, ascending. 0 or -ENOMEM. */
int go_rows_of(const struct go_rows *g, const struct elf_image *img, const struct fn *fn,
	       struct rowbuf *out);

#endif
