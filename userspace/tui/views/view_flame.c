/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flame: callers above, callees below, with widths proportional to their share. The last line
 * describes the frame under the cursor.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tui/rows.h"
#include "tui/tree.h"
#include "tui/view.h"

/* ---- Rows ---- */

/* Compares names, so that a frame keeps its position across refreshes. */
static int cmp_names(const void *a, const void *b, void *ctx)
{
	const struct ui *ui = ctx;
	const struct calltree_node *x = &ui->tree.nodes[*(const uint32_t *)a],
				   *y = &ui->tree.nodes[*(const uint32_t *)b];
	char nx[512], ny[512];

	return strcmp(tree_node_name(ui, x, nx, sizeof(nx)), tree_node_name(ui, y, ny, sizeof(ny)));
}

static int add_flames(struct ui *ui, uint32_t parent, int x, int width)
{
	const struct calltree *t = &ui->tree;
	uint64_t total = t->nodes[parent].total, before = 0;
	size_t n = t->nodes[parent].nchildren;
	uint32_t *children = n ? malloc(n * sizeof(*children)) : NULL;
	int err = n && !children ? -ENOMEM : 0;
	char name[512];

	n = children ? calltree_children(t, parent, children, n) : 0;
	if (n > 1)
		qsort_r(children, n, sizeof(*children), cmp_names, ui);
	for (size_t i = 0; i < n && !err; i++) {
		const struct calltree_node *node = &t->nodes[children[i]];
		int from = (int)(before * (uint64_t)width / total), to;
		struct ui_row *row;

		before += node->total;
		to = (int)(before * (uint64_t)width / total);
		if (to <= from)
			continue;
		row = rows_add(ui, node->path, children[i]);
		if (!row) {
			err = -ENOMEM;
			break;
		}
		row->indent = node->depth;
		row->x = x + from;
		row->width = to - from;
		row->match = ui->filter[0] &&
			     rows_filter(ui->filter, tree_node_name(ui, node, name, sizeof(name)));
		err = add_flames(ui, children[i], row->x, row->width);
	}
	free(children);
	return err;
}

static int flame_rows(struct ui *ui)
{
	const struct calltree_node *root = &ui->tree.nodes[CALLTREE_ROOT];
	struct ui_row *row;

	if (!root->total)
		return 0;
	row = rows_add(ui, root->path, CALLTREE_ROOT);
	if (!row)
		return -ENOMEM;
	row->width = ui->w;
	return add_flames(ui, CALLTREE_ROOT, 0, ui->w);
}

/* ---- Drawing ---- */

/* Shades by a hash of the name, so that neighbours differ and a name keeps its colour. */
static enum role shade(const char *name, const struct ui_row *row)
{
	uint64_t hash = hash_stable(name, strlen(name));

	if (row->match)
		return ROLE_MATCH;
	if (cell_is_kernel(name))
		return ROLE_FLAME_KERNEL;
	return (enum role)(ROLE_FLAME + hash % (ROLE_FLAME_LAST - ROLE_FLAME + 1));
}

static void draw_box(const struct ui *ui, struct grid *g, const struct ui_row *row, int y,
		     bool current)
{
	char name[512];
	enum role role;

	if (row->index == CALLTREE_ROOT && ui->sel.n)
		snprintf(name, sizeof(name), "%llu samples", (unsigned long long)ui->census.sum);
	else if (row->index == CALLTREE_ROOT)
		snprintf(name, sizeof(name), "all");
	else
		tree_node_name(ui, &ui->tree.nodes[row->index], name, sizeof(name));
	role = current ? ROLE_CURSOR : shade(name, row);
	grid_fill(g, row->x, y, row->width, role, ' ');
	/* A border separates neighbours even without colours. */
	if (row->width > 1)
		grid_fill(g, row->x, y, 1, role, g->unicode ? 0x258f : '|');
	if (row->width > 3)
		grid_fit(g, row->x + 1, y, row->width - 1, role, name);
}

static void draw_current(const struct ui *ui, struct grid *g, int y)
{
	const struct ui_row *row = ui_current(ui);
	const struct calltree_node *node = &ui->tree.nodes[row->index];
	uint64_t sum = ui->tree.nodes[CALLTREE_ROOT].total;
	char name[512], text[800];

	if (row->index == CALLTREE_ROOT) {
		snprintf(text, sizeof(text), "100.0%%  all %llu samples shown",
			 (unsigned long long)sum);
	} else {
		const char *module = tree_node_module(ui, node);

		snprintf(text, sizeof(text), "%.1f%%  self %.1f%%  %s%s%s",
			 ui_share(node->total, sum), ui_share(node->self, sum),
			 tree_node_name(ui, node, name, sizeof(name)), *module ? "  in " : "",
			 module);
	}
	grid_fill(g, 0, y, g->w, ROLE_TITLE, ' ');
	grid_fit(g, 0, y, g->w, ROLE_TITLE, text);
}

static void flame_draw(const struct ui *ui, struct grid *g, int y, int height)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	int lines = height - 1;

	for (size_t i = 0; i < ui->nrows; i++) {
		const struct ui_row *row = &ui->rows[i];

		if (row->indent >= pos->scroll &&
		    row->indent < pos->scroll + (size_t)(lines > 0 ? lines : 0))
			draw_box(ui, g, row, y + row->indent - (int)pos->scroll, i == pos->cursor);
	}
	if (height > 0 && ui_current(ui))
		draw_current(ui, g, y + height - 1);
}

/* ---- Keys ---- */

/* Rows come parents first, left to right. */
static size_t flame_neighbour(const struct ui *ui, enum action act)
{
	size_t at = ui->pos[ui->view].cursor, best = at;
	const struct ui_row *from = ui_current(ui);

	for (size_t i = 0; i < ui->nrows && from; i++) {
		const struct ui_row *row = &ui->rows[i];
		bool above = row->x <= from->x && row->x + row->width >= from->x + from->width;
		bool below = row->x >= from->x && row->x + row->width <= from->x + from->width;

		if (act == ACT_OUTER && row->indent + 1 == from->indent && above)
			best = i;
		if (act == ACT_DEEPER && row->indent == from->indent + 1 && below &&
		    (best == at || row->width > ui->rows[best].width))
			best = i;
		if (act == ACT_LEFT && row->indent == from->indent && row->x < from->x)
			best = i;
		if (act == ACT_RIGHT && row->indent == from->indent && row->x > from->x &&
		    best == at)
			best = i;
	}
	return best;
}

static size_t flame_row_at(const struct ui *ui, int x, size_t depth)
{
	for (size_t i = 0; i < ui->nrows; i++) {
		const struct ui_row *row = &ui->rows[i];

		if (row->indent == depth && x >= row->x && x < row->x + row->width)
			return i;
	}
	return ui->nrows;
}

const struct view_spec view_flame = {
	.title = "Flame",
	.finds = VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION,
	.order = CALLTREE_TOP_DOWN,
	.rows = flame_rows,
	.zoom = tree_zoom,
	.name = tree_name,
	.draw = flame_draw,
	.neighbour = flame_neighbour,
	.row_at = flame_row_at,
};
