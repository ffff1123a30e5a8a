/* SPDX-License-Identifier: BSD-2-Clause */
/* What is specific to one view. CONTRIBUTING.md lists the other places. */
#ifndef SFBPF_TUI_VIEW_H
#define SFBPF_TUI_VIEW_H

#include "tui/screen.h"
#include "tui/ui.h"

struct cursor; /* a cell that is being drawn: draw_list.c */
struct zoom_path;
struct hot_list; /* scratch of rows.c */

struct column_spec {
	enum column id;
	const char *title;
	int width; /* including the blank before it; 0: the rest of the line */
	int wide;  /* width on screens of 120 columns or more */
	int from;  /* narrowest screen that shows the column */
	bool left;
};

struct row_then { /* a row in the baseline */
	uint64_t key, self;
};

enum { VIEW_FINDS_PROCESS = 1, VIEW_FINDS_FUNCTION = 2, VIEW_FINDS_MODULE = 4 };

struct view_spec {
	const char *title;	    /* of the tab */
	unsigned int finds;	    /* VIEW_FINDS_...: what the filter matches */
	unsigned int census;	    /* CENSUS_...: the tables needed for the rows */
	enum calltree_order order;  /* TREE and FLAME: order of the tree */
	int (*rows)(struct ui *ui); /* adds to ui->rows. 0 or -ENOMEM */
	void (*draw)(const struct ui *ui, struct grid *g, const struct layout *l);
	/* Where the Enter key leads; not NULL */
	void (*zoom)(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
	/* A row's name, for F3. May be in dst. */
	const char *(*name)(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);

	/* With draw_table: */
	const struct column_spec *columns; /* the last one has no title */
	void (*cell)(const struct ui *ui, const struct cursor *c, const struct ui_row *row);

	/* LIST: */
	int (*compare)(const struct ui *ui, enum column by, const struct ui_row *a,
		       const struct ui_row *b);
	/* With `then`: of a row */
	uint64_t (*self)(const struct ui *ui, const struct ui_row *row);
	/* Row i of the baseline; false: it has no more. NULL: the view has no baseline. */
	bool (*then)(const struct ui *ui, size_t i, struct row_then *ret);
	/* Adds the rows below an opened row. 0 or -ENOMEM. NULL: rows cannot be opened. */
	int (*add_parts)(struct ui *ui, const struct ui_row *top, struct hot_list *hot);
};

const struct view_spec *view_at(enum view view);
const char *view_name(enum view view); /* in lower case: "functions", ... */

extern const struct column_spec function_columns[], process_columns[], module_columns[];
extern const struct column_spec offcpu_columns[], wall_columns[], tree_columns[], caller_columns[];

int rows_functions(struct ui *ui);
int rows_processes(struct ui *ui);
int rows_modules(struct ui *ui);
int rows_blocked(struct ui *ui);
int rows_wall(struct ui *ui);
int rows_tree(struct ui *ui);
int rows_flame(struct ui *ui);
int rows_process_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot);
int rows_blocked_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot);
int rows_wall_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot);

void draw_function_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row);
void draw_process_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row);
void draw_module_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row);
void draw_blocked_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row);
void draw_wall_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row);
void draw_tree_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row);

void zoom_function_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
void zoom_process_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
void zoom_module_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
void zoom_blocked_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
void zoom_wall_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
void zoom_tree_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);

int compare_functions(const struct ui *ui, enum column by, const struct ui_row *a,
		      const struct ui_row *b);
int compare_processes(const struct ui *ui, enum column by, const struct ui_row *a,
		      const struct ui_row *b);
int compare_modules(const struct ui *ui, enum column by, const struct ui_row *a,
		    const struct ui_row *b);
int compare_blocked(const struct ui *ui, enum column by, const struct ui_row *a,
		    const struct ui_row *b);
int compare_wall(const struct ui *ui, enum column by, const struct ui_row *a,
		 const struct ui_row *b);

uint64_t self_of_function(const struct ui *ui, const struct ui_row *row);
uint64_t self_of_process(const struct ui *ui, const struct ui_row *row);
uint64_t self_of_module(const struct ui *ui, const struct ui_row *row);
uint64_t self_of_blocked(const struct ui *ui, const struct ui_row *row);

const char *name_of_function(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
const char *name_of_process(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
const char *name_of_module(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
const char *name_of_blocked(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
const char *name_of_node(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
bool then_function(const struct ui *ui, size_t i, struct row_then *ret);
bool then_process(const struct ui *ui, size_t i, struct row_then *ret);
bool then_module(const struct ui *ui, size_t i, struct row_then *ret);
bool then_blocked(const struct ui *ui, size_t i, struct row_then *ret);

#endif
