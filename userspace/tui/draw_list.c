/* SPDX-License-Identifier: BSD-2-Clause */
/* Views with columns: functions, processes, modules, blocked stacks and the trees. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"
#include "tui/rows.h"
#include "tui/screen.h"
#include "tui/view.h"

struct cursor { /* the cell to draw */
	struct grid *g;
	const struct column_at *col;
	int y;
};

static void draw_text(const struct cursor *c, enum role role, const char *s)
{
	if (c->col->left)
		grid_fit(c->g, c->col->x, c->y, c->col->width, role, s);
	else
		grid_right(c->g, c->col->x, c->y, c->col->width, role, s);
}

static void put_share(const struct cursor *c, uint64_t part, uint64_t sum, bool strong)
{
	double share = ui_share(part, sum);
	char text[16];

	snprintf(text, sizeof(text), "%.1f", share);
	draw_text(c,
		  !part			  ? ROLE_DIM
		  : strong && share >= 10 ? ROLE_STRONG
					  : ROLE_TEXT,
		  sum ? text : "-");
}

static void put_complete(const struct cursor *c, uint64_t complete, uint64_t user_stacks)
{
	double share = ui_share(complete, user_stacks);
	char text[16];

	snprintf(text, sizeof(text), "%.1f", share);
	if (!user_stacks)
		draw_text(c, ROLE_DIM, "-");
	else
		draw_text(c,
			  user_stacks < 20 ? ROLE_TEXT
			  : share < 97	   ? ROLE_BAD
			  : share < 99	   ? ROLE_WARN
					   : ROLE_TEXT,
			  text);
}

static void put_diff(const struct cursor *c, double diff)
{
	char text[16];

	snprintf(text, sizeof(text), "%+.1f", diff);
	draw_text(c,
		  diff >= 0.5	 ? ROLE_BAD
		  : diff <= -0.5 ? ROLE_GOOD
				 : ROLE_DIM,
		  diff > -0.05 && diff < 0.05 ? "0.0" : text);
}

static bool is_kernel(const char *name)
{
	size_t n = strlen(name);

	return n > 4 && strcmp(name + n - 4, "_[k]") == 0;
}

static void put_name(const struct cursor *c, const char *name)
{
	grid_fit(c->g, c->col->x, c->y, c->col->width, is_kernel(name) ? ROLE_KERNEL : ROLE_TEXT,
		 name);
}

void draw_function_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct census_function *f = &ui->census.functions[row->index];

	switch (c->col->id) {
	case COL_SELF:
		put_share(c, f->self, ui->census.sum, true);
		break;
	case COL_TOTAL:
		put_share(c, f->total, ui->census.sum, false);
		break;
	case COL_KERNEL:
		put_share(c, f->kernel, f->total, false);
		break;
	case COL_DIFF:
		put_diff(c, row->diff);
		break;
	case COL_MODULE:
		draw_text(c, ROLE_DIM, f->module);
		break;
	default:
		put_name(c, f->name);
		break;
	}
}

static const char *opening_mark(const struct cursor *c, const struct ui_row *row)
{
	static const char *const marks[][2] = {
		[ROW_LEAF] = { "  ", "  " },
		[ROW_CLOSED] = { "+ ", "\u25b8 " },
		[ROW_OPEN] = { "- ", "\u25be " },
	};

	return marks[row->opening][c->g->unicode];
}

/* "mark name", or "mark name +2": a thread's name and the number of further thread names. */
static void process_name(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct census_process *p = rows_process(ui, row);
	char comm[SF_COMM * 3 + 1], text[128];

	text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
	if (row->kind == ROW_WHOLE && p->names > 1 && !p->named)
		snprintf(text, sizeof(text), "%s%s +%u", opening_mark(c, row), comm, p->names - 1);
	else
		snprintf(text, sizeof(text), "%s%s%s", row->kind == ROW_THREAD ? "  " : "",
			 opening_mark(c, row), comm);
	draw_text(c, ROLE_TEXT, text);
}

/* Narrow screens have no column for it, so the function replaces the name there. */
static void hot_function_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	bool narrow = ui->w < 50;

	if (c->col->id == COL_SELF)
		put_share(c, row->self, ui->census.sum, false);
	else if (c->col->id == (narrow ? COL_COMM : COL_HOTTEST))
		put_name(c, symbolizer_name(ui->symbols, row->symbol));
}

void draw_process_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct census_process *p = rows_process(ui, row);
	char text[64];

	if (row->kind == ROW_FUNCTION) {
		hot_function_cell(ui, c, row);
		return;
	}
	switch (c->col->id) {
	case COL_PID:
		snprintf(text, sizeof(text), "%u", p->pid);
		draw_text(c, row->kind != ROW_WHOLE ? ROLE_DIM : ROLE_TEXT, text);
		break;
	case COL_SELF:
		put_share(c, p->self, ui->census.sum, row->kind == ROW_WHOLE);
		break;
	case COL_KERNEL:
		put_share(c, p->kernel, p->self, false);
		break;
	case COL_COMPLETE:
		put_complete(c, p->complete, p->user_stacks);
		break;
	case COL_DIFF:
		if (row->kind == ROW_WHOLE)
			put_diff(c, row->diff);
		break;
	case COL_COMM:
		process_name(ui, c, row);
		break;
	case COL_CGROUP:
		draw_text(c, ROLE_DIM, rows_cgroup(ui, p, text, sizeof(text)));
		break;
	default:
		put_name(c, symbolizer_name(ui->symbols, p->hottest));
		break;
	}
}

static void module_ends(const struct cursor *c, const struct census_module *m)
{
	uint8_t stop = census_worst_stop(m);

	if (stop != SF_STOP_COMPLETE)
		draw_text(c, ui_share(m->ended[stop], m->user_stacks) >= 3 ? ROLE_BAD : ROLE_TEXT,
			  profile_stop_name(stop));
}

void draw_module_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct census_module *m = &ui->census.modules[row->index];
	char text[512] = "-";

	switch (c->col->id) {
	case COL_SELF:
		put_share(c, m->self, ui->census.sum, true);
		break;
	case COL_TOTAL:
		put_share(c, m->total, ui->census.sum, false);
		break;
	case COL_COMPLETE:
		put_complete(c, m->complete, m->user_stacks);
		break;
	case COL_DIFF:
		put_diff(c, row->diff);
		break;
	case COL_TABLES:
		draw_text(c, m->file && !m->file->rows ? ROLE_WARN : ROLE_TEXT,
			  rows_module_tables(m));
		break;
	case COL_ROWS:
		draw_text(c, ROLE_TEXT,
			  m->file ? screen_amount(m->file->rows, text, sizeof(text)) : text);
		break;
	case COL_BYTES:
		draw_text(c, ROLE_TEXT,
			  m->file ? screen_bytes(m->file->bytes, text, sizeof(text)) : text);
		break;
	case COL_ENDS:
		module_ends(c, m);
		break;
	default:
		draw_text(c, ROLE_TEXT, rows_module_name(m, text, sizeof(text)));
		break;
	}
}

/* ---- Blocked stacks ---- */

static void put_duration(const struct cursor *c, uint64_t ns)
{
	char text[24];

	if (ns < 10 * NUM_MS)
		snprintf(text, sizeof(text), "%.*f%s", ns < NUM_MS ? 0 : 1,
			 (double)ns / (ns < NUM_MS ? 1e3 : 1e6), ns < NUM_MS ? "us" : "ms");
	else
		snprintf(text, sizeof(text), ns < NUM_S ? "%.0fms" : "%.1fs",
			 (double)ns / (ns < NUM_S ? 1e6 : 1e9));
	draw_text(c, ROLE_TEXT, text);
}

static void put_rate(const struct cursor *c, double v)
{
	char text[24];

	snprintf(text, sizeof(text), "%.*f", v < 100 ? 1 : 0, v);
	draw_text(c, v < 0.05 ? ROLE_DIM : ROLE_TEXT, text);
}

static void blocked_in(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	char text[1024];
	int n;

	if (row->kind == ROW_FUNCTION) {
		grid_fit(c->g, c->col->x + 4, c->y, c->col->width - 4,
			 is_kernel(symbolizer_name(ui->symbols, row->symbol)) ? ROLE_KERNEL
									      : ROLE_TEXT,
			 symbolizer_name(ui->symbols, row->symbol));
		return;
	}
	n = grid_text(c->g, c->col->x, c->y, c->col->width, ROLE_DIM, opening_mark(c, row));
	if (row->opening == ROW_OPEN)
		snprintf(text, sizeof(text), "%s",
			 rows_blocked_leaf(ui, &ui->off.now.v[row->index]));
	else
		blocked_text(&ui->off.now.v[row->index], ui->off.window, ui->symbols, &ui->sel,
			     c->g->unicode ? " \u2039 " : " < ", text, sizeof(text));
	grid_fit(c->g, c->col->x + n, c->y, c->col->width - n, ROLE_TEXT, text);
}

void draw_blocked_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct blocked_stack *b = &ui->off.now.v[row->index];
	double seconds = ui->off.sum.seconds > 0 ? ui->off.sum.seconds : 1;
	struct profile_stack s;
	char text[SF_COMM * 3 + 1];

	if (row->kind == ROW_FUNCTION && c->col->id != COL_BLOCKED)
		return;
	profile_stack(ui->off.window, b->stack, &s);
	switch (c->col->id) {
	case COL_SELF:
		put_share(c, b->ns, ui->off.now.ns, true);
		break;
	case COL_DIFF:
		put_diff(c, row->diff);
		break;
	case COL_THREADS:
		put_rate(c, (double)b->ns / 1e9 / seconds);
		break;
	case COL_BLOCKS:
		put_rate(c, (double)b->blocks / seconds);
		break;
	case COL_EACH:
		if (b->blocks)
			put_duration(c, b->ns / b->blocks);
		else
			draw_text(c, ROLE_DIM, "-");
		break;
	case COL_STATE:
		text[0] = s.state < SF_OFF_STATES ? SF_OFF_LETTERS[s.state] : '?';
		text[1] = 0;
		draw_text(c, s.state == SF_OFF_D ? ROLE_WARN : ROLE_TEXT, text);
		break;
	case COL_PID:
		snprintf(text, sizeof(text), "%u", b->pid);
		draw_text(c, ROLE_TEXT, b->pid ? text : "several");
		break;
	case COL_COMM:
		text_clean(text, sizeof(text), s.comm, strlen(s.comm), 0);
		draw_text(c, ROLE_TEXT, text);
		break;
	default:
		blocked_in(ui, c, row);
		break;
	}
}

/* ---- The wall clock ---- */

static void put_threads(const struct cursor *c, double v, bool strong)
{
	char text[24];

	snprintf(text, sizeof(text), "%.*f", v < 10 ? 2 : v < 1000 ? 1 : 0, v);
	draw_text(c, v < 0.005 ? ROLE_DIM : strong ? ROLE_STRONG : ROLE_TEXT, text);
}

/* Below a process: the threads, and from the next column on what they did. */
static void wall_part(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	int x = c->col->x + c->col->width + 2;
	char text[1024];

	if (c->col->id != COL_SELF)
		return;
	put_threads(c, ui->off.wall.parts[row->symbol].threads, false);
	rows_wall_stack(ui, row, c->g->unicode ? " \u2039 " : " < ", text, sizeof(text));
	grid_fit(c->g, x, c->y, c->g->w - x, ROLE_TEXT, text);
}

void draw_wall_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct wall_process *p = &ui->off.wall.v[row->index];
	char text[SF_COMM * 3 + 1];
	int n;

	if (row->kind == ROW_PART) {
		wall_part(ui, c, row);
		return;
	}
	switch (c->col->id) {
	case COL_PID:
		snprintf(text, sizeof(text), "%u", p->pid);
		draw_text(c, ROLE_TEXT, text);
		break;
	case COL_SELF:
		put_threads(c, p->sum, p->sum >= 1);
		break;
	case COL_COMM:
		n = grid_text(c->g, c->col->x, c->y, c->col->width, ROLE_DIM, opening_mark(c, row));
		grid_fit(c->g, c->col->x + n, c->y, c->col->width - n, ROLE_TEXT,
			 rows_wall_name(ui, row, text, sizeof(text)));
		break;
	default:
		put_threads(c, p->threads[c->col->id - COL_RUNNING], false);
		break;
	}
}

/* ---- Trees ---- */

static void node_name(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct calltree_node *node = &ui->tree.nodes[row->index];
	int x = c->col->x, left = c->col->width, indent = 2 * row->indent, most = left / 2;
	enum role role = ROLE_TEXT;
	char name[512];

	if (row->folded)
		snprintf(name, sizeof(name), "%s %u frames", c->g->unicode ? "\u22ef" : "...",
			 row->folded);
	else
		rows_node_name(ui, node, name, sizeof(name));
	if (row->folded)
		role = ROLE_DIM;
	else if (node->label == LABEL_COMM)
		role = ROLE_STRONG;
	else if (node->label == LABEL_STOP)
		role = ROLE_BAD;
	else if (is_kernel(name))
		role = ROLE_KERNEL;
	if (row->match)
		role = ROLE_MATCH;
	/* At least half of the column remains for the name. */
	indent = indent < most ? indent : most;
	x += indent;
	left -= indent;
	x += grid_text(c->g, x, c->y, left, ROLE_DIM, opening_mark(c, row));
	grid_fit(c->g, x, c->y, left - 2, role, name);
}

void draw_tree_cell(const struct ui *ui, const struct cursor *c, const struct ui_row *row)
{
	const struct calltree_node *node = &ui->tree.nodes[row->index],
				   *parent = &ui->tree.nodes[node->parent];

	switch (c->col->id) {
	case COL_TOTAL:
		put_share(c, node->total, ui->tree.nodes[CALLTREE_ROOT].total, true);
		break;
	case COL_SELF:
		if (ui->view == VIEW_TREE)
			put_share(c, node->self, ui->tree.nodes[CALLTREE_ROOT].total, false);
		else
			put_share(c, node->total, parent->total, false);
		break;
	case COL_MODULE:
		draw_text(c, ROLE_DIM, row->folded ? "" : rows_node_module(ui, node));
		break;
	default:
		node_name(ui, c, row);
		break;
	}
}

/* ---- Both ---- */

void draw_titles(const struct ui *ui, struct grid *g, const struct layout *l)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	struct column_at cols[COLUMNS_MAX];
	size_t n = layout_columns(ui, g->w, cols);
	bool list = IN(ui->view) & IN_LISTS;

	grid_fill(g, 0, l->title, g->w, ROLE_TITLE, ' ');
	for (size_t i = 0; i < n; i++) {
		bool on = list && cols[i].id == pos->sort;
		struct cursor c = { g, &cols[i], l->title };
		char text[64];

		/* A character marks the sort column, because there may be no colours. */
		snprintf(text, sizeof(text), "%s%s", cols[i].title,
			 !on	       ? ""
			 : g->unicode  ? pos->invert ? "\u25b4" : "\u25be"
			 : pos->invert ? "^"
				       : "v");
		draw_text(&c, on ? ROLE_TITLE_ON : ROLE_TITLE, text);
	}
}

void draw_table(const struct ui *ui, struct grid *g, const struct layout *l)
{
	const struct ui_position *pos = &ui->pos[ui->view];
	struct column_at cols[COLUMNS_MAX];
	size_t n = layout_columns(ui, g->w, cols);

	for (int y = 0; y < l->nbody && pos->scroll + (size_t)y < ui->nrows; y++) {
		size_t at = pos->scroll + (size_t)y;

		for (size_t i = 0; i < n; i++) {
			struct cursor c = { g, &cols[i], l->body + y };

			view_at(ui->view)->cell(ui, &c, &ui->rows[at]);
		}
		if (at == pos->cursor)
			grid_role(g, 0, l->body + y, g->w, ROLE_CURSOR);
	}
}
