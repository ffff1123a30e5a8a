/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes: opened into the names of their threads, and these into their hottest functions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/draw_cell.h"
#include "tui/rows.h"
#include "tui/view.h"
#include "tui/zoom.h"

#define HOTTEST 5 /* functions listed below an opened thread name */

enum { COL_KERNEL = COL_OWN, COL_COMPLETE, COL_COMM, COL_CGROUP, COL_HOTTEST };

static const struct column_spec columns[] = {
	{ COL_PID, "PID", 8, 8, 0, 0 },
	{ COL_SELF, "SELF%", 7, 7, 0, 0 },
	{ COL_KERNEL, "KERN%", 7, 7, 70, 0 },
	{ COL_COMPLETE, "COMPL%", 8, 8, 76, 0 },
	{ COL_DIFF, "DIFF", 7, 7, 66, 0 },
	{ COL_COMM, "NAME", 18, 26, 0, COLUMN_LEFT },
	{ COL_CGROUP, "CGROUP", 22, 28, 108, COLUMN_LEFT },
	{ COL_HOTTEST, "HOTTEST FUNCTION", 0, 0, 50, COLUMN_LEFT },
	{ 0 },
};

/* The process of a row, or its threads of one name. */
static const struct census_task *process_of(const struct ui *ui, const struct ui_row *row)
{
	return row->kind != ROW_WHOLE ? &ui->census.threads[row->index]
				      : &ui->census.processes[row->index];
}

static uint64_t key_of(uint32_t pid)
{
	return 1ull << 62 | pid;
}

/* "": unknown. Returns dst. */
static const char *cgroup_of(const struct ui *ui, const struct census_task *p, char *dst,
			     size_t cap)
{
	snprintf(dst, cap, "%s", cgroup_names_get(ui->cgroups, p->pid, p->comm));
	return dst;
}

/* ---- Rows ---- */

static int processes_rows(struct ui *ui)
{
	for (size_t i = 0; i < ui->census.nprocesses; i++) {
		const struct census_task *p = &ui->census.processes[i];

		if (rows_filter_process(ui->filter, p->comm, p->pid) &&
		    !rows_add_process(ui, key_of(p->pid), (uint32_t)i, p->pid, p->self))
			return -ENOMEM;
	}
	return 0;
}

/* Index of the first of n ascending numbers, `stride` bytes apart, that is >= key; n: none. */
static size_t lower_bound(const uint32_t *first, size_t stride, size_t n, uint32_t key)
{
	size_t lo = 0, hi = n; /* invariant: numbers before lo are < key, those from hi on >= key */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (*(const uint32_t *)((const char *)first + mid * stride) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Index of the first thread of a process; nthreads: none. */
static size_t first_thread(const struct census *c, uint32_t pid)
{
	return c->nthreads
		       ? lower_bound(&c->threads[0].pid, sizeof(c->threads[0]), c->nthreads, pid)
		       : 0;
}

static int add_hottest(struct ui *ui, struct hot_list *hot, uint64_t key, uint32_t index,
		       uint16_t indent)
{
	uint32_t id = ui->census.threads[index].id;
	size_t first;

	if (!hot->v && census_hottest(&ui->census, &hot->v, &hot->n))
		return -ENOMEM;
	first = hot->n ? lower_bound(&hot->v[0].thread, sizeof(hot->v[0]), hot->n, id) : 0;
	for (size_t i = first; i < hot->n && hot->v[i].thread == id && i < first + HOTTEST; i++) {
		struct ui_row *row = rows_add(ui, hash_mix(key, hot->v[i].symbol), index);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_FUNCTION;
		row->pid = ui->census.threads[index].pid;
		row->indent = indent;
		row->symbol = hot->v[i].symbol;
		row->self = hot->v[i].self;
	}
	return 0;
}

/* A process whose threads all have its name lists its functions directly. */
static int add_threads(struct ui *ui, const struct census_task *process, struct hot_list *hot)
{
	const struct census *c = &ui->census;
	uint32_t pid = process->pid, names = process->names;
	size_t first = first_thread(c, pid);

	if (names < 2 && !strncmp(c->threads[first].comm, process->comm, SF_COMM))
		return add_hottest(ui, hot, key_of(pid), (uint32_t)first, 1);
	for (size_t k = first; k < c->nthreads && c->threads[k].pid == pid; k++) {
		const struct census_task *t = &c->threads[k];
		uint64_t key = 1ull << 63 | hash_mix(pid, hash_bytes(t->comm, sizeof(t->comm)));
		struct ui_row *row = rows_add_process(ui, key, (uint32_t)k, pid, t->self);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_THREAD;
		row->indent = 1;
		if (row->opening == ROW_OPEN && add_hottest(ui, hot, key, (uint32_t)k, 2))
			return -ENOMEM;
	}
	return 0;
}

static int processes_add_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot)
{
	return add_threads(ui, &ui->census.processes[top->index], hot);
}

/* ---- Cells ---- */

/* "mark name", or "mark name +2": a thread's name and the number of further thread names. */
static void cell_process(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct census_task *p = process_of(ui, row);
	char comm[SF_COMM * 3 + 1], text[128];

	text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
	if (row->kind == ROW_WHOLE && p->names > 1 && !p->named)
		snprintf(text, sizeof(text), "%s%s +%u", cell_mark(c, row), comm, p->names - 1);
	else
		snprintf(text, sizeof(text), "%s%s%s", row->kind == ROW_THREAD ? "  " : "",
			 cell_mark(c, row), comm);
	cell_text(c, ROLE_TEXT, text);
}

/* Narrow screens have no column for it, so the function replaces the name there. */
static void cell_hot(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	bool narrow = ui->w < 50;

	if (c->col->id == COL_SELF)
		cell_share(c, row->self, ui->census.sum, false);
	else if (c->col->id == (narrow ? COL_COMM : COL_HOTTEST))
		cell_name(c, symbolizer_name(ui->symbols, row->symbol));
}

static void processes_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct census_task *p = process_of(ui, row);
	char text[64];

	if (row->kind == ROW_FUNCTION) {
		cell_hot(ui, c, row);
		return;
	}
	switch (c->col->id) {
	case COL_PID:
		snprintf(text, sizeof(text), "%u", p->pid);
		cell_text(c, row->kind != ROW_WHOLE ? ROLE_DIM : ROLE_TEXT, text);
		break;
	case COL_SELF:
		cell_share(c, p->self, ui->census.sum, row->kind == ROW_WHOLE);
		break;
	case COL_KERNEL:
		cell_share(c, p->kernel, p->self, false);
		break;
	case COL_COMPLETE:
		cell_complete(c, p->complete, p->user_stacks);
		break;
	case COL_DIFF:
		if (row->kind == ROW_WHOLE)
			cell_diff(c, row->diff);
		break;
	case COL_COMM:
		cell_process(ui, c, row);
		break;
	case COL_CGROUP:
		cell_text(c, ROLE_DIM, cgroup_of(ui, p, text, sizeof(text)));
		break;
	default:
		cell_name(c, symbolizer_name(ui->symbols, p->hottest));
		break;
	}
}

/* ---- Order ---- */

static int processes_compare(const struct ui *ui, unsigned int by, const struct ui_row *a,
			     const struct ui_row *b)
{
	const struct census_task *x = process_of(ui, a), *y = process_of(ui, b);
	char nx[64], ny[64];
	int c = 0;

	if (by == COL_PID)
		c = rows_compare(y->pid, x->pid);
	else if (by == COL_KERNEL)
		c = rows_compare_shares(x->kernel, x->self, y->kernel, y->self);
	else if (by == COL_COMPLETE)
		c = rows_compare_complete(x->complete, x->user_stacks, y->complete, y->user_stacks);
	else if (by == COL_COMM)
		c = strncmp(y->comm, x->comm, SF_COMM);
	else if (by == COL_CGROUP)
		c = strcmp(cgroup_of(ui, y, ny, sizeof(ny)), cgroup_of(ui, x, nx, sizeof(nx)));
	else if (by == COL_HOTTEST)
		c = strcmp(symbolizer_name(ui->symbols, y->hottest),
			   symbolizer_name(ui->symbols, x->hottest));
	c = c ? c : rows_compare(x->self, y->self);
	c = c ? c : strncmp(y->comm, x->comm, SF_COMM);
	return c ? c : rows_compare(y->pid, x->pid);
}

static bool processes_baseline(const struct ui *ui, size_t i, struct baseline_row *ret)
{
	const struct census *c = &ui->before;

	if (i < c->nprocesses)
		*ret = (struct baseline_row){ key_of(c->processes[i].pid), c->processes[i].self };
	return i < c->nprocesses;
}

/* ---- Keys ---- */

static void processes_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct census_task *p = process_of(ui, row);
	struct zoom z = zoom_of_process(p->pid, p->comm);

	if (row->kind == ROW_THREAD)
		memcpy(z.comm, p->comm, sizeof(z.comm));
	if (row->kind != ROW_FUNCTION || !selection_level(&ui->sel, ZOOM_PROCESS))
		zoom_add(to, &z, VIEW_FUNCTIONS);
	if (row->kind == ROW_FUNCTION)
		zoom_add_symbol(ui, to, row->symbol, VIEW_CALLERS);
}

static const char *processes_name(const struct ui *ui, const struct ui_row *row, char *dst,
				  size_t cap)
{
	const struct census_task *p = process_of(ui, row);
	char comm[SF_COMM * 3 + 1];

	text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
	snprintf(dst, cap, "%s %u", comm, p->pid);
	return dst;
}

const struct view_spec view_processes = {
	.title = "Processes",
	.finds = VIEW_FINDS_PROCESS,
	.census = CENSUS_PROCESSES,
	.rows = processes_rows,
	.zoom = processes_zoom,
	.name = processes_name,
	.columns = columns,
	.cell = processes_cell,
	.compare = processes_compare,
	.baseline = processes_baseline,
	.add_parts = processes_add_parts,
};
