/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flame: callers above, callees below, with widths proportional to their share. The last line
 * describes the frame under the cursor.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tui/rows.h"
#include "tui/screen.h"

/* By a hash of the name, so that neighbours differ and a name keeps its colour. */
static enum role shade(const char *name, const struct ui_row *row)
{
	size_t n = strlen(name);

	if (row->match)
		return ROLE_MATCH;
	if (n > 4 && strcmp(name + n - 4, "_[k]") == 0)
		return ROLE_FLAME_KERNEL;
	return (enum role)(ROLE_FLAME + hash_stable(name, n) % (ROLE_FLAME_LAST - ROLE_FLAME + 1));
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
		rows_node_name(ui, &ui->tree.nodes[row->index], name, sizeof(name));
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
		const char *module = rows_node_module(ui, node);

		snprintf(text, sizeof(text), "%.1f%%  self %.1f%%  %s%s%s",
			 ui_share(node->total, sum), ui_share(node->self, sum),
			 rows_node_name(ui, node, name, sizeof(name)), *module ? "  in " : "",
			 module);
	}
	grid_fill(g, 0, y, g->w, ROLE_TITLE, ' ');
	grid_fit(g, 0, y, g->w, ROLE_TITLE, text);
}

void draw_flame(const struct ui *ui, struct grid *g, const struct layout *l)
{
	const struct ui_position *pos = &ui->pos[VIEW_FLAME];
	int lines = l->nbody - 1;

	for (size_t i = 0; i < ui->nrows; i++) {
		const struct ui_row *row = &ui->rows[i];

		if (row->indent >= pos->scroll &&
		    row->indent < pos->scroll + (size_t)(lines > 0 ? lines : 0))
			draw_box(ui, g, row, l->body + row->indent - (int)pos->scroll,
				 i == pos->cursor);
	}
	if (l->nbody > 0 && ui_current(ui))
		draw_current(ui, g, l->body + l->nbody - 1);
}
