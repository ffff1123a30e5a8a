/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the parts of the screen are: its lines, and the columns of the table. */
#ifndef SFBPF_TUI_LAYOUT_H
#define SFBPF_TUI_LAYOUT_H

#include "tui/ui.h"

struct layout {		   /* lines; -1: not shown */
	int trust, ntrust; /* the header: first line, number of lines */
	int tabs, crumb, title, body, nbody, bar;
};

#define COLUMNS_MAX 12

struct column_at {
	unsigned int id; /* column_spec.id */
	const char *title;
	int x, width;
	bool left; /* left-aligned text; numbers are right-aligned */
};

struct layout layout_lines(enum view view, int height);
/* The columns of the view on a screen of this width, left to right. Returns their number. */
size_t layout_columns(const struct ui *ui, int width, struct column_at *ret);

#endif
