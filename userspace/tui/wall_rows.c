/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the wall clock: processes, and below an opened one what its threads did. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/rows.h"
#include "tui/view.h"

static uint64_t key_of(const struct wall_process *p)
{
	return 1ull << 61 | p->pid;
}

const char *rows_wall_name(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	const struct wall_process *p = &ui->off.wall.v[row->index];

	text_clean(dst, cap, p->name, strnlen(p->name, SF_COMM), 0);
	return dst;
}

const char *rows_wall_stack(const struct ui *ui, const struct ui_row *row, const char *between,
			    char *dst, size_t cap)
{
	const struct wall_part *part = &ui->off.wall.parts[row->symbol];
	struct profile *p = part->note == WAIT_RUNNING ? ui->window : ui->off.window;
	const struct blocked_stack stack = { .stack = part->stack };
	size_t n = (size_t)snprintf(dst, cap, "%s ", wait_note_text(part->note));

	blocked_text(&stack, p, ui->symbols, &ui->sel, between, dst + n, cap - n);
	return dst;
}

int rows_wall(struct ui *ui)
{
	for (size_t i = 0; i < ui->off.wall.n; i++) {
		const struct wall_process *p = &ui->off.wall.v[i];
		char name[SF_COMM * 3 + 1], pid[16];
		struct ui_row *row;

		text_clean(name, sizeof(name), p->name, strnlen(p->name, SF_COMM), 0);
		snprintf(pid, sizeof(pid), "%u", p->pid);
		if (!rows_filter(ui->filter, name) && !rows_filter(ui->filter, pid))
			continue;
		row = rows_add(ui, key_of(p), (uint32_t)i);
		if (!row)
			return -ENOMEM;
		row->opening = rows_open_by_hand(ui, key_of(p)) ? ROW_OPEN : ROW_CLOSED;
	}
	return 0;
}

int rows_wall_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot)
{
	uint64_t key = top->key;
	uint32_t index = top->index;
	size_t n, first = wall_parts(&ui->off.wall, index, &n);

	(void)hot;
	for (size_t i = first; i < first + n; i++) {
		const struct wall_part *part = &ui->off.wall.parts[i];
		uint64_t what = (uint64_t)part->note << 8 | part->kind;
		struct ui_row *row = rows_add(ui, hash_mix(key, what), index);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_PART;
		row->indent = 1;
		row->symbol = (uint32_t)i;
	}
	return 0;
}

static int ascending(double a, double b)
{
	return a < b ? -1 : a > b;
}

int compare_wall(const struct ui *ui, enum column by, const struct ui_row *a,
		 const struct ui_row *b)
{
	const struct wall_process *x = &ui->off.wall.v[a->index], *y = &ui->off.wall.v[b->index];
	int c = 0;

	if (by >= COL_RUNNING)
		c = ascending(x->threads[by - COL_RUNNING], y->threads[by - COL_RUNNING]);
	else if (by == COL_COMM)
		c = strncmp(y->name, x->name, SF_COMM);
	else if (by == COL_PID)
		c = ascending(y->pid, x->pid);
	c = c ? c : ascending(x->sum, y->sum);
	c = c ? c : strncmp(y->name, x->name, SF_COMM);
	return c ? c : ascending(y->pid, x->pid);
}
