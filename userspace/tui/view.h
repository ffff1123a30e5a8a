/* SPDX-License-Identifier: BSD-2-Clause */
/* What a view is. Each is a file in views/ and a row of views.def. */
#ifndef SFBPF_TUI_VIEW_H
#define SFBPF_TUI_VIEW_H

#include "tui/ui.h"

struct cell_at;	  /* draw_cell.h */
struct zoom_path; /* zoom.h */

struct column_spec {
	unsigned int id; /* enum column, or the view's own number from COL_OWN on */
	const char *title;
	int width; /* including the blank before it; 0: the rest of the line */
	int wide;  /* width on screens of 120 columns or more */
	int from;  /* narrowest screen that shows the column */
	unsigned int flags;
};

enum { COLUMN_LEFT = 1, COLUMN_IDLE = 2 }; /* left-aligned; only while idle threads are shown */

struct baseline_row { /* a row in the baseline: ui_row.key and .self */
	uint64_t key, self;
};

struct hot_list {	      /* hot functions of all threads, made for the first opened row */
	struct census_hot *v; /* NULL: not made yet */
	size_t n;
};

/* What the numbers of a view are about: samples, blocked time, or both. */
enum view_time { TIME_RUNNING, TIME_BLOCKED, TIME_BOTH };
enum { VIEW_FINDS_PROCESS = 1, VIEW_FINDS_FUNCTION = 2, VIEW_FINDS_MODULE = 4 };

/* A list is sorted and has columns. A tree has columns. A picture draws itself. */
struct view_spec {
	const char *title; /* title of the tab */
	enum view_time time;
	/*
	 * VIEW_FINDS_...: what the filter matches in trees, and in stacks that are written; rows()
	 * of lists filters by itself
	 */
	unsigned int finds;
	unsigned int census;	   /* CENSUS_...: the tables needed for the rows */
	enum calltree_order order; /* trees and pictures */
	/*
	 * Counts in a new window what the census does not, before the census is made. NULL: nothing
	 */
	int (*count)(struct ui *ui);
	int (*rows)(struct ui *ui); /* adds to ui->rows. 0 or -ENOMEM */
	/* Where the Enter key leads; every view has one, and sets to->refused if that is nowhere */
	void (*zoom)(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
	/* A row's name, for F3. May be in dst. NULL: the name of the row's symbol */
	const char *(*name)(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
	bool annotates; /* rows have a symbol, whose instructions can be shown */

	/* Lists and trees: */
	const struct column_spec *columns; /* the last one has no title */
	void (*cell)(const struct ui *ui, const struct cell_at *c, const struct ui_row *row);

	/* Lists; the row that belongs further down is the smaller one, so names are reversed: */
	int (*compare)(const struct ui *ui, unsigned int by, const struct ui_row *a,
		       const struct ui_row *b);
	/* Row i of the baseline; false: there are no more. NULL: the view has no baseline */
	bool (*baseline)(const struct ui *ui, size_t i, struct baseline_row *ret);
	/* Adds the rows below an opened row. 0 or -ENOMEM. NULL: rows cannot be opened */
	int (*add_parts)(struct ui *ui, const struct ui_row *top, struct hot_list *hot);

	/* Pictures, with rows that have a place and a depth: */
	void (*draw)(const struct ui *ui, struct grid *g, int y, int height);
	/* The index of the row next to the current one: ACT_LEFT, _RIGHT, _DEEPER, _OUTER */
	size_t (*neighbour)(const struct ui *ui, enum action act);
	/* The index of the row at this place; ui->nrows: none */
	size_t (*row_at)(const struct ui *ui, int x, size_t depth);
};

#define VIEW(id, name) extern const struct view_spec view_##name;
#include "tui/views.def"
#undef VIEW

const struct view_spec *view_at(enum view view);
const char *view_name(enum view view); /* lower case: "functions", ... */

#endif
