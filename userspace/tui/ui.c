/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "prof/process_users.h"
#include "tui/layout.h"
#include "tui/rows.h"
#include "tui/view.h"

#define OPEN_SHARE 5.0 /* percent: tree rows from this share on start opened */

static void set_positions(struct ui *ui)
{
	for (int v = 0; v < VIEW_MAX; v++)
		ui->pos[v] = (struct ui_position){ .sort = COL_SELF };
}

void ui_init(struct ui *ui, struct symbolizer *symbols, const struct modules *modules)
{
	*ui = (struct ui){
		.symbols = symbols,
		.modules = modules,
		.open_share = OPEN_SHARE,
		.delay_ns = NUM_S,
		.w = 80,
		.h = 24,
		.gauges.what = "",
		.sel.no_idle = true,
	};
	set_positions(ui);
}

void ui_free(struct ui *ui)
{
	process_users_free(ui->sel.users);
	census_free(&ui->census);
	census_free(&ui->before);
	calltree_free(&ui->tree);
	profile_free(ui->baseline);
	keyset_free(&ui->opened);
	profile_free(ui->off.baseline);
	blocked_free(&ui->off.now);
	blocked_free(&ui->off.before);
	wall_free(&ui->off.wall);
	annotate_close(&ui->annotate);
	free(ui->rows);
	*ui = (struct ui){ 0 };
}

void ui_say(struct ui *ui, bool bad, const char *text)
{
	text_clean(ui->message, sizeof(ui->message), text, strlen(text), 0);
	ui->message_bad = bad;
}

/* Keeps the cursor on the screen. */
static void scroll(struct ui *ui)
{
	struct layout l = layout_lines(ui->view, ui->h);
	struct ui_position *pos = &ui->pos[ui->view];
	size_t page = l.nbody > 0 ? (size_t)l.nbody : 1, at = pos->cursor, end = ui->nrows;

	if (view_at(ui->view)->draw) { /* a picture scrolls by depth */
		page -= page > 1;      /* the last line describes the current frame */
		at = ui->nrows ? ui->rows[pos->cursor].indent : 0;
		end = at + 1;
		for (size_t i = 0; i < ui->nrows; i++)
			end = ui->rows[i].indent >= end ? ui->rows[i].indent + 1u : end;
	}
	if (pos->scroll > at)
		pos->scroll = at;
	if (at >= pos->scroll + page)
		pos->scroll = at - page + 1;
	if (pos->scroll + page > end)
		pos->scroll = end > page ? end - page : 0;
}

/* Everything derived from the window, the zoom and the view. */
static int rebuild(struct ui *ui)
{
	const struct view_spec *view = view_at(ui->view);
	unsigned int tables = ui->all_tables ? CENSUS_FUNCTIONS | CENSUS_PROCESSES : view->census;
	int (*count)(struct ui *);
	int err;

	ui->nrows = 0;
	if (!ui->window)
		return 0;
	/* Batch mode has the blocked stacks on each page. */
	count = ui->all_tables && ui->off.window ? view_at(VIEW_OFFCPU)->count : view->count;
	err = count ? count(ui) : 0;
	if (!err)
		err = census_build(&ui->census, ui->window, ui->symbols, ui->modules, &ui->sel,
				   tables);
	if (!err && ui->baseline)
		err = census_build(&ui->before, ui->baseline, ui->symbols, ui->modules, &ui->sel,
				   tables);
	if (!err && !view->compare)
		err = calltree_build(&ui->tree, ui->window, ui->symbols, &ui->sel, view->order);
	if (!err)
		err = rows_build(ui);
	annotate_count(ui);
	scroll(ui);
	return err;
}

void ui_rearrange(struct ui *ui)
{
	if (ui->window)
		rows_build(ui);
	scroll(ui);
}

void ui_set_offcpu(struct ui *ui, struct profile *window, const struct live_sum *sum)
{
	if (!window) { /* the rows refer to the old window */
		blocked_free(&ui->off.now);
		wall_free(&ui->off.wall);
		ui->nrows = ui_needs_offcpu(ui) ? 0 : ui->nrows;
	}
	ui->off.window = window;
	ui->off.sum = window ? *sum : (struct live_sum){ 0 };
}

int ui_refresh(struct ui *ui, struct profile *window, const struct live_sum *sum)
{
	ui->window = window;
	ui->sum = *sum;
	return rebuild(ui);
}

void ui_resize(struct ui *ui, int w, int h)
{
	ui->w = w;
	ui->h = h;
	ui_rearrange(ui);
}

void ui_set_view(struct ui *ui, enum view view)
{
	ui->view = view;
	if (rebuild(ui))
		ui_say(ui, true, "out of memory: this view is incomplete");
}

void ui_move_to(struct ui *ui, size_t row)
{
	struct ui_position *pos = &ui->pos[ui->view];

	if (!ui->nrows)
		return;
	pos->cursor = row < ui->nrows ? row : ui->nrows - 1;
	pos->key = ui->rows[pos->cursor].key;
	scroll(ui);
}

/* The parent of the row under the cursor; the row itself if it has none. */
static size_t parent_row(const struct ui *ui)
{
	size_t at = ui->pos[ui->view].cursor;
	const struct ui_row *row = ui_current(ui);
	uint32_t parent;

	if (view_at(ui->view)->compare) {
		for (unsigned int indent = row->indent;
		     at && indent && ui->rows[at].indent >= indent;)
			at--;
		return at;
	}
	for (parent = ui->tree.nodes[row->index].parent; parent != CALLTREE_NONE;
	     parent = ui->tree.nodes[parent].parent)
		for (size_t i = at; i-- > 0;)
			if (ui->rows[i].index == parent && !ui->rows[i].folded)
				return i;
	return at;
}

void ui_open_row(struct ui *ui, enum action act)
{
	const struct ui_row *row = ui_current(ui);
	bool open;

	if (!row)
		return;
	open = act == ACT_OPEN || (act == ACT_TOGGLE && row->opening != ROW_OPEN);
	if (row->opening == (open ? ROW_OPEN : ROW_CLOSED) || row->opening == ROW_LEAF) {
		if (!open && act == ACT_CLOSE)
			ui_move_to(ui, parent_row(ui));
		return;
	}
	keyset_set(&ui->opened, row->key, open);
	ui_rearrange(ui);
}
