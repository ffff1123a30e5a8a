/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A screen in memory. Views draw into it without using a terminal. term.c shows it, and tests read
 * it as text. A cell has a character and a role: the meaning of the text. term.c chooses the
 * colours of each role.
 */
#ifndef SFBPF_TUI_GRID_H
#define SFBPF_TUI_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum role {
	ROLE_TEXT,
	ROLE_DIM,
	ROLE_STRONG,
	ROLE_GOOD,
	ROLE_WARN,
	ROLE_BAD, /* severity of a value */
	ROLE_TITLE,
	ROLE_TITLE_ON, /* column titles; the column that the rows are sorted by */
	ROLE_TAB,
	ROLE_TAB_ON,
	ROLE_KERNEL, /* names of kernel functions */
	ROLE_MATCH,  /* matches the filter */
	ROLE_CURSOR,
	ROLE_KEY,
	ROLE_LABEL, /* the bar at the bottom: a key, and its label */
	ROLE_FLAME, /* four shades */
	ROLE_FLAME_LAST = ROLE_FLAME + 3,
	ROLE_FLAME_KERNEL,
	ROLE_MAX
};

struct cell {
	/* Code point; 0: the right half of the preceding wide character */
	uint32_t ch;
	uint32_t role;
};

struct grid {
	int w, h;
	bool unicode; /* false: ASCII only, other characters become '?' */
	struct cell *cells;
	size_t cap;
};

/* Clears the grid and sets its size (at least 1x1). 0 or -ENOMEM (the old grid is kept). */
int grid_reset(struct grid *g, int w, int h);
void grid_free(struct grid *g);
/*
 * These clip at the border of the grid and at `width` columns. grid_text returns the columns used
 * and drops combining characters. grid_fit marks a truncated string; grid_right also aligns it to
 * x + width.
 */
int grid_text(struct grid *g, int x, int y, int width, enum role role, const char *s);
int grid_fit(struct grid *g, int x, int y, int width, enum role role, const char *s);
int grid_right(struct grid *g, int x, int y, int width, enum role role, const char *s);
void grid_fill(struct grid *g, int x, int y, int width, enum role role, uint32_t ch);
/* Changes the role and keeps the characters. */
void grid_role(struct grid *g, int x, int y, int width, enum role role);
/* Stores a line as UTF-8 without trailing blanks. Returns its length in bytes. */
size_t grid_line(const struct grid *g, int y, char *dst, size_t cap);

static inline const struct cell *grid_cell(const struct grid *g, int x, int y)
{
	return &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
}

#endif
