/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/view.h"

_Static_assert(VIEW_MAX <= 9, "views have the keys 1 to 9");

const struct view_spec *view_at(enum view view)
{
	static const struct view_spec *const views[VIEW_MAX] = {
#define VIEW(id, name) [VIEW_##id] = &view_##name,
#include "tui/views.def"
#undef VIEW
	};

	return views[view];
}

const char *view_name(enum view view)
{
	static const char *const names[VIEW_MAX] = {
#define VIEW(id, name) [VIEW_##id] = #name,
#include "tui/views.def"
#undef VIEW
	};

	return names[view];
}

bool ui_needs_offcpu(const struct ui *ui)
{
	return view_at(ui->view)->time != TIME_RUNNING;
}

bool ui_has_baseline(const struct ui *ui)
{
	const struct view_spec *view = view_at(ui->view);

	return view->baseline && (view->time == TIME_BLOCKED ? ui->off.baseline : ui->baseline);
}
