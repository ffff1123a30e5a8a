/* SPDX-License-Identifier: BSD-2-Clause */
/* What views draw in the cells of their tables. */
#ifndef SFBPF_TUI_DRAW_CELL_H
#define SFBPF_TUI_DRAW_CELL_H

#include "tui/layout.h"

struct cell_at { /* the cell to draw */
	struct grid *g;
	const struct column_at *col;
	int y;
};

void cell_text(const struct cell_at *c, enum role role, const char *s);
/* A share in percent. strong: large ones are drawn in bold */
void cell_share(const struct cell_at *c, uint64_t part, uint64_t sum, bool strong);
void cell_complete(const struct cell_at *c, uint64_t complete, uint64_t user_stacks);
void cell_diff(const struct cell_at *c, double diff);
void cell_name(const struct cell_at *c, const char *name); /* draws a function's name */
bool cell_is_kernel(const char *name);			   /* "..._[k]" */
/* Whether the row can be opened or closed: a mark that stands before its name */
const char *cell_mark(const struct cell_at *c, const struct ui_row *row);
void cell_marked(const struct cell_at *c, const struct ui_row *row, const char *name);
const char *cell_between(const struct cell_at *c); /* " < ", between a function and its caller */

/* Format numbers: "1234", "1234k", "45M". Return dst. */
const char *draw_amount(uint64_t n, char *dst, size_t cap);
const char *draw_bytes(uint64_t n, char *dst, size_t cap);

#endif
