/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/rows.h"
#include "tui/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* ---- The change since the baseline ---- */

static int by_key(const void *a, const void *b)
{
	return rows_compare(((const struct baseline_row *)a)->key,
			    ((const struct baseline_row *)b)->key);
}

static int compare_with_baseline(struct ui *ui)
{
	const struct view_spec *view = view_at(ui->view);
	bool off = view->time == TIME_BLOCKED;
	uint64_t sum = off ? ui->off.now.ns : ui->census.sum,
		 sum_then = off ? ui->off.before.ns : ui->before.sum;
	struct baseline_row *v = NULL;
	size_t n = 0, cap = 0;

	if (!view->baseline || !ui_has_baseline(ui))
		return 0;
	for (;; n++) {
		if (vec_reserve(&v, &cap, n + 1, sizeof(*v))) {
			free(v);
			return -ENOMEM;
		}
		if (!view->baseline(ui, n, &v[n]))
			break;
	}
	qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 0; i < ui->nrows; i++) {
		struct ui_row *row = &ui->rows[i];
		const struct baseline_row key = { .key = row->key },
					  *then = bsearch(&key, v, n, sizeof(*v), by_key);

		row->diff = ui_share(row->self, sum) - ui_share(then ? then->self : 0, sum_then);
	}
	free(v);
	return 0;
}

static int insert_parts(struct ui *ui)
{
	size_t n = ui->nrows;
	struct ui_row *top = n ? malloc(n * sizeof(*top)) : NULL, *row;
	int err = n && !top ? -ENOMEM : 0;
	struct hot_list hot = { 0 };

	if (top)
		memcpy(top, ui->rows, n * sizeof(*top));
	ui->nrows = 0;
	for (size_t i = 0; i < n && !err; i++) {
		row = rows_add(ui, 0, 0);
		if (!row) {
			err = -ENOMEM;
			break;
		}
		*row = top[i];
		if (top[i].opening == ROW_OPEN)
			err = view_at(ui->view)->add_parts(ui, &top[i], &hot);
	}
	free(hot.v);
	free(top);
	return err;
}

/* Compares rows of a list for qsort_r; ctx is the ui. */
static int by_column(const void *a, const void *b, void *ctx)
{
	const struct ui_row *x = a, *y = b;
	const struct ui *ui = ctx;
	const struct ui_position *pos = &ui->pos[ui->view];
	int c = 0;

	if (pos->sort == COL_DIFF)
		c = x->diff < y->diff ? -1 : x->diff > y->diff;
	if (!c)
		c = view_at(ui->view)->compare(ui, pos->sort, x, y);
	return pos->invert ? c : -c;
}

static int list_rows(struct ui *ui)
{
	int err = view_at(ui->view)->rows(ui);

	if (!err)
		err = compare_with_baseline(ui);
	if (!err && ui->nrows)
		qsort_r(ui->rows, ui->nrows, sizeof(*ui->rows), by_column, ui);
	if (!err && view_at(ui->view)->add_parts)
		err = insert_parts(ui);
	return err;
}

/* Moves the cursor with its row. A cursor on the first row stays there, unless it follows. */
static void anchor(struct ui *ui)
{
	struct ui_position *pos = &ui->pos[ui->view];

	if (pos->cursor || pos->follow) {
		for (size_t i = 0; i < ui->nrows; i++) {
			if (ui->rows[i].key == pos->key) {
				pos->cursor = i;
				return;
			}
		}
	}
	if (pos->cursor >= ui->nrows)
		pos->cursor = ui->nrows ? ui->nrows - 1 : 0;
	if (ui->nrows && !pos->follow)
		pos->key = ui->rows[pos->cursor].key;
}

int rows_build(struct ui *ui)
{
	int err = 0;

	ui->nrows = 0;
	if (view_at(ui->view)->compare)
		err = list_rows(ui);
	else if (ui->tree.n)
		err = view_at(ui->view)->rows(ui);
	if (err)
		ui->nrows = 0;
	anchor(ui);
	return err;
}
