/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions: by their own samples. */
#include <errno.h>
#include <string.h>

#include "tui/draw_cell.h"
#include "tui/rows.h"
#include "tui/view.h"
#include "tui/zoom.h"

enum { COL_KERNEL = COL_OWN, COL_FUNCTION, COL_MODULE };

static const struct column_spec columns[] = {
	{ COL_SELF, "SELF%", 7, 7, 0, 0 },
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, 0 },
	{ COL_KERNEL, "KERN%", 7, 7, 60, 0 },
	{ COL_DIFF, "DIFF", 7, 7, 50, 0 },
	{ COL_FUNCTION, "FUNCTION", 0, 0, 0, COLUMN_LEFT },
	{ COL_MODULE, "MODULE", 18, 28, 60, COLUMN_LEFT },
	{ 0 },
};

static const struct census_function *function_of(const struct ui *ui, const struct ui_row *row)
{
	return &ui->census.functions[row->index];
}

static int functions_rows(struct ui *ui)
{
	for (size_t i = 0; i < ui->census.nfunctions; i++) {
		const struct census_function *f = &ui->census.functions[i];
		struct ui_row *row;

		if (!rows_filter(ui->filter, f->name) && !rows_filter(ui->filter, f->module))
			continue;
		row = rows_add(ui, f->symbol, (uint32_t)i);
		if (!row)
			return -ENOMEM;
		row->symbol = f->symbol;
		row->self = f->self;
	}
	return 0;
}

static void functions_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct census_function *f = function_of(ui, row);

	switch (c->col->id) {
	case COL_SELF:
		cell_share(c, f->self, ui->census.sum, true);
		break;
	case COL_TOTAL:
		cell_share(c, f->total, ui->census.sum, false);
		break;
	case COL_KERNEL:
		cell_share(c, f->kernel, f->total, false);
		break;
	case COL_DIFF:
		cell_diff(c, row->diff);
		break;
	case COL_MODULE:
		cell_text(c, ROLE_DIM, f->module);
		break;
	default:
		cell_name(c, f->name);
		break;
	}
}

static int functions_compare(const struct ui *ui, unsigned int by, const struct ui_row *a,
			     const struct ui_row *b)
{
	const struct census_function *x = function_of(ui, a), *y = function_of(ui, b);
	int c = 0;

	if (by == COL_TOTAL)
		c = rows_compare(x->total, y->total);
	else if (by == COL_KERNEL)
		c = rows_compare_shares(x->kernel, x->total, y->kernel, y->total);
	else if (by == COL_MODULE)
		c = strcmp(y->module, x->module);
	else if (by == COL_FUNCTION)
		c = strcmp(y->name, x->name);
	c = c ? c : rows_compare(x->self, y->self);
	c = c ? c : rows_compare(x->total, y->total);
	c = c ? c : strcmp(y->name, x->name);
	return c ? c : strcmp(y->module, x->module);
}

static bool functions_baseline(const struct ui *ui, size_t i, struct baseline_row *ret)
{
	const struct census *c = &ui->before;

	if (i < c->nfunctions)
		*ret = (struct baseline_row){ c->functions[i].symbol, c->functions[i].self };
	return i < c->nfunctions;
}

static void functions_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	zoom_add_symbol(ui, to, function_of(ui, row)->symbol, VIEW_CALLERS);
}

const struct view_spec view_functions = {
	.title = "Functions",
	.finds = VIEW_FINDS_FUNCTION | VIEW_FINDS_MODULE,
	.census = CENSUS_FUNCTIONS,
	.rows = functions_rows,
	.zoom = functions_zoom,
	.annotates = true,
	.columns = columns,
	.cell = functions_cell,
	.compare = functions_compare,
	.baseline = functions_baseline,
};
