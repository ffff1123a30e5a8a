/* SPDX-License-Identifier: BSD-2-Clause */
/* What views of a call tree share. A row is a node, or stands for some (ui_row.folded). */
#ifndef SFBPF_TUI_TREE_H
#define SFBPF_TUI_TREE_H

#include "tui/draw_cell.h"
#include "tui/zoom.h"

/* The sanitised name of a node. Returns dst. */
const char *tree_node_name(const struct ui *ui, const struct calltree_node *node, char *dst,
			   size_t cap);
const char *tree_node_module(const struct ui *ui, const struct calltree_node *node); /* "": none */

/* Columns of tree_cell. COL_PART is the share of the parent's samples. */
enum { COL_PART = COL_OWN, COL_MODULE, COL_NODE };

/* Members of struct view_spec */
int tree_rows(struct ui *ui);
void tree_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row);
void tree_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to);
const char *tree_name(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap);

#endif
