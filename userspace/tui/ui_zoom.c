/* SPDX-License-Identifier: BSD-2-Clause */
/* Zooming into a row and back. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/rows.h"
#include "tui/ui_internal.h"
#include "tui/view.h"

static bool zoom_into(struct ui *ui, const struct zoom *z, enum view view)
{
	unsigned int n = ui->sel.n;

	if (n == ZOOM_MAX) {
		ui_say(ui, false, "maximum zoom depth reached");
		return false;
	}
	for (unsigned int i = 0; i < n; i++) {
		const struct zoom *have = &ui->sel.levels[i];

		if (have->kind == z->kind && have->id == z->id &&
		    memcmp(have->comm, z->comm, sizeof(z->comm)) == 0) {
			ui_say(ui, false, "already zoomed into this row");
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
	ui_set_view(ui, view);
	return true;
}

bool ui_zoom_back(struct ui *ui)
{
	unsigned int n = ui->sel.n;

	if (ui->filter[0]) {
		ui->filter[0] = 0;
		ui_rearrange(ui);
		return true;
	}
	if (!n)
		return false;
	ui->sel.n--;
	memcpy(ui->pos, ui->came_from[n - 1].pos, sizeof(ui->pos));
	ui_set_view(ui, ui->came_from[n - 1].view);
	return true;
}

static void zoom_symbol(struct ui *ui, uint32_t symbol, enum view view)
{
	struct zoom z = { .kind = ZOOM_FUNCTION, .id = symbol };

	snprintf(z.label, sizeof(z.label), "%s", symbolizer_name(ui->symbols, symbol));
	zoom_into(ui, &z, view);
}

static bool is_in(const struct ui *ui, enum zoom_kind kind, uint32_t id)
{
	for (unsigned int i = 0; i < ui->sel.n; i++)
		if (ui->sel.levels[i].kind == kind &&
		    (kind == ZOOM_COMM || ui->sel.levels[i].id == id))
			return true;
	return false;
}

void zoom_process_row(struct ui *ui, const struct ui_row *row)
{
	const struct census_process *p = rows_process(ui, row);
	struct zoom z = { .kind = ZOOM_PROCESS, .id = p->pid };
	char comm[SF_COMM * 3 + 1];
	uint32_t symbol;

	if (row->kind == ROW_THREAD)
		memcpy(z.comm, p->comm, sizeof(z.comm));
	text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
	snprintf(z.label, sizeof(z.label), "%s (%u)", comm, p->pid);
	symbol = row->symbol;
	if (row->kind != ROW_FUNCTION)
		zoom_into(ui, &z, VIEW_FUNCTIONS);
	else if (is_in(ui, ZOOM_PROCESS, z.id) ||
		 zoom_into(ui, &z, VIEW_FUNCTIONS)) /* row is dangling from here on */
		zoom_symbol(ui, symbol, VIEW_CALLERS);
}

static void zoom_module(struct ui *ui, const struct census_module *m)
{
	struct zoom z = { .kind = ZOOM_MODULE, .id = m->index };

	if (!m->total) {
		ui_say(ui, false, "this module has no samples");
		return;
	}
	rows_module_name(m, z.label, sizeof(z.label));
	zoom_into(ui, &z, VIEW_FUNCTIONS);
}

static void zoom_node(struct ui *ui, const struct calltree_node *node)
{
	struct zoom z = { .kind = node->label == LABEL_PROCESS ? ZOOM_NAME : ZOOM_COMM };

	if (node->label == LABEL_SYMBOL) {
		zoom_symbol(ui, node->id, ui->view);
	} else if (node->label != LABEL_STOP && node->depth) {
		snprintf(z.comm, sizeof(z.comm), "%s", calltree_comm(&ui->tree, node->id));
		rows_node_name(ui, node, z.label, sizeof(z.label));
		zoom_into(ui, &z, ui->view);
	}
}

/* First into the process or command, then into the function in which the program blocks. */
void zoom_blocked_row(struct ui *ui, const struct ui_row *row)
{
	const struct blocked_stack *b = &ui->off.now.v[row->index];
	const uint32_t *ids = profile_symbols(ui->off.window, b->stack, ui->symbols);
	char comm[SF_COMM * 3 + 1];
	struct profile_stack s;
	struct shown f;
	struct zoom z = { .kind = b->pid ? ZOOM_PROCESS : ZOOM_COMM, .id = b->pid };

	profile_stack(ui->off.window, b->stack, &s);
	f = shown_frames(&ui->sel, &s);
	if (row->kind == ROW_FUNCTION || is_in(ui, ZOOM_PROCESS, s.pid) ||
	    is_in(ui, ZOOM_COMM, 0)) {
		if (ids && shown_count(&f))
			zoom_symbol(ui,
				    row->kind == ROW_FUNCTION
					    ? row->symbol
					    : ids[shown_at(&f, f.nu ? blocked_program_frame(
									      &f, ids, ui->symbols)
								    : 0)],
				    VIEW_OFFCPU);
		return;
	}
	if (!b->pid)
		memcpy(z.comm, s.comm, strnlen(s.comm, SF_COMM - 1));
	text_clean(comm, sizeof(comm), s.comm, strlen(s.comm), 0);
	if (b->pid)
		snprintf(z.label, sizeof(z.label), "%s (%u)", comm, b->pid);
	else
		snprintf(z.label, sizeof(z.label), "%s", comm);
	zoom_into(ui, &z, VIEW_OFFCPU);
}

/* Into the process: what runs, or what it waits for, whichever is more. */
void zoom_wall_row(struct ui *ui, const struct ui_row *row)
{
	const struct wall *w = &ui->off.wall;
	const struct wall_process *p = &w->v[row->index];
	struct zoom z = { .kind = ZOOM_PROCESS, .id = p->pid };
	bool running = row->kind == ROW_PART ? w->parts[row->symbol].note == WAIT_RUNNING
					     : p->threads[WALL_RUNNING] > p->sum / 2;
	char name[SF_COMM * 3 + 1];

	text_clean(name, sizeof(name), p->name, strnlen(p->name, SF_COMM), 0);
	snprintf(z.label, sizeof(z.label), "%s (%u)", name, p->pid);
	zoom_into(ui, &z, running ? VIEW_FUNCTIONS : VIEW_OFFCPU);
}

void zoom_function_row(struct ui *ui, const struct ui_row *row)
{
	zoom_symbol(ui, ui->census.functions[row->index].symbol, VIEW_CALLERS);
}

void zoom_module_row(struct ui *ui, const struct ui_row *row)
{
	zoom_module(ui, &ui->census.modules[row->index]);
}

void zoom_tree_row(struct ui *ui, const struct ui_row *row)
{
	if (row->folded)
		ui_open_row(ui, ACT_OPEN);
	else if (row->index) /* not the root of the flame */
		zoom_node(ui, &ui->tree.nodes[row->index]);
}

void ui_zoom(struct ui *ui)
{
	const struct ui_row *row = ui_current(ui);

	if (row)
		view_at(ui->view)->zoom(ui, row);
}
