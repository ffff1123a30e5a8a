/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/ui.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "tui/rows.h"
#include "tui/screen.h"

#define OPEN_SHARE 5.0			/* percent: what is hotter is open by itself */

static void set_positions(struct ui *ui)
{
	for (int v = 0; v < VIEW_MAX; v++)
		ui->pos[v] = (struct ui_position){ .sort = COL_SELF };
}

void ui_init(struct ui *ui, struct symbolizer *symbols, const struct modules *modules)
{
	*ui = (struct ui){
		.symbols = symbols, .modules = modules, .open_share = OPEN_SHARE, .delay_ns = NUM_S, .w = 80, .h = 24,
		.gauges.what = "",
	};
	set_positions(ui);
}

void ui_free(struct ui *ui)
{
	census_free(&ui->census);
	census_free(&ui->before);
	calltree_free(&ui->tree);
	profile_free(ui->baseline);
	keyset_free(&ui->opened);
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
	struct layout l = screen_layout(ui->view, ui->w, ui->h);
	struct ui_position *pos = &ui->pos[ui->view];
	size_t page = l.nbody > 0 ? (size_t)l.nbody : 1, at = pos->cursor, end = ui->nrows;

	if (ui->view == VIEW_FLAME) {		/* scrolls by depth */
		page -= page > 1;		/* its last line is not one of the flame */
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

/* Everything that follows from the window, the zoom and the view. */
static int rebuild(struct ui *ui)
{
	static const unsigned int tables_of[VIEW_MAX] = {
		[VIEW_FUNCTIONS] = CENSUS_FUNCTIONS, [VIEW_PROCESSES] = CENSUS_PROCESSES, [VIEW_MODULES] = CENSUS_MODULES,
	};
	enum calltree_order order = ui->view == VIEW_CALLERS ? CALLTREE_BOTTOM_UP : CALLTREE_TOP_DOWN;
	unsigned int tables = ui->all_tables ? CENSUS_FUNCTIONS | CENSUS_PROCESSES : tables_of[ui->view];
	int err;

	ui->nrows = 0;
	if (!ui->window)
		return 0;
	err = census_build(&ui->census, ui->window, ui->symbols, ui->modules, &ui->sel, tables);
	if (!err && ui->baseline)
		err = census_build(&ui->before, ui->baseline, ui->symbols, ui->modules, &ui->sel, tables);
	if (!err && !(IN(ui->view) & IN_LISTS))
		err = calltree_build(&ui->tree, ui->window, ui->symbols, &ui->sel, order);
	if (!err)
		err = rows_build(ui);
	scroll(ui);
	return err;
}

/* Rows only: the filter, the order, what is open. */
static void rearrange(struct ui *ui)
{
	if (ui->window)
		rows_build(ui);
	scroll(ui);
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
	rearrange(ui);
}

static void refuse(struct ui *ui, int err)
{
	if (err)
		ui_say(ui, true, "out of memory: this view is not complete");
}

static void set_view(struct ui *ui, enum view view)
{
	ui->view = view;
	refuse(ui, rebuild(ui));
}

/* ---- Zooming ---- */

static bool zoom_into(struct ui *ui, const struct zoom *z, enum view view)
{
	unsigned int n = ui->sel.n;

	if (n == ZOOM_MAX) {
		ui_say(ui, false, "cannot zoom any deeper");
		return false;
	}
	for (unsigned int i = 0; i < n; i++) {
		const struct zoom *have = &ui->sel.levels[i];

		if (have->kind == z->kind && have->id == z->id && memcmp(have->comm, z->comm, sizeof(z->comm)) == 0) {
			ui_say(ui, false, "that is where you are");
			return false;
		}
	}
	ui->came_from[n].view = ui->view;
	memcpy(ui->came_from[n].pos, ui->pos, sizeof(ui->pos));
	ui->sel.levels[n] = *z;
	ui->sel.n++;
	for (int v = 0; v < VIEW_MAX; v++) {
		ui->pos[v].cursor = ui->pos[v].scroll = 0;
		ui->pos[v].follow = false;
	}
	ui->filter[0] = 0;
	set_view(ui, view);
	return true;
}

static bool zoom_back(struct ui *ui)
{
	unsigned int n = ui->sel.n;

	if (ui->filter[0]) {
		ui->filter[0] = 0;
		rearrange(ui);
		return true;
	}
	if (!n)
		return false;
	ui->sel.n--;
	memcpy(ui->pos, ui->came_from[n - 1].pos, sizeof(ui->pos));
	set_view(ui, ui->came_from[n - 1].view);
	return true;
}

static void zoom_symbol(struct ui *ui, uint32_t symbol, enum view view)
{
	struct zoom z = { .kind = ZOOM_FUNCTION, .id = symbol };

	snprintf(z.label, sizeof(z.label), "%s", symbolizer_name(ui->symbols, symbol));
	zoom_into(ui, &z, view);
}

static void zoom_process(struct ui *ui, const struct ui_row *row)
{
	const struct census_process *p = rows_process(ui, row);
	struct zoom z = { .kind = ZOOM_PROCESS, .id = p->pid };
	char comm[SF_COMM * 3 + 1];

	if (row->thread)
		memcpy(z.comm, p->comm, sizeof(z.comm));
	text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
	snprintf(z.label, sizeof(z.label), "%s (%u)", comm, p->pid);
	zoom_into(ui, &z, VIEW_FUNCTIONS);
}

static void zoom_module(struct ui *ui, const struct census_module *m)
{
	struct zoom z = { .kind = ZOOM_MODULE, .id = m->index };

	if (!m->total) {
		ui_say(ui, false, "no samples in it");
		return;
	}
	rows_module_name(m, z.label, sizeof(z.label));
	zoom_into(ui, &z, VIEW_FUNCTIONS);
}

static void zoom_node(struct ui *ui, const struct calltree_node *node)
{
	struct zoom z = { .kind = ZOOM_COMM, .id = 0 };

	if (node->label == LABEL_SYMBOL) {
		zoom_symbol(ui, node->id, ui->view);
	} else if (node->label == LABEL_COMM && node->depth) {
		snprintf(z.comm, sizeof(z.comm), "%s", calltree_comm(&ui->tree, node->id));
		rows_node_name(ui, node, z.label, sizeof(z.label));
		zoom_into(ui, &z, ui->view);
	}
}

static void open_row(struct ui *ui, enum action act);

static void zoom(struct ui *ui)
{
	const struct ui_row *row = ui_current(ui);

	if (!row)
		return;
	switch (ui->view) {
	case VIEW_FUNCTIONS:
		zoom_symbol(ui, ui->census.functions[row->index].symbol, VIEW_CALLERS);
		break;
	case VIEW_PROCESSES:
		zoom_process(ui, row);
		break;
	case VIEW_MODULES:
		zoom_module(ui, &ui->census.modules[row->index]);
		break;
	default:
		if (row->folded)
			open_row(ui, ACT_OPEN);
		else if (row->index)		/* not the flame's own root */
			zoom_node(ui, &ui->tree.nodes[row->index]);
		break;
	}
}

/* ---- Moving ---- */

static void move_to(struct ui *ui, size_t row)
{
	struct ui_position *pos = &ui->pos[ui->view];

	if (!ui->nrows)
		return;
	pos->cursor = row < ui->nrows ? row : ui->nrows - 1;
	pos->key = ui->rows[pos->cursor].key;
	scroll(ui);
}

static void move(struct ui *ui, enum action act)
{
	struct layout l = screen_layout(ui->view, ui->w, ui->h);
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
	move_to(ui, at);
}

/* Between the flame's frames: the neighbour in that direction. Rows come parents first, left to right. */
static void move_flame(struct ui *ui, enum action act)
{
	size_t at = ui->pos[VIEW_FLAME].cursor, best = at;
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
		if (act == ACT_RIGHT && row->indent == from->indent && row->x > from->x && best == at)
			best = i;
	}
	move_to(ui, best);
}

static void next_match(struct ui *ui)
{
	size_t at = ui->pos[ui->view].cursor;
	bool list = IN(ui->view) & IN_LISTS;

	if (!ui->filter[0]) {
		ui_say(ui, false, "no filter: set one with /");
		return;
	}
	for (size_t i = 1; i <= ui->nrows; i++) {
		size_t row = (at + i) % ui->nrows;

		if (list || ui->rows[row].match) {
			move_to(ui, row);
			return;
		}
	}
	ui_say(ui, false, "nothing found");
}

/* ---- Order and opening ---- */

static void sort_by(struct ui *ui, enum column by, bool invert)
{
	ui->pos[ui->view].sort = by;
	ui->pos[ui->view].invert = invert;
	rearrange(ui);
}

static void sort_step(struct ui *ui, int step)
{
	struct column_at cols[COLUMNS_MAX];
	int n = (int)columns_lay_out(ui->view, ui->baseline != NULL, ui->w, cols), at = 0;

	for (int i = 0; i < n; i++)
		if (cols[i].id == ui->pos[ui->view].sort)
			at = i;
	sort_by(ui, cols[(at + step + n) % n].id, false);
}

/* The row that the one under the cursor belongs to. */
static size_t owner(const struct ui *ui)
{
	size_t at = ui->pos[ui->view].cursor;
	const struct ui_row *row = ui_current(ui);
	uint32_t parent;

	if (IN(ui->view) & IN_LISTS) {
		while (at && ui->rows[at].thread)
			at--;
		return at;
	}
	for (parent = ui->tree.nodes[row->index].parent; parent != CALLTREE_NONE; parent = ui->tree.nodes[parent].parent)
		for (size_t i = at; i-- > 0;)
			if (ui->rows[i].index == parent && !ui->rows[i].folded)
				return i;
	return at;
}

static void open_row(struct ui *ui, enum action act)
{
	const struct ui_row *row = ui_current(ui);
	uint64_t key;
	bool open;

	if (!row)
		return;
	open = act == ACT_OPEN || (act == ACT_TOGGLE && row->opening != ROW_OPEN);
	if (row->opening == (open ? ROW_OPEN : ROW_CLOSED) || row->opening == ROW_LEAF) {
		if (!open && act == ACT_CLOSE)
			move_to(ui, owner(ui));
		return;
	}
	key = ui->view == VIEW_PROCESSES ? rows_process_key((uint32_t)row->key) : row->key;
	keyset_set(&ui->opened, key, open);
	rearrange(ui);
}

static void open_all(struct ui *ui, bool open)
{
	keyset_free(&ui->opened);
	ui->open_share = open ? 0 : 101;
	rearrange(ui);
}

/* ---- Prompts ---- */

static void ask(struct ui *ui, enum ui_prompt prompt)
{
	ui->prompt = prompt;
	if (prompt == PROMPT_FILTER)
		memcpy(ui->typed, ui->filter, sizeof(ui->typed));
	else
		ui->typed[0] = 0;
}

static void answer(struct ui *ui)
{
	uint64_t ns;

	if (ui->prompt == PROMPT_FILTER) {
		memcpy(ui->filter, ui->typed, sizeof(ui->filter));
		rearrange(ui);
	} else if (ui->typed[0]) {
		if (num_duration(ui->typed, NUM_S, &ns) || ns < UI_DELAY_MIN || ns > UI_DELAY_MAX)
			ui_say(ui, true, "the delay is 0.1 to 3600 seconds");
		else
			ui->delay_ns = ns;
	}
	ui->prompt = PROMPT_NONE;
}

static void type(struct ui *ui, uint32_t key)
{
	size_t n = strlen(ui->typed);

	if (key == KEY_RETURN) {
		answer(ui);
	} else if (key == KEY_ESCAPE) {
		ui->prompt = PROMPT_NONE;
	} else if (key == KEY_RUBOUT || key == 8) {
		if (n)
			ui->typed[n - 1] = 0;
	} else if (key == ('U' & 0x1f)) {
		ui->typed[0] = 0;
	} else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(ui->typed)) {
		ui->typed[n] = (char)key;
		ui->typed[n + 1] = 0;
	}
}

/* ---- The rest ---- */

static void toggle_baseline(struct ui *ui)
{
	struct profile *copy;

	if (ui->baseline) {
		profile_free(ui->baseline);
		ui->baseline = NULL;
		for (int v = 0; v < VIEW_MAX; v++)
			if (ui->pos[v].sort == COL_DIFF)
				ui->pos[v].sort = COL_SELF;
		ui_say(ui, false, "baseline off");
		rearrange(ui);
		return;
	}
	copy = ui->window ? profile_new() : NULL;
	if (!copy || profile_merge(copy, ui->window)) {
		profile_free(copy);
		return;
	}
	ui->baseline = copy;
	ui_say(ui, false, "baseline marked: DIFF is the change of SELF% since, in percent points");
	refuse(ui, rebuild(ui));
}

/* From the functions to their callers: the function that was picked is found there. */
static void focus_callers(struct ui *ui, const struct ui_row *picked)
{
	uint32_t symbol = picked ? ui->census.functions[picked->index].symbol : 0;
	bool was_picked = picked && ui->pos[VIEW_FUNCTIONS].cursor;

	set_view(ui, VIEW_CALLERS);
	for (size_t i = 0; i < ui->nrows && was_picked; i++) {
		const struct calltree_node *node = &ui->tree.nodes[ui->rows[i].index];

		if (node->depth == 1 && node->id == symbol) {
			keyset_set(&ui->opened, node->path, true);
			move_to(ui, i);
			rearrange(ui);
			break;
		}
	}
}

static void go_to_view(struct ui *ui, enum view view)
{
	if (view == VIEW_CALLERS && ui->view == VIEW_FUNCTIONS)
		focus_callers(ui, ui_current(ui));
	else
		set_view(ui, view);
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
		ui_say(ui, false, "there are only kernel stacks (-K)");
		return;
	}
	ui->sel.user_only = !ui->sel.user_only;
	refuse(ui, rebuild(ui));
}

/* Actions that only move or rearrange. */
static unsigned int act_on_rows(struct ui *ui, enum action act)
{
	switch (act) {
	case ACT_LEFT:
	case ACT_RIGHT:
	case ACT_DEEPER:
	case ACT_OUTER:
		move_flame(ui, act);
		break;
	case ACT_OPEN:
	case ACT_CLOSE:
	case ACT_TOGGLE:
		open_row(ui, act);
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
		go_to_view(ui, (ui->view + 1) % VIEW_MAX);
		return UI_DRAW;
	case ACT_PREV_VIEW:
		go_to_view(ui, (ui->view + VIEW_MAX - 1) % VIEW_MAX);
		return UI_DRAW;
	case ACT_TREE:
		go_to_view(ui, VIEW_TREE);
		return UI_DRAW;
	case ACT_ENTER:
		zoom(ui);
		return UI_DRAW;
	case ACT_BACK:
		return zoom_back(ui) ? UI_DRAW : 0;
	case ACT_FILTER:
		ask(ui, PROMPT_FILTER);
		return UI_DRAW;
	case ACT_DELAY:
		ask(ui, PROMPT_DELAY);
		return UI_DRAW;
	case ACT_HIDE_KERNEL:
		toggle_kernel(ui);
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
	size_t page = ui->h > 4 ? (size_t)ui->h - 3 : 1, end = help_lines() > page ? help_lines() - page : 0;

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

static size_t flame_at(const struct ui *ui, int x, size_t depth)
{
	for (size_t i = 0; i < ui->nrows; i++) {
		const struct ui_row *row = &ui->rows[i];

		if (row->indent == depth && x >= row->x && x < row->x + row->width)
			return i;
	}
	return ui->nrows;
}

static unsigned int click_body(struct ui *ui, const struct ui_event *ev, size_t line)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	size_t row = pos->scroll + line, before = pos->cursor;

	if (ui->view == VIEW_FLAME)
		row = flame_at(ui, ev->x, row);
	if (row >= ui->nrows)
		return 0;
	move_to(ui, row);
	/* The first click picks a row, the next one goes into it. */
	if (ev->mouse == MOUSE_DOUBLE || (ui->view == VIEW_FLAME && row == before))
		zoom(ui);
	return UI_DRAW;
}

static unsigned int click(struct ui *ui, const struct ui_event *ev)
{
	struct layout l = screen_layout(ui->view, ui->w, ui->h);
	const struct ui_position *pos = &ui->pos[ui->view];
	struct column_at cols[COLUMNS_MAX];
	size_t n;

	if (ev->y == l.tabs && screen_tab_at(ui, ev->x) != VIEW_MAX) {
		go_to_view(ui, screen_tab_at(ui, ev->x));
		return UI_DRAW;
	}
	if (ev->y == l.bar)
		return act(ui, screen_bar_at(ui, ev->x));
	if (ev->y == l.title && (IN(ui->view) & IN_LISTS)) {
		n = columns_lay_out(ui->view, ui->baseline != NULL, ui->w, cols);
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
	if (ui->prompt)
		return 0;
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
		for (int i = 0; i < 3 && ui->view != VIEW_FLAME; i++)
			move(ui, ev->mouse == MOUSE_WHEEL_UP ? ACT_UP : ACT_DOWN);
		if (ui->view == VIEW_FLAME)
			move_flame(ui, ev->mouse == MOUSE_WHEEL_UP ? ACT_OUTER : ACT_DEEPER);
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
	if (ui->prompt) {
		type(ui, ev->key);
		return UI_DRAW;
	}
	if (ui->help)
		return help_key(ui, ev->key);
	if (ev->key >= '1' && ev->key < '1' + VIEW_MAX) {
		go_to_view(ui, (enum view)(ev->key - '1'));
		return UI_DRAW;
	}
	action = keys_find(ev->key, ui->view);
	return act(ui, action) | (had_message ? UI_DRAW : 0);
}
