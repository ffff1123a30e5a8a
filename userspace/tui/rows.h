/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a view: filtered, sorted, opened. */
#ifndef SFBPF_TUI_ROWS_H
#define SFBPF_TUI_ROWS_H

#include "tui/ui.h"

/*
 * Builds ui->rows for ui->view from its census or tree; the cursor stays on its row. 0 or -ENOMEM.
 */
int rows_build(struct ui *ui);
/* Adds a row at the end. NULL: out of memory. */
struct ui_row *rows_add(struct ui *ui, uint64_t key, uint32_t index);
bool rows_open_by_hand(const struct ui *ui, uint64_t key); /* whether it starts open */
/* Whether s contains the filter, ignoring case. An empty filter matches everything. */
bool rows_filter(const char *filter, const char *s);
/* The sanitised name of a tree node. Returns dst. */
const char *rows_node_name(const struct ui *ui, const struct calltree_node *node, char *dst,
			   size_t cap);
const char *rows_node_module(const struct ui *ui, const struct calltree_node *node); /* "": none */
const char *rows_module_name(const struct census_module *m, char *dst, size_t cap);
const char *rows_module_tables(
	const struct census_module *m); /* "sframe", "eh_frame", "none", ... */
/* "nginx 123", or "[blocked: futex] futex_wait_[k] < lock"; between: " < ". Returns dst. */
const char *rows_wall_name(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);
const char *rows_wall_stack(const struct ui *ui, const struct ui_row *row, const char *between,
			    char *dst, size_t cap);
uint64_t rows_module_key(const struct census_module *m);
uint64_t rows_process_key(uint32_t pid); /* key in the set of opened rows */
const struct census_process *rows_process(const struct ui *ui, const struct ui_row *row);
const char *rows_cgroup(const struct ui *ui, const struct census_process *p, char *dst,
			size_t cap); /* "": unknown */
/* The leaf function of a blocked stack */
const char *rows_blocked_leaf(const struct ui *ui, const struct blocked_stack *b);
/*
 * Whether the filter matches the stack in a view. view_spec.finds selects what is compared:
 * functions, modules, or the command and the process id.
 */
bool rows_filter_stack(const struct ui *ui, enum view view, struct profile *p, size_t i);
/* For qsort_r over rows of a list view; ctx is the ui. */
int rows_compare(const void *a, const void *b, void *ctx);

void keyset_free(struct keyset *ks);
/* 1: opened by the user, 0: closed by the user, -1: neither. */
int keyset_get(const struct keyset *ks, uint64_t key);
void keyset_set(struct keyset *ks, uint64_t key, bool open);

#endif
