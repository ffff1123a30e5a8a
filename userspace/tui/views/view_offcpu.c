/* SPDX-License-Identifier: BSD-2-Clause */
/* Off-CPU: blocked stacks, each opened into its frames. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "base/text.h"
#include "tui/draw_cell.h"
#include "tui/rows.h"
#include "tui/view.h"
#include "tui/zoom.h"

#define FINDS (VIEW_FINDS_PROCESS | VIEW_FINDS_FUNCTION)

enum { COL_THREADS = COL_OWN, COL_BLOCKS, COL_EACH, COL_STATE, COL_COMM, COL_BLOCKED };

static const struct column_spec columns[] = {
	{ COL_SELF, "TIME%", 7, 7, 0, 0 },
	{ COL_DIFF, "DIFF", 7, 7, 50, 0 },
	{ COL_THREADS, "THREADS", 9, 9, 100, 0 },
	{ COL_BLOCKS, "BLOCKS/s", 9, 10, 70, 0 },
	{ COL_EACH, "EACH", 7, 8, 60, 0 },
	{ COL_STATE, "S", 3, 3, 50, COLUMN_LEFT },
	{ COL_PID, "PID", 8, 8, 100, 0 },
	{ COL_COMM, "NAME", 17, 20, 0, COLUMN_LEFT },
	{ COL_BLOCKED, "BLOCKED IN, THEN ITS CALLERS", 0, 0, 0, COLUMN_LEFT },
	{ 0 },
};

static const struct blocked_stack *stack_of(const struct ui *ui, const struct ui_row *row)
{
	return &ui->off.now.v[row->index];
}

/* ---- Rows ---- */

static int offcpu_count(struct ui *ui)
{
	int err;

	if (!ui->off.window) {
		blocked_free(&ui->off.now);
		return 0;
	}
	err = blocked_build(&ui->off.now, ui->off.window, ui->symbols, &ui->sel);
	if (!err && ui->off.baseline)
		err = blocked_build(&ui->off.before, ui->off.baseline, ui->symbols, &ui->sel);
	return err;
}

/* Whether the filter matches any stack of a row, for each row. NULL: out of memory. */
static bool *found_rows(const struct ui *ui)
{
	const struct blocked *b = &ui->off.now;
	bool *found = calloc(b->n + 1, sizeof(*found));

	/* Only stacks counted by blocked_build: the profile may have grown since then. */
	for (size_t i = 0; found && b->n && i < b->nstacks; i++)
		if (b->row_of[i] != BLOCKED_NONE && !found[b->row_of[i]])
			found[b->row_of[i]] = rows_filter_stack(ui, FINDS, ui->off.window, i);
	return found;
}

static int offcpu_rows(struct ui *ui)
{
	bool *found = ui->filter[0] ? found_rows(ui) : NULL;
	int err = ui->filter[0] && !found ? -ENOMEM : 0;

	for (size_t i = 0; i < ui->off.now.n && !err; i++) {
		const struct blocked_stack *b = &ui->off.now.v[i];

		if ((!found || found[i]) &&
		    !rows_add_process(ui, b->key, (uint32_t)i, b->pid, b->ns))
			err = -ENOMEM;
	}
	free(found);
	return err;
}

/* The frames from the leaf's caller on; the row itself shows the leaf. */
static int offcpu_add_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot)
{
	uint32_t stack = stack_of(ui, top)->stack;
	const uint32_t *ids = profile_symbols(ui->off.window, stack, ui->symbols);
	struct profile_stack s;
	struct shown f;

	(void)hot;
	profile_stack(ui->off.window, stack, &s);
	f = shown_frames(&ui->sel, &s);
	for (size_t k = 1; ids && k < shown_count(&f); k++) {
		struct ui_row *row = rows_add(ui, hash_mix(top->key, k + 1), top->index);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_FUNCTION;
		row->indent = 1;
		row->pid = top->pid;
		row->symbol = ids[shown_at(&f, k)];
	}
	return 0;
}

static const char *leaf_of(const struct ui *ui, const struct blocked_stack *b)
{
	const uint32_t *ids = profile_symbols(ui->off.window, b->stack, ui->symbols);
	struct profile_stack s;
	struct shown f;

	profile_stack(ui->off.window, b->stack, &s);
	f = shown_frames(&ui->sel, &s);
	return symbolizer_name(ui->symbols,
			       ids && shown_count(&f) ? ids[shown_at(&f, 0)] : SYM_NO_STACK);
}

/* ---- Cells ---- */

static void cell_duration(const struct cell_at *c, uint64_t ns)
{
	char text[24];

	if (ns < 10 * NUM_MS)
		snprintf(text, sizeof(text), "%.*f%s", ns < NUM_MS ? 0 : 1,
			 (double)ns / (ns < NUM_MS ? 1e3 : 1e6), ns < NUM_MS ? "us" : "ms");
	else
		snprintf(text, sizeof(text), ns < NUM_S ? "%.0fms" : "%.1fs",
			 (double)ns / (ns < NUM_S ? 1e6 : 1e9));
	cell_text(c, ROLE_TEXT, text);
}

static void cell_rate(const struct cell_at *c, double v)
{
	char text[24];

	snprintf(text, sizeof(text), "%.*f", v < 100 ? 1 : 0, v);
	cell_text(c, v < 0.05 ? ROLE_DIM : ROLE_TEXT, text);
}

static void cell_blocked(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const char *function;
	char text[1024];

	if (row->kind == ROW_FUNCTION) {
		function = symbolizer_name(ui->symbols, row->symbol);
		grid_fit(c->g, c->col->x + 4, c->y, c->col->width - 4,
			 cell_is_kernel(function) ? ROLE_KERNEL : ROLE_TEXT, function);
		return;
	}
	if (row->opening == ROW_OPEN)
		snprintf(text, sizeof(text), "%s", leaf_of(ui, stack_of(ui, row)));
	else
		blocked_text(stack_of(ui, row), ui->off.window, ui->symbols, &ui->sel,
			     cell_between(c), text, sizeof(text));
	cell_marked(c, row, text);
}

static void offcpu_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct blocked_stack *b = stack_of(ui, row);
	double seconds = ui->off.sum.seconds > 0 ? ui->off.sum.seconds : 1;
	struct profile_stack s;
	char text[SF_COMM * 3 + 1];

	if (row->kind == ROW_FUNCTION && c->col->id != COL_BLOCKED)
		return;
	profile_stack(ui->off.window, b->stack, &s);
	switch (c->col->id) {
	case COL_SELF:
		cell_share(c, b->ns, ui->off.now.ns, true);
		break;
	case COL_DIFF:
		cell_diff(c, row->diff);
		break;
	case COL_THREADS:
		cell_rate(c, (double)b->ns / 1e9 / seconds);
		break;
	case COL_BLOCKS:
		cell_rate(c, (double)b->blocks / seconds);
		break;
	case COL_EACH:
		if (b->blocks)
			cell_duration(c, b->ns / b->blocks);
		else
			cell_text(c, ROLE_DIM, "-");
		break;
	case COL_STATE:
		text[0] = s.state < SF_OFF_STATES ? SF_OFF_LETTERS[s.state] : '?';
		text[1] = 0;
		cell_text(c, s.state == SF_OFF_D ? ROLE_WARN : ROLE_TEXT, text);
		break;
	case COL_PID:
		snprintf(text, sizeof(text), "%u", b->pid);
		cell_text(c, ROLE_TEXT, b->pid ? text : "several");
		break;
	case COL_COMM:
		text_clean(text, sizeof(text), s.comm, strlen(s.comm), 0);
		cell_text(c, ROLE_TEXT, text);
		break;
	default:
		cell_blocked(ui, c, row);
		break;
	}
}

/* ---- Order ---- */

static uint64_t each_ns(const struct blocked_stack *b)
{
	return b->blocks ? b->ns / b->blocks : 0;
}

static int offcpu_compare(const struct ui *ui, unsigned int by, const struct ui_row *a,
			  const struct ui_row *b)
{
	const struct blocked_stack *x = stack_of(ui, a), *y = stack_of(ui, b);
	struct profile_stack sx, sy;
	int c = 0;

	profile_stack(ui->off.window, x->stack, &sx);
	profile_stack(ui->off.window, y->stack, &sy);
	if (by == COL_BLOCKS)
		c = rows_compare(x->blocks, y->blocks);
	else if (by == COL_EACH)
		c = rows_compare(each_ns(x), each_ns(y));
	else if (by == COL_STATE)
		c = rows_compare(sy.state, sx.state);
	else if (by == COL_PID)
		c = rows_compare(y->pid, x->pid);
	else if (by == COL_COMM)
		c = strcmp(sy.comm, sx.comm);
	else if (by == COL_BLOCKED)
		c = strcmp(leaf_of(ui, y), leaf_of(ui, x));
	c = c ? c : rows_compare(x->ns, y->ns);
	c = c ? c : strcmp(sy.comm, sx.comm);
	c = c ? c : strcmp(leaf_of(ui, y), leaf_of(ui, x));
	/* The keys are keyed hashes, so this order differs between runs. */
	return c ? c : rows_compare(x->key, y->key);
}

static bool offcpu_baseline(const struct ui *ui, size_t i, struct baseline_row *ret)
{
	if (i < ui->off.before.n)
		*ret = (struct baseline_row){ ui->off.before.v[i].key, ui->off.before.v[i].ns };
	return i < ui->off.before.n;
}

/* ---- Keys ---- */

/* First into the process or command, then into the function in which the program blocks. */
static void offcpu_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct blocked_stack *b = stack_of(ui, row);
	const uint32_t *ids = profile_symbols(ui->off.window, b->stack, ui->symbols);
	struct zoom z = { .kind = ZOOM_COMM };
	struct profile_stack s;
	struct shown f;
	size_t at;

	profile_stack(ui->off.window, b->stack, &s);
	f = shown_frames(&ui->sel, &s);
	if (row->kind == ROW_FUNCTION) {
		zoom_add_symbol(ui, to, row->symbol, VIEW_OFFCPU);
	} else if (selection_level(&ui->sel, ZOOM_PROCESS) ||
		   selection_level(&ui->sel, ZOOM_COMM)) {
		at = ids && f.nu ? blocked_program_frame(&f, ids, ui->symbols) : 0;
		if (ids && shown_count(&f))
			zoom_add_symbol(ui, to, ids[shown_at(&f, at)], VIEW_OFFCPU);
	} else if (b->pid) {
		z = zoom_of_process(b->pid, s.comm);
		zoom_add(to, &z, VIEW_OFFCPU);
	} else {
		memcpy(z.comm, s.comm, strnlen(s.comm, SF_COMM - 1));
		text_clean(z.label, sizeof(z.label), s.comm, strlen(s.comm), 0);
		zoom_add(to, &z, VIEW_OFFCPU);
	}
}

static const char *offcpu_name(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	(void)dst, (void)cap;
	return leaf_of(ui, stack_of(ui, row));
}

const struct view_spec view_offcpu = {
	.title = "Off-CPU",
	.time = TIME_BLOCKED,
	.finds = FINDS,
	.count = offcpu_count,
	.rows = offcpu_rows,
	.zoom = offcpu_zoom,
	.name = offcpu_name,
	.columns = columns,
	.cell = offcpu_cell,
	.compare = offcpu_compare,
	.baseline = offcpu_baseline,
	.add_parts = offcpu_add_parts,
};
