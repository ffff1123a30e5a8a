/* SPDX-License-Identifier: BSD-2-Clause */
/* Views that are tables: the titles of the columns, and the rows. */
#include <stdio.h>

#include "tui/draw_cell.h"
#include "tui/screen.h"
#include "tui/view.h"

void draw_titles(const struct ui *ui, struct grid *g, const struct layout *l)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	struct column_at cols[COLUMNS_MAX];
	size_t n = layout_columns(ui, g->w, cols);
	bool list = view_at(ui->view)->compare;

	grid_fill(g, 0, l->title, g->w, ROLE_TITLE, ' ');
	for (size_t i = 0; i < n; i++) {
		bool on = list && cols[i].id == pos->sort;
		struct cell_at c = { g, &cols[i], l->title };
		char text[64];

		/* A character marks the sort column, because there may be no colours. */
		snprintf(text, sizeof(text), "%s%s", cols[i].title,
			 !on	       ? ""
			 : g->unicode  ? pos->invert ? "\u25b4" : "\u25be"
			 : pos->invert ? "^"
				       : "v");
		cell_text(&c, on ? ROLE_TITLE_ON : ROLE_TITLE, text);
	}
}

void draw_table(const struct ui *ui, struct grid *g, const struct layout *l)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	struct column_at cols[COLUMNS_MAX];
	size_t n = layout_columns(ui, g->w, cols);

	for (int y = 0; y < l->nbody && pos->scroll + (size_t)y < ui->nrows; y++) {
		size_t at = pos->scroll + (size_t)y;

		for (size_t i = 0; i < n; i++) {
			struct cell_at c = { g, &cols[i], l->body + y };

			view_at(ui->view)->cell(ui, &c, &ui->rows[at]);
		}
		if (at == pos->cursor)
			grid_role(g, 0, l->body + y, g->w, ROLE_CURSOR);
	}
}
