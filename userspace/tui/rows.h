/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a view, in order: filtered, sorted, opened; and which columns they have. */
#ifndef SFBPF_TUI_ROWS_H
#define SFBPF_TUI_ROWS_H

#include "tui/ui.h"

/* ui->rows for ui->view out of its census or tree; the cursor stays on its row. 0 or -ENOMEM. */
int rows_build(struct ui *ui);
/* Whether s has the filter in it, whatever its case. An empty filter is in everything. */
bool rows_filter(const char *filter, const char *s);
/* A tree node's name, clean. Returns dst. */
const char *rows_node_name(const struct ui *ui, const struct calltree_node *node, char *dst, size_t cap);
const char *rows_node_module(const struct ui *ui, const struct calltree_node *node);	/* "": it has none */
const char *rows_module_name(const struct census_module *m, char *dst, size_t cap);
const char *rows_module_tables(const struct census_module *m);	/* "sframe", "eh_frame", "none", ... */
uint64_t rows_module_key(const struct census_module *m);
uint64_t rows_process_key(uint32_t pid);	/* in the set of opened rows */
const struct census_process *rows_process(const struct ui *ui, const struct ui_row *row);
const char *rows_cgroup(const struct ui *ui, const struct census_process *p, char *dst, size_t cap);	/* "": not known */
const char *rows_blocked_leaf(const struct ui *ui, const struct blocked_stack *b);	/* the function that it is blocked in */
/* Whether the filter finds the stack in that view: by its functions, modules, command or process id, as the view has them. */
bool rows_filter_stack(const struct ui *ui, enum view view, struct profile *p, size_t i);
/* For qsort_r over rows of a list view; ctx is the ui. */
int rows_compare(const void *a, const void *b, void *ctx);

#define COLUMNS_MAX 10

struct column_at {
	enum column id;
	const char *title;
	int x, width;
	bool left;			/* text; numbers are set to the right */
};

/* The columns of the view at that width, from left to right. Returns their number. */
size_t columns_lay_out(enum view view, bool baseline, int width, struct column_at *ret);

void keyset_free(struct keyset *ks);
/* 1 opened, 0 closed, -1 neither by hand. */
int keyset_get(const struct keyset *ks, uint64_t key);
void keyset_set(struct keyset *ks, uint64_t key, bool open);

#endif
