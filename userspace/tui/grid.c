/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vec.h"

#define FIT_MAX 2048 /* bytes of a fitted string: more than any line holds */

int grid_reset(struct grid *g, int w, int h)
{
	size_t n;

	w = w < 1 ? 1 : w;
	h = h < 1 ? 1 : h;
	n = (size_t)w * (size_t)h;
	if (vec_reserve(&g->cells, &g->cap, n, sizeof(*g->cells)))
		return -ENOMEM;
	g->w = w;
	g->h = h;
	for (size_t i = 0; i < n; i++)
		g->cells[i] = (struct cell){ ' ', ROLE_TEXT };
	return 0;
}

void grid_free(struct grid *g)
{
	free(g->cells);
	*g = (struct grid){ 0 };
}

/* Clips [x, x + width) to the grid. False: nothing is left. */
static bool clip(const struct grid *g, int *x, int y, int *width)
{
	if (y < 0 || y >= g->h || *x >= g->w || *width <= 0)
		return false;
	if (*x < 0) {
		*width += *x;
		*x = 0;
	}
	if (*width > g->w - *x)
		*width = g->w - *x;
	return *width > 0;
}

static struct cell *row_of(struct grid *g, int y)
{
	return g->cells + (size_t)y * (size_t)g->w;
}

int grid_text(struct grid *g, int x, int y, int width, enum role role, const char *s)
{
	size_t len = strlen(s);
	struct cell *row;
	int used = 0;

	if (!clip(g, &x, y, &width))
		return 0;
	row = row_of(g, y) + x;
	for (size_t i = 0; i < len;) {
		uint32_t c;
		int w;

		i += text_decode(s + i, len - i, &c);
		/*
		 * Strings are sanitised by the caller. This is the last line of defence: a control
		 * character must never reach the terminal.
		 */
		if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == UINT32_MAX)
			c = '.';
		w = text_char_width(c);
		if (!w)
			continue;
		if (used + w > width)
			break;
		if (c > 0x7e && !g->unicode)
			c = '?';
		row[used] = (struct cell){ c, role };
		if (w == 2)
			row[used + 1] = (struct cell){ c == '?' ? ' ' : 0, role };
		used += w;
	}
	return used;
}

int grid_fit(struct grid *g, int x, int y, int width, enum role role, const char *s)
{
	char buf[FIT_MAX];

	if (!clip(g, &x, y, &width))
		return 0;
	text_fit(buf, sizeof(buf), s, width, g->unicode);
	return grid_text(g, x, y, width, role, buf);
}

int grid_right(struct grid *g, int x, int y, int width, enum role role, const char *s)
{
	int w = text_width(s);

	if (w < width) {
		x += width - w;
		width = w;
	}
	return grid_fit(g, x, y, width, role, s);
}

void grid_fill(struct grid *g, int x, int y, int width, enum role role, uint32_t ch)
{
	if (!clip(g, &x, y, &width))
		return;
	for (int i = 0; i < width; i++)
		row_of(g, y)[x + i] = (struct cell){ ch, role };
}

void grid_role(struct grid *g, int x, int y, int width, enum role role)
{
	if (!clip(g, &x, y, &width))
		return;
	for (int i = 0; i < width; i++)
		row_of(g, y)[x + i].role = role;
}

size_t grid_line(const struct grid *g, int y, char *dst, size_t cap)
{
	size_t n = 0, end = 0;

	for (int x = 0; x < g->w && n + TEXT_CHAR_MAX + 1 < cap; x++) {
		const struct cell *c = grid_cell(g, x, y);

		if (!c->ch)
			continue;
		n += text_encode(dst + n, c->ch);
		if (c->ch != ' ')
			end = n;
	}
	dst[end] = 0;
	return end;
}
