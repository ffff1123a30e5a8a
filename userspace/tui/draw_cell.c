/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/draw_cell.h"

#include <stdio.h>
#include <string.h>

void cell_text(const struct cell_at *c, enum role role, const char *s)
{
	if (c->col->left)
		grid_fit(c->g, c->col->x, c->y, c->col->width, role, s);
	else
		grid_right(c->g, c->col->x, c->y, c->col->width, role, s);
}

void cell_share(const struct cell_at *c, uint64_t part, uint64_t sum, bool strong)
{
	double share = ui_share(part, sum);
	char text[16];

	snprintf(text, sizeof(text), "%.1f", share);
	cell_text(c,
		  !part			  ? ROLE_DIM
		  : strong && share >= 10 ? ROLE_STRONG
					  : ROLE_TEXT,
		  sum ? text : "-");
}

void cell_complete(const struct cell_at *c, uint64_t complete, uint64_t user_stacks)
{
	double share = ui_share(complete, user_stacks);
	char text[16];

	snprintf(text, sizeof(text), "%.1f", share);
	if (!user_stacks)
		cell_text(c, ROLE_DIM, "-");
	else
		cell_text(c,
			  user_stacks < 20 ? ROLE_TEXT
			  : share < 97	   ? ROLE_BAD
			  : share < 99	   ? ROLE_WARN
					   : ROLE_TEXT,
			  text);
}

void cell_diff(const struct cell_at *c, double diff)
{
	char text[16];

	snprintf(text, sizeof(text), "%+.1f", diff);
	cell_text(c,
		  diff >= 0.5	 ? ROLE_BAD
		  : diff <= -0.5 ? ROLE_GOOD
				 : ROLE_DIM,
		  diff > -0.05 && diff < 0.05 ? "0.0" : text);
}

bool cell_is_kernel(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, "_[k]") == 0;
}

void cell_name(const struct cell_at *c, const char *name)
{
	grid_fit(c->g, c->col->x, c->y, c->col->width,
		 cell_is_kernel(name) ? ROLE_KERNEL : ROLE_TEXT, name);
}

const char *cell_mark(const struct cell_at *c, const struct ui_row *row)
{
	static const char *const marks[][2] = {
		[ROW_LEAF] = { "  ", "  " },
		[ROW_CLOSED] = { "+ ", "\u25b8 " },
		[ROW_OPEN] = { "- ", "\u25be " },
	};

	return marks[row->opening][c->g->unicode];
}

void cell_marked(const struct cell_at *c, const struct ui_row *row, const char *name)
{
	int n = grid_text(c->g, c->col->x, c->y, c->col->width, ROLE_DIM, cell_mark(c, row));

	grid_fit(c->g, c->col->x + n, c->y, c->col->width - n, ROLE_TEXT, name);
}

const char *cell_between(const struct cell_at *c)
{
	return c->g->unicode ? " \u2039 " : " < ";
}

const char *draw_amount(uint64_t n, char *dst, size_t cap)
{
	if (n < 100000)
		snprintf(dst, cap, "%llu", (unsigned long long)n);
	else if (n < 10000000)
		snprintf(dst, cap, "%.0fk", (double)n / 1e3);
	else
		snprintf(dst, cap, "%.0fM", (double)n / 1e6);
	return dst;
}

const char *draw_bytes(uint64_t n, char *dst, size_t cap)
{
	static const char *const units[] = { "", "k", "M", "G", "T" };
	double v = (double)n;
	size_t u = 0;

	for (; v >= 1000 && u < 4; u++)
		v /= 1024;
	snprintf(dst, cap, u && v < 10 ? "%.1f%s" : "%.0f%s", v, units[u]);
	return dst;
}
