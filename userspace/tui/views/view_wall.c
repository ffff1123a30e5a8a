/* SPDX-License-Identifier: BSD-2-Clause */
/* Wall: processes, and below an opened one what its threads did. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/draw_cell.h"
#include "tui/rows.h"
#include "tui/view.h"
#include "tui/zoom.h"

enum { COL_COMM = COL_OWN, COL_KIND }; /* COL_KIND + n: enum wall_kind */

/* Values are threads: the average number of threads that were in the state. */
static const struct column_spec columns[] = {
	{ COL_PID, "PID", 8, 8, 0, 0 },
	{ COL_SELF, "ALL", 7, 8, 0, 0 },
	{ COL_KIND + WALL_RUNNING, "RUN", 7, 8, 0, 0 },
	{ COL_KIND + WALL_READY, "READY", 6, 8, 60, 0 },
	{ COL_KIND + WALL_LOCK, "LOCK", 6, 8, 40, 0 },
	{ COL_KIND + WALL_IO, "I/O", 6, 8, 40, 0 },
	{ COL_KIND + WALL_PEER, "NET", 6, 8, 60, 0 },
	{ COL_KIND + WALL_SLEEP, "SLEEP", 7, 8, 70, 0 },
	{ COL_KIND + WALL_OTHER, "OTHER", 7, 8, 70, 0 },
	{ COL_KIND + WALL_IDLE, "IDLE", 7, 8, 76, COLUMN_IDLE },
	{ COL_COMM, "NAME", 0, 0, 0, COLUMN_LEFT },
	{ 0 },
};

static const struct wall_process *process_of(const struct ui *ui, const struct ui_row *row)
{
	return &ui->off.wall.v[row->index];
}

static int wall_count(struct ui *ui)
{
	const struct wall_windows from = {
		.running = ui->window,
		.blocked = ui->off.window,
		.running_s = ui->sum.seconds,
		.blocked_s = ui->off.sum.seconds,
		.period_ns = ui->gauges.period_ns,
	};

	if (ui->off.window)
		return wall_build(&ui->off.wall, &from, ui->symbols, &ui->sel);
	wall_free(&ui->off.wall);
	return 0;
}

static int wall_rows(struct ui *ui)
{
	for (size_t i = 0; i < ui->off.wall.n; i++) {
		const struct wall_process *p = &ui->off.wall.v[i];

		if (rows_filter_process(ui->filter, p->name, p->pid) &&
		    !rows_add_process(ui, 1ull << 61 | p->pid, (uint32_t)i, p->pid, 0))
			return -ENOMEM;
	}
	return 0;
}

static int wall_add_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot)
{
	size_t n, first = wall_parts(&ui->off.wall, top->index, &n);

	(void)hot;
	for (size_t i = first; i < first + n; i++) {
		const struct wall_part *part = &ui->off.wall.parts[i];
		uint64_t what = (uint64_t)part->note << 8 | part->kind;
		struct ui_row *row = rows_add(ui, hash_mix(top->key, what), top->index);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_PART;
		row->indent = 1;
		row->pid = top->pid;
		row->symbol = (uint32_t)i;
	}
	return 0;
}

static const char *wall_name(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	const struct wall_process *p = process_of(ui, row);

	text_clean(dst, cap, p->name, strnlen(p->name, SF_COMM), 0);
	return dst;
}

static void cell_threads(const struct cell_at *c, double v, bool strong)
{
	char text[24];

	snprintf(text, sizeof(text), "%.*f", v < 10 ? 2 : v < 1000 ? 1 : 0, v);
	cell_text(c, v < 0.005 ? ROLE_DIM : strong ? ROLE_STRONG : ROLE_TEXT, text);
}

/*
 * Draws a part below a process: the threads, and from the next column on what they did, as in
 * "[blocked: futex] futex_wait_[k] < lock".
 */
static void cell_part(const struct ui *ui, const struct cell_at *c, const struct wall_part *part)
{
	struct profile *p = part->note == WAIT_RUNNING ? ui->window : ui->off.window;
	const struct blocked_stack stack = { .stack = part->stack };
	int x = c->col->x + c->col->width + 2;
	char text[1024];
	size_t n;

	if (c->col->id != COL_SELF)
		return;
	cell_threads(c, part->threads, false);
	n = (size_t)snprintf(text, sizeof(text), "%s ", wait_note_text(part->note));
	blocked_text(&stack, p, ui->symbols, &ui->sel, cell_between(c), text + n, sizeof(text) - n);
	grid_fit(c->g, x, c->y, c->g->w - x, ROLE_TEXT, text);
}

static void wall_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct wall_process *p = process_of(ui, row);
	char text[SF_COMM * 3 + 1];

	if (row->kind == ROW_PART) {
		cell_part(ui, c, &ui->off.wall.parts[row->symbol]);
		return;
	}
	switch (c->col->id) {
	case COL_PID:
		snprintf(text, sizeof(text), "%u", p->pid);
		cell_text(c, ROLE_TEXT, text);
		break;
	case COL_SELF:
		cell_threads(c, p->sum, p->sum >= 1);
		break;
	case COL_COMM:
		cell_marked(c, row, wall_name(ui, row, text, sizeof(text)));
		break;
	default:
		cell_threads(c, p->threads[c->col->id - COL_KIND], false);
		break;
	}
}

static int compare_threads(double a, double b)
{
	return a < b ? -1 : a > b;
}

static int wall_compare(const struct ui *ui, unsigned int by, const struct ui_row *a,
			const struct ui_row *b)
{
	const struct wall_process *x = process_of(ui, a), *y = process_of(ui, b);
	int c = 0;

	if (by >= COL_KIND)
		c = compare_threads(x->threads[by - COL_KIND], y->threads[by - COL_KIND]);
	else if (by == COL_COMM)
		c = strncmp(y->name, x->name, SF_COMM);
	else if (by == COL_PID)
		c = rows_compare(y->pid, x->pid);
	c = c ? c : compare_threads(x->sum, y->sum);
	c = c ? c : strncmp(y->name, x->name, SF_COMM);
	return c ? c : rows_compare(y->pid, x->pid);
}

/* Into the process: what runs, or what it waits for, whichever is more. */
static void wall_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct wall_process *p = process_of(ui, row);
	struct zoom z = zoom_of_process(p->pid, p->name);
	bool running = row->kind == ROW_PART ? ui->off.wall.parts[row->symbol].note == WAIT_RUNNING
					     : p->threads[WALL_RUNNING] > p->sum / 2;

	zoom_add(to, &z, running ? VIEW_FUNCTIONS : VIEW_OFFCPU);
}

const struct view_spec view_wall = {
	.title = "Wall",
	.time = TIME_BOTH,
	.finds = VIEW_FINDS_PROCESS,
	.count = wall_count,
	.rows = wall_rows,
	.zoom = wall_zoom,
	.name = wall_name,
	.columns = columns,
	.cell = wall_cell,
	.compare = wall_compare,
	.add_parts = wall_add_parts,
};
