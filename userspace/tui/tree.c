/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/rows.h"

const char *tree_node_name(const struct ui *ui, const struct calltree_node *node, char *dst,
			   size_t cap)
{
	const char *raw;

	switch (node->label) {
	case LABEL_PROCESS:
	case LABEL_COMM:
		raw = calltree_comm(&ui->tree, node->id);
		text_clean(dst, cap, raw, strlen(raw), 0);
		break;
	case LABEL_STOP:
		snprintf(dst, cap, "[incomplete:%s]", profile_stop_name((uint8_t)node->id));
		break;
	default:
		snprintf(dst, cap, "%s", symbolizer_name(ui->symbols, node->id));
		break;
	}
	return dst;
}

const char *tree_node_module(const struct ui *ui, const struct calltree_node *node)
{
	return node->label == LABEL_SYMBOL ? symbolizer_module(ui->symbols, node->id) : "";
}

/* ---- Rows ---- */

/* Marks the ancestors of nodes that match the filter, so that they are opened. */
static void search_tree(struct ui *ui)
{
	struct calltree *t = &ui->tree;
	char name[512];

	for (size_t i = 0; i < t->n; i++)
		t->nodes[i].found = false;
	for (size_t i = 1; i < t->n && ui->filter[0]; i++) {
		if (!rows_filter(ui->filter, tree_node_name(ui, &t->nodes[i], name, sizeof(name))))
			continue;
		for (uint32_t k = t->nodes[i].parent; k != CALLTREE_NONE && !t->nodes[k].found;
		     k = t->nodes[k].parent)
			t->nodes[k].found = true;
	}
}

static bool is_open(const struct ui *ui, const struct calltree_node *node)
{
	int by_hand = keyset_get(&ui->opened, node->path);

	if (by_hand >= 0)
		return by_hand;
	return node->found ||
	       ui_share(node->total, ui->tree.nodes[CALLTREE_ROOT].total) >= ui->open_share;
}

#define FOLD_MIN 4 /* shorter chains are shown */

/*
 * The number of frames in the unbranched chain below a node: each has one child and no samples of
 * its own. *ret_end is the frame after the chain.
 */
static uint32_t chain_below(const struct ui *ui, uint32_t from, uint32_t *ret_end)
{
	const struct calltree_node *nodes = ui->tree.nodes;
	uint32_t n = 0, at;

	if (nodes[from].nchildren != 1)
		return 0;
	at = nodes[from].first_child;
	while (nodes[at].nchildren == 1 && nodes[nodes[at].first_child].total == nodes[at].total &&
	       keyset_get(&ui->opened, nodes[at].path) != 0) {
		at = nodes[at].first_child;
		n++;
	}
	*ret_end = at;
	return n;
}

static int add_children(struct ui *ui, uint32_t parent, unsigned int indent);

static int add_node(struct ui *ui, uint32_t index, unsigned int indent, struct ui_row **ret)
{
	const struct calltree_node *node = &ui->tree.nodes[index];
	struct ui_row *row = rows_add(ui, node->path, index);
	char name[512];

	if (!row)
		return -ENOMEM;
	row->indent = (uint16_t)indent;
	row->symbol = node->label == LABEL_SYMBOL ? node->id : ROW_NONE;
	row->match = ui->filter[0] &&
		     rows_filter(ui->filter, tree_node_name(ui, node, name, sizeof(name)));
	if (node->nchildren)
		row->opening = is_open(ui, node) ? ROW_OPEN : ROW_CLOSED;
	*ret = row;
	return 0;
}

/*
 * Adds the rows below an opened node. A long chain without branches becomes one row, unless the
 * user opened it or a match is below the node.
 */
static int add_below(struct ui *ui, uint32_t index, unsigned int indent)
{
	const struct calltree_node *node = &ui->tree.nodes[index];
	uint32_t end = index, n = chain_below(ui, index, &end);
	uint64_t key = ~node->path;
	struct ui_row *row;
	int err;

	if (n < FOLD_MIN || node->found || ui->open_share <= 0 ||
	    keyset_get(&ui->opened, key) == 1 || !is_open(ui, &ui->tree.nodes[node->first_child]))
		return add_children(ui, index, indent);
	row = rows_add(ui, key, node->first_child);
	if (!row)
		return -ENOMEM;
	row->indent = (uint16_t)indent;
	row->opening = ROW_CLOSED;
	row->folded = n;
	err = add_node(ui, end, indent, &row);
	if (!err && row->opening == ROW_OPEN)
		err = add_below(ui, end, indent + (ui->tree.nodes[end].nchildren > 1));
	return err;
}

static int add_children(struct ui *ui, uint32_t parent, unsigned int indent)
{
	const struct calltree *t = &ui->tree;
	size_t n = t->nodes[parent].nchildren;
	uint32_t *children = n ? malloc(n * sizeof(*children)) : NULL;
	int err = n && !children ? -ENOMEM : 0;

	n = children ? calltree_children(t, parent, children, n) : 0;
	for (size_t i = 0; i < n && !err; i++) {
		struct ui_row *row;

		err = add_node(ui, children[i], indent, &row);
		/* Chains without branches are not indented, because stacks are deep. */
		if (!err && row->opening == ROW_OPEN)
			err = add_below(ui, children[i],
					indent + (t->nodes[children[i]].nchildren > 1 || n > 1 ||
						  parent == CALLTREE_ROOT));
	}
	free(children);
	return err;
}

int tree_rows(struct ui *ui)
{
	search_tree(ui);
	return add_children(ui, CALLTREE_ROOT, 0);
}

/* ---- Cells ---- */

static void cell_node(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct calltree_node *node = &ui->tree.nodes[row->index];
	int x = c->col->x, left = c->col->width, indent = 2 * row->indent, most = left / 2;
	enum role role = ROLE_TEXT;
	char name[512];

	if (row->folded)
		snprintf(name, sizeof(name), "%s %u frames", c->g->unicode ? "\u22ef" : "...",
			 row->folded);
	else
		tree_node_name(ui, node, name, sizeof(name));
	if (row->folded)
		role = ROLE_DIM;
	else if (node->label == LABEL_COMM)
		role = ROLE_STRONG;
	else if (node->label == LABEL_STOP)
		role = ROLE_BAD;
	else if (cell_is_kernel(name))
		role = ROLE_KERNEL;
	if (row->match)
		role = ROLE_MATCH;
	/* The name keeps at least half of the column. */
	indent = indent < most ? indent : most;
	x += indent;
	left -= indent;
	x += grid_text(c->g, x, c->y, left, ROLE_DIM, cell_mark(c, row));
	grid_fit(c->g, x, c->y, left - 2, role, name);
}

void tree_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct calltree_node *nodes = ui->tree.nodes, *node = &nodes[row->index];

	switch (c->col->id) {
	case COL_TOTAL:
		cell_share(c, node->total, nodes[CALLTREE_ROOT].total, true);
		break;
	case COL_SELF:
		cell_share(c, node->self, nodes[CALLTREE_ROOT].total, false);
		break;
	case COL_PART:
		cell_share(c, node->total, nodes[node->parent].total, false);
		break;
	case COL_MODULE:
		cell_text(c, ROLE_DIM, row->folded ? "" : tree_node_module(ui, node));
		break;
	default:
		cell_node(ui, c, row);
		break;
	}
}

/* ---- Keys ---- */

void tree_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct calltree_node *node = &ui->tree.nodes[row->index];
	struct zoom z = { .kind = node->label == LABEL_PROCESS ? ZOOM_NAME : ZOOM_COMM };

	/* The root of the flame and stop reasons lead nowhere. */
	if (!row->index || node->label == LABEL_STOP)
		return;
	if (node->label == LABEL_SYMBOL) {
		zoom_add_symbol(ui, to, node->id, ui->view);
		return;
	}
	snprintf(z.comm, sizeof(z.comm), "%s", calltree_comm(&ui->tree, node->id));
	tree_node_name(ui, node, z.label, sizeof(z.label));
	zoom_add(to, &z, ui->view);
}

const char *tree_name(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	return row->folded ? "" : tree_node_name(ui, &ui->tree.nodes[row->index], dst, cap);
}
