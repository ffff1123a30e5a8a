/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/ui_zoom.h"

#include <string.h>

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
