/* SPDX-License-Identifier: BSD-2-Clause */
/* Zooming into a row and back. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/rows.h"
#include "tui/ui_internal.h"
#include "tui/view.h"
#include "tui/zoom.h"

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

void zoom_process_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct census_process *p = rows_process(ui, row);
	struct zoom z = zoom_of_process(p->pid, p->comm);

	if (row->kind == ROW_THREAD)
		memcpy(z.comm, p->comm, sizeof(z.comm));
	if (row->kind != ROW_FUNCTION || !zoom_has(ui, ZOOM_PROCESS, p->pid))
		zoom_add(to, &z, VIEW_FUNCTIONS);
	if (row->kind == ROW_FUNCTION)
		zoom_add_symbol(ui, to, row->symbol, VIEW_CALLERS);
}

void zoom_module_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct census_module *m = &ui->census.modules[row->index];
	struct zoom z = { .kind = ZOOM_MODULE, .id = m->index };

	rows_module_name(m, z.label, sizeof(z.label));
	if (m->total)
		zoom_add(to, &z, VIEW_FUNCTIONS);
	else
		to->refused = "this module has no samples";
}

/* First into the process or command, then into the function in which the program blocks. */
void zoom_blocked_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct blocked_stack *b = &ui->off.now.v[row->index];
	const uint32_t *ids = profile_symbols(ui->off.window, b->stack, ui->symbols);
	struct zoom z = { .kind = ZOOM_COMM };
	struct profile_stack s;
	struct shown f;
	size_t at;

	profile_stack(ui->off.window, b->stack, &s);
	f = shown_frames(&ui->sel, &s);
	if (row->kind == ROW_FUNCTION) {
		zoom_add_symbol(ui, to, row->symbol, VIEW_OFFCPU);
	} else if (zoom_has(ui, ZOOM_PROCESS, s.pid) || zoom_has(ui, ZOOM_COMM, 0)) {
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

/* Into the process: what runs, or what it waits for, whichever is more. */
void zoom_wall_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct wall *w = &ui->off.wall;
	const struct wall_process *p = &w->v[row->index];
	struct zoom z = zoom_of_process(p->pid, p->name);
	bool running = row->kind == ROW_PART ? w->parts[row->symbol].note == WAIT_RUNNING
					     : p->threads[WALL_RUNNING] > p->sum / 2;

	zoom_add(to, &z, running ? VIEW_FUNCTIONS : VIEW_OFFCPU);
}

void zoom_function_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	zoom_add_symbol(ui, to, ui->census.functions[row->index].symbol, VIEW_CALLERS);
}

void zoom_tree_row(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct calltree_node *node = &ui->tree.nodes[row->index];
	struct zoom z = { .kind = node->label == LABEL_PROCESS ? ZOOM_NAME : ZOOM_COMM };

	/* The root of the flame and stop reasons lead nowhere. */
	if (!row->index || node->label == LABEL_STOP)
		return;
	if (node->label == LABEL_SYMBOL) {
		zoom_add_symbol(ui, to, node->id, ui->view);
		return;
	}
	snprintf(z.comm, sizeof(z.comm), "%s", calltree_comm(&ui->tree, node->id));
	rows_node_name(ui, node, z.label, sizeof(z.label));
	zoom_add(to, &z, ui->view);
}

void ui_zoom(struct ui *ui)
{
	const struct ui_row *row = ui_current(ui);
	struct zoom_path to = { 0 };

	if (!row)
		return;
	if (row->folded) {
		ui_open_row(ui, ACT_OPEN);
		return;
	}
	view_at(ui->view)->zoom(ui, row, &to);
	if (to.refused)
		ui_say(ui, false, to.refused);
	for (unsigned int i = 0; i < to.n; i++)
		if (!zoom_into(ui, &to.v[i].zoom, to.v[i].view))
			break;
}
