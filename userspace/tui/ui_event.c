/* SPDX-License-Identifier: BSD-2-Clause */
/* What keys and the mouse do. */
#include <string.h>

#include "base/num.h"
#include "tui/layout.h"
#include "tui/rows.h"
#include "tui/screen.h"
#include "tui/setup.h"
#include "tui/ui_prompt.h"
#include "tui/ui_zoom.h"
#include "tui/view.h"

/* ---- Moving ---- */

static void move(struct ui *ui, enum action act)
{
	struct layout l = layout_lines(ui->view, ui->h);
	size_t at = ui->pos[ui->view].cursor, page = l.nbody > 1 ? (size_t)l.nbody - 1 : 1;

	switch (act) {
	case ACT_UP:
		at -= at > 0;
		break;
	case ACT_DOWN:
		at++;
		break;
	case ACT_PAGE_UP:
		at -= at < page ? at : page;
		break;
	case ACT_PAGE_DOWN:
		at += page;
		break;
	case ACT_LAST:
		at = ui->nrows;
		break;
	default:
		at = 0;
		break;
	}
	ui_move_to(ui, at);
}

/* Moves to the row that is next to the current one. */
static void move_picture(struct ui *ui, enum action act)
{
	ui_move_to(ui, view_at(ui->view)->neighbour(ui, act));
}

static void next_match(struct ui *ui)
{
	size_t at = ui->pos[ui->view].cursor;
	bool list = view_at(ui->view)->compare;

	if (!ui->filter[0]) {
		ui_say(ui, false, "no filter is set: press / to set one");
		return;
	}
	for (size_t i = 1; i <= ui->nrows; i++) {
		size_t row = (at + i) % ui->nrows;

		if (list || ui->rows[row].match) {
			ui_move_to(ui, row);
			return;
		}
	}
	ui_say(ui, false, "no row matches the filter");
}

/* ---- Order and opening ---- */

static void sort_by(struct ui *ui, unsigned int by, bool invert)
{
	ui->pos[ui->view].sort = by;
	ui->pos[ui->view].invert = invert;
	ui_rearrange(ui);
	ui_move_to(ui, 0);
}

static void sort_step(struct ui *ui, int step)
{
	struct column_at cols[COLUMNS_MAX];
	int n = (int)layout_columns(ui, ui->w, cols), at = 0;

	for (int i = 0; i < n; i++)
		if (cols[i].id == ui->pos[ui->view].sort)
			at = i;
	sort_by(ui, cols[(at + step + n) % n].id, false);
}

static void open_all(struct ui *ui, bool open)
{
	keyset_free(&ui->opened);
	ui->open_share = open ? 0 : 101;
	ui_rearrange(ui);
}

/* ---- The rest ---- */

static struct profile *copy_of(const struct profile *p)
{
	struct profile *copy = p ? profile_new() : NULL;

	if (!copy || !profile_merge(copy, p))
		return copy;
	profile_free(copy);
	return NULL;
}

/* Marks or drops the baseline for all views at once: they show the same window. */
static void toggle_baseline(struct ui *ui)
{
	if (ui_has_baseline(ui)) {
		profile_free(ui->baseline);
		profile_free(ui->off.baseline);
		ui->baseline = ui->off.baseline = NULL;
		for (int v = 0; v < VIEW_MAX; v++)
			if (ui->pos[v].sort == COL_DIFF)
				ui->pos[v].sort = COL_SELF;
		ui_say(ui, false, "baseline off");
		ui_rearrange(ui);
		return;
	}
	profile_free(ui->baseline);
	profile_free(ui->off.baseline);
	ui->baseline = copy_of(ui->window);
	ui->off.baseline = copy_of(ui->off.window);
	if (!ui_has_baseline(ui))
		return;
	ui_say(ui, false,
	       view_at(ui->view)->time == TIME_BLOCKED
		       ? "baseline marked: DIFF is the change of TIME% in percentage points"
		       : "baseline marked: DIFF is the change of SELF% in percentage points");
	ui_set_view(ui, ui->view);
}

/* Shows the callers of a function. The cursor moves to the function there. */
static void focus_callers(struct ui *ui, uint32_t symbol)
{
	ui_set_view(ui, VIEW_CALLERS);
	for (size_t i = 0; i < ui->nrows; i++) {
		const struct calltree_node *node = &ui->tree.nodes[ui->rows[i].index];

		if (node->depth == 1 && node->id == symbol) {
			keyset_set(&ui->opened, node->path, true);
			ui_move_to(ui, i);
			ui_rearrange(ui);
			break;
		}
	}
}

static unsigned int go_to_view(struct ui *ui, enum view view)
{
	const struct view_spec *from = view_at(ui->view);
	const struct ui_row *row = ui_current(ui);

	/* A cursor on the first row was not moved there to pick the row. */
	if (view == VIEW_CALLERS && from->compare && from->annotates && row && row != ui->rows)
		focus_callers(ui, row->symbol);
	else
		ui_set_view(ui, view);
	return UI_DRAW;
}

static void toggle_follow(struct ui *ui)
{
	struct ui_position *pos = &ui->pos[ui->view];
	const struct ui_row *row = ui_current(ui);

	pos->follow = row && !pos->follow;
	if (row)
		pos->key = row->key;
}

static void toggle_kernel(struct ui *ui)
{
	if (ui->sel.kernel_only) {
		ui_say(ui, false, "-K is given: there are only kernel frames");
		return;
	}
	ui->sel.user_only = !ui->sel.user_only;
	ui_set_view(ui, ui->view);
}

/* Actions that only move or rearrange. */
static unsigned int act_on_rows(struct ui *ui, enum action act)
{
	switch (act) {
	case ACT_LEFT:
	case ACT_RIGHT:
	case ACT_DEEPER:
	case ACT_OUTER:
		move_picture(ui, act);
		break;
	case ACT_OPEN:
	case ACT_CLOSE:
	case ACT_TOGGLE:
		ui_open_row(ui, act);
		break;
	case ACT_OPEN_ALL:
	case ACT_CLOSE_ALL:
		open_all(ui, act == ACT_OPEN_ALL);
		break;
	case ACT_SORT_NEXT:
	case ACT_SORT_PREV:
		sort_step(ui, act == ACT_SORT_NEXT ? 1 : -1);
		break;
	case ACT_SORT_SELF:
		sort_by(ui, COL_SELF, false);
		break;
	case ACT_SORT_TOTAL:
		sort_by(ui, COL_TOTAL, false);
		break;
	case ACT_SORT_PID:
		sort_by(ui, COL_PID, false);
		break;
	case ACT_INVERT:
		sort_by(ui, ui->pos[ui->view].sort, !ui->pos[ui->view].invert);
		break;
	case ACT_NEXT_MATCH:
		next_match(ui);
		break;
	case ACT_ANNOTATE:
		annotate_open(ui);
		break;
	case ACT_FOLLOW:
		toggle_follow(ui);
		break;
	default:
		move(ui, act);
		break;
	}
	return UI_DRAW;
}

static unsigned int toggle_pause(struct ui *ui)
{
	ui->paused = !ui->paused;
	return ui->paused ? UI_DRAW : UI_DRAW | UI_RESUMED;
}

static unsigned int next_window(struct ui *ui)
{
	ui->span = (ui->span + 1) % LIVE_SPANS;
	return UI_DRAW | UI_WINDOW;
}

static enum ui_prompt prompt_of(enum action action)
{
	return action == ACT_FILTER  ? PROMPT_FILTER
	       : action == ACT_DELAY ? PROMPT_DELAY
	       : action == ACT_CPU   ? PROMPT_CPU
	       : action == ACT_USER  ? PROMPT_USER
				     : PROMPT_SEARCH;
}

static unsigned int act(struct ui *ui, enum action action)
{
	switch (action) {
	case ACT_NONE:
		return 0;
	case ACT_QUIT:
		return UI_QUIT;
	case ACT_HELP:
		ui->help = true;
		ui->help_scroll = 0;
		return UI_DRAW;
	case ACT_NEXT_VIEW:
		return go_to_view(ui, (ui->view + 1) % VIEW_MAX);
	case ACT_PREV_VIEW:
		return go_to_view(ui, (ui->view + VIEW_MAX - 1) % VIEW_MAX);
	case ACT_TREE:
		return go_to_view(ui, VIEW_TREE);
	case ACT_ENTER:
		ui_zoom(ui);
		return UI_DRAW;
	case ACT_BACK:
		return ui_zoom_back(ui) ? UI_DRAW : 0;
	case ACT_FILTER:
	case ACT_DELAY:
	case ACT_CPU:
	case ACT_USER:
	case ACT_SEARCH:
		return ui_ask(ui, prompt_of(action));
	case ACT_SIGNAL:
		return ui_ask_signal(ui);
	case ACT_SETUP:
		return setup_open(ui);
	case ACT_HIDE_KERNEL:
		toggle_kernel(ui);
		return UI_DRAW;
	case ACT_HIDE_IDLE:
		ui->sel.no_idle = !ui->sel.no_idle;
		ui_set_view(ui, ui->view);
		return UI_DRAW;
	case ACT_CPU_NEXT:
	case ACT_CPU_PREV:
		ui_show_cpu(ui, (ui->sel.cpu1 + (action == ACT_CPU_NEXT ? 1 : ui->gauges.ncpus)) %
					(ui->gauges.ncpus + 1));
		return UI_DRAW;
	case ACT_PAUSE:
		return toggle_pause(ui);
	case ACT_RESET:
		return UI_DRAW | UI_RESET;
	case ACT_WINDOW:
		return next_window(ui);
	case ACT_BASELINE:
		toggle_baseline(ui);
		return UI_DRAW;
	case ACT_WRITE:
		return UI_DRAW | UI_WRITE;
	case ACT_REDRAW:
		return UI_DRAW | UI_REPAINT;
	default:
		return act_on_rows(ui, action);
	}
}

static unsigned int help_key(struct ui *ui, uint32_t key)
{
	size_t page = ui->h > 4 ? (size_t)ui->h - 3 : 1,
	       end = help_lines() > page ? help_lines() - page : 0;

	if (key == K_DOWN || key == 'j')
		ui->help_scroll++;
	else if (key == K_PAGE_DOWN || key == ' ')
		ui->help_scroll += page;
	else if (key == K_UP || key == 'k')
		ui->help_scroll -= ui->help_scroll > 0;
	else if (key == K_PAGE_UP)
		ui->help_scroll -= ui->help_scroll < page ? ui->help_scroll : page;
	else
		ui->help = false;
	if (ui->help_scroll > end)
		ui->help_scroll = end;
	return UI_DRAW;
}

/* ---- Events ---- */

static unsigned int click_body(struct ui *ui, const struct ui_event *ev, size_t line)
{
	const struct view_spec *view = view_at(ui->view);
	const struct ui_position *pos = &ui->pos[ui->view];
	size_t row = pos->scroll + line, before = pos->cursor;

	if (view->draw)
		row = view->row_at(ui, ev->x, row);
	if (row >= ui->nrows)
		return 0;
	ui_move_to(ui, row);
	/* The first click selects a row; the second one zooms into it. */
	if (ev->mouse == MOUSE_DOUBLE || (view->draw && row == before))
		ui_zoom(ui);
	return UI_DRAW;
}

static unsigned int click(struct ui *ui, const struct ui_event *ev)
{
	struct layout l = layout_lines(ui->view, ui->h);
	const struct ui_position *pos = &ui->pos[ui->view];
	struct column_at cols[COLUMNS_MAX];
	size_t n;

	if (ev->y == l.tabs && screen_tab_at(ui, ev->x) != VIEW_MAX)
		return go_to_view(ui, screen_tab_at(ui, ev->x));
	if (ev->y == l.bar)
		return act(ui, screen_bar_at(ui, ev->x));
	if (ev->y == l.title && view_at(ui->view)->compare) {
		n = layout_columns(ui, ui->w, cols);
		for (size_t i = 0; i < n; i++) {
			if (ev->x >= cols[i].x + cols[i].width)
				continue;
			sort_by(ui, cols[i].id, cols[i].id == pos->sort && !pos->invert);
			return UI_DRAW;
		}
	}
	if (ev->y >= l.body && ev->y < l.body + l.nbody)
		return click_body(ui, ev, (size_t)(ev->y - l.body));
	return 0;
}

static unsigned int mouse(struct ui *ui, const struct ui_event *ev)
{
	bool picture = view_at(ui->view)->draw;

	if (ui->prompt || ui->setup)
		return 0;
	if (ui->annotate.open && !ui->help)
		return annotate_mouse(ui, ev);
	if (ui->help) {
		if (ev->mouse == MOUSE_WHEEL_UP || ev->mouse == MOUSE_WHEEL_DOWN)
			return help_key(ui, ev->mouse == MOUSE_WHEEL_UP ? K_UP : K_DOWN);
		ui->help = false;
		return UI_DRAW;
	}
	ui->message[0] = 0;
	switch (ev->mouse) {
	case MOUSE_WHEEL_UP:
	case MOUSE_WHEEL_DOWN:
		for (int i = 0; i < 3 && !picture; i++)
			move(ui, ev->mouse == MOUSE_WHEEL_UP ? ACT_UP : ACT_DOWN);
		if (picture)
			move_picture(ui, ev->mouse == MOUSE_WHEEL_UP ? ACT_OUTER : ACT_DEEPER);
		return UI_DRAW;
	default:
		return click(ui, ev);
	}
}

unsigned int ui_event(struct ui *ui, const struct ui_event *ev)
{
	enum action action;
	bool had_message = ui->message[0];

	if (ev->mouse != MOUSE_NONE)
		return mouse(ui, ev);
	if (!ev->key)
		return 0;
	ui->message[0] = 0;
	if (ui->prompt)
		return ui_type(ui, ev->key);
	if (ui->help)
		return help_key(ui, ev->key);
	if (ui->setup)
		return setup_key(ui, ev->key);
	if (ui->annotate.open)
		return annotate_key(ui, ev->key);
	if (ev->key >= '1' && ev->key < '1' + VIEW_MAX)
		return go_to_view(ui, (enum view)(ev->key - '1'));
	action = keys_find(ev->key, ui->view);
	return act(ui, action) | (had_message ? UI_DRAW : 0);
}
