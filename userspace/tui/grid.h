/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A screen in memory. Views draw into it and know no terminal; term.c shows it, tests read it as text.
 * A cell has a character and a role, which says what the text means; what a role looks like is the terminal's
 * business.
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
	ROLE_GOOD, ROLE_WARN, ROLE_BAD,	/* how worrying a value is */
	ROLE_TITLE, ROLE_TITLE_ON,	/* column titles; the one that is sorted by */
	ROLE_TAB, ROLE_TAB_ON,
	ROLE_KERNEL,			/* names of kernel functions */
	ROLE_MATCH,			/* what the filter found */
	ROLE_CURSOR,
	ROLE_KEY, ROLE_LABEL,		/* the bar at the bottom: the key, what it does */
	ROLE_FLAME,			/* four shades */
	ROLE_FLAME_LAST = ROLE_FLAME + 3,
	ROLE_FLAME_KERNEL,
	ROLE_MAX
};

struct cell {
	uint32_t ch;			/* Unicode; 0: the right half of the wide character before it */
	uint32_t role;
};

struct grid {
	int w, h;
	bool unicode;			/* false: ASCII only, what is not becomes '?' */
	struct cell *cells;
	size_t cap;
};

/* Empty, of that size (at least 1x1). 0 or -ENOMEM (then it keeps its old size). */
int grid_reset(struct grid *g, int w, int h);
void grid_free(struct grid *g);
/*
 * All of these clip at the grid's border and at `width` columns. grid_text returns the columns used; combining
 * characters are left out. grid_fit marks a string that does not fit, grid_right ends it at x + width.
 */
int grid_text(struct grid *g, int x, int y, int width, enum role role, const char *s);
int grid_fit(struct grid *g, int x, int y, int width, enum role role, const char *s);
int grid_right(struct grid *g, int x, int y, int width, enum role role, const char *s);
void grid_fill(struct grid *g, int x, int y, int width, enum role role, uint32_t ch);
void grid_role(struct grid *g, int x, int y, int width, enum role role);	/* keeps the characters */
/* A line as UTF-8 without the blanks at its end. Returns its bytes. */
size_t grid_line(const struct grid *g, int y, char *dst, size_t cap);

static inline const struct cell *grid_cell(const struct grid *g, int x, int y)
{
	return &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
}

#endif
