/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/setup.h"

#include <stdio.h>
#include <string.h>

#include "tui/screen.h"
#include "tui/view.h"

#define LABEL_WIDTH 24

enum item { ITEM_DELAY, ITEM_WINDOW, ITEM_VIEW, ITEM_NAMES, ITEM_KERNEL, ITEM_COLORS, ITEMS };

static const char *const labels[ITEMS] = {
	[ITEM_DELAY] = "Refresh every", [ITEM_WINDOW] = "Window",	 [ITEM_VIEW] = "First view",
	[ITEM_NAMES] = "Names",		[ITEM_KERNEL] = "Kernel frames", [ITEM_COLORS] = "Colours",
};
static const uint64_t delays[] = { 200 * NUM_MS, 500 * NUM_MS, NUM_S,	   2 * NUM_S,
				   5 * NUM_S,	 10 * NUM_S,   30 * NUM_S, 60 * NUM_S };

#define NDELAYS (sizeof(delays) / sizeof(delays[0]))

struct ui_settings ui_settings(const struct ui *ui)
{
	struct ui_settings s = {
		.delay_ns = ui->delay_ns,
		.span = ui->span,
		.view = ui->first_view,
		.by_thread = ui->sel.by_thread,
		.hide_kernel = ui->sel.user_only,
		.no_color = ui->no_color,
	};

	memcpy(s.hidden, ui->hidden, sizeof(s.hidden));
	return s;
}

void ui_apply_settings(struct ui *ui, const struct ui_settings *s)
{
	ui->delay_ns = s->delay_ns;
	ui->span = s->span;
	ui->view = ui->first_view = s->view;
	ui->sel.by_thread = s->by_thread;
	ui->sel.user_only = s->hide_kernel && !ui->sel.kernel_only;
	ui->no_color = s->no_color;
	memcpy(ui->hidden, s->hidden, sizeof(ui->hidden));
}

/* The column that takes the rest of the line is what the view is about: it is always shown. */
static bool can_hide(const struct column_spec *col)
{
	return col->width && col->id != COL_DIFF; /* DIFF is there with a baseline only */
}

bool setup_column(enum view view, const char *title, enum column *ret)
{
	const struct column_spec *col = view_at(view)->columns;

	for (; col && col->title; col++) {
		if (can_hide(col) && !strcmp(col->title, title)) {
			*ret = col->id;
			return true;
		}
	}
	return false;
}

/* The n-th column of all views that can be hidden; NULL: there are fewer. */
static const struct column_spec *column_at(size_t n, enum view *ret_view)
{
	for (int v = 0; v < VIEW_MAX; v++) {
		const struct column_spec *col = view_at((enum view)v)->columns;

		for (; col && col->title; col++) {
			if (can_hide(col) && !n--) {
				*ret_view = (enum view)v;
				return col;
			}
		}
	}
	return NULL;
}

static size_t count(void)
{
	enum view view;
	size_t n = 0;

	while (column_at(n, &view))
		n++;
	return ITEMS + n;
}

unsigned int setup_open(struct ui *ui)
{
	ui->setup = true;
	ui->setup_at = 0;
	return UI_DRAW;
}

static uint64_t other_delay(uint64_t now, int step)
{
	size_t at = 0;

	while (at + 1 < NDELAYS && delays[at] < now)
		at++;
	if (step > 0 && delays[at] <= now)
		at++;
	else if (step < 0)
		at += NDELAYS - 1;
	return delays[at % NDELAYS];
}

static unsigned int change(struct ui *ui, int step)
{
	const struct column_spec *col;
	enum view view = VIEW_FUNCTIONS;

	switch (ui->setup_at) {
	case ITEM_DELAY:
		ui->delay_ns = other_delay(ui->delay_ns, step);
		return UI_DRAW | UI_SAVE;
	case ITEM_WINDOW:
		ui->span = (enum live_span)(((int)ui->span + step + LIVE_SPANS) % LIVE_SPANS);
		return UI_DRAW | UI_WINDOW | UI_SAVE;
	case ITEM_VIEW:
		ui->first_view = (enum view)(((int)ui->first_view + step + VIEW_MAX) % VIEW_MAX);
		return UI_DRAW | UI_SAVE;
	case ITEM_NAMES:
		ui->sel.by_thread = !ui->sel.by_thread;
		break;
	case ITEM_KERNEL:
		ui->sel.user_only = !ui->sel.user_only && !ui->sel.kernel_only;
		break;
	case ITEM_COLORS:
		ui->no_color = !ui->no_color;
		return UI_DRAW | UI_REPAINT | UI_COLOR | UI_SAVE;
	default:
		col = column_at(ui->setup_at - ITEMS, &view);
		if (col)
			ui->hidden[view] ^= 1u << col->id;
		break;
	}
	ui_set_view(ui, ui->view);
	return UI_DRAW | UI_SAVE;
}

unsigned int setup_key(struct ui *ui, uint32_t key)
{
	size_t n = count();

	switch (key) {
	case K_UP:
	case 'k':
		ui->setup_at = (ui->setup_at + n - 1) % n;
		return UI_DRAW;
	case K_DOWN:
	case 'j':
		ui->setup_at = (ui->setup_at + 1) % n;
		return UI_DRAW;
	case K_HOME:
		ui->setup_at = 0;
		return UI_DRAW;
	case K_END:
		ui->setup_at = n - 1;
		return UI_DRAW;
	case K_LEFT:
		return change(ui, -1);
	case K_RIGHT:
	case ' ':
	case KEY_RETURN:
		return change(ui, 1);
	case KEY_ESCAPE:
	case K_F0 + 2:
	case K_F0 + 10:
	case 'q':
		ui->setup = false;
		return UI_DRAW;
	default:
		return 0;
	}
}

static void value(const struct ui *ui, size_t item, char *dst, size_t cap)
{
	static const char *const spans[LIVE_SPANS] = { "last 5 s", "last 30 s", "all" };

	switch (item) {
	case ITEM_DELAY:
		snprintf(dst, cap, "%g s", (double)ui->delay_ns / 1e9);
		break;
	case ITEM_WINDOW:
		snprintf(dst, cap, "%s", spans[ui->span]);
		break;
	case ITEM_VIEW:
		snprintf(dst, cap, "%s", view_at(ui->first_view)->title);
		break;
	case ITEM_NAMES:
		snprintf(dst, cap, "%s", ui->sel.by_thread ? "of threads" : "of processes");
		break;
	case ITEM_KERNEL:
		snprintf(dst, cap, "%s", ui->sel.user_only ? "hidden" : "shown");
		break;
	default:
		snprintf(dst, cap, "%s", ui->no_color ? "off" : "on");
		break;
	}
}

static void draw_item(const struct ui *ui, struct grid *g, int y, size_t item)
{
	const struct column_spec *col;
	enum view view = VIEW_FUNCTIONS;
	char label[64], text[64];

	if (item < ITEMS) {
		snprintf(label, sizeof(label), "%s", labels[item]);
		value(ui, item, text, sizeof(text));
	} else {
		col = column_at(item - ITEMS, &view);
		snprintf(label, sizeof(label), "%s: %s", view_at(view)->title, col->title);
		snprintf(text, sizeof(text), "%s", ui->hidden[view] >> col->id & 1 ? "[ ]" : "[x]");
	}
	grid_fit(g, 1, y, LABEL_WIDTH, ROLE_TEXT, label);
	grid_fit(g, LABEL_WIDTH + 2, y, g->w - LABEL_WIDTH - 2, ROLE_STRONG, text);
	if (item == ui->setup_at)
		grid_role(g, 0, y, g->w, ROLE_CURSOR);
}

void draw_setup(const struct ui *ui, struct grid *g)
{
	size_t n = count(), page = g->h > 4 ? (size_t)g->h - 3 : 1, first = 0;
	char title[256];

	snprintf(title, sizeof(title), "Setup, saved in %s",
		 ui->config_path ? ui->config_path : "no file: HOME is not set");
	grid_fit(g, 0, 0, g->w, ROLE_STRONG, title);
	if (ui->setup_at >= page)
		first = ui->setup_at - page + 1;
	for (size_t i = 0; i < page && first + i < n; i++)
		draw_item(ui, g, 2 + (int)i, first + i);
	if (ui->message[0])
		grid_fit(g, 0, g->h - 1, g->w, ui->message_bad ? ROLE_BAD : ROLE_GOOD, ui->message);
	else
		grid_fit(g, 0, g->h - 1, g->w, ROLE_LABEL,
			 "Up, Down: move   Left, Right, Space: change   Esc: close");
}
