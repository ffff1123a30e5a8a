/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/layout.h"
#include "tui/view.h"

static bool is_shown(const struct ui *ui, const struct column_spec *s, int width)
{
	if ((s->flags & COLUMN_IDLE) && ui->sel.no_idle)
		return false;
	return width >= s->from && !(ui->hidden[ui->view] >> s->id & 1) &&
	       (s->id != COL_DIFF || ui_has_baseline(ui));
}

struct layout layout_lines(enum view view, int height)
{
	bool low = height < 16;
	struct layout l = { .trust = 0, .ntrust = low ? 1 : 2 };
	int y = l.ntrust;

	l.tabs = y++;
	l.crumb = low ? -1 : y++;
	l.title = view_at(view)->columns ? y++ : -1;
	l.body = y;
	l.bar = height - 1;
	l.nbody = l.bar > l.body ? l.bar - l.body : 0;
	return l;
}

size_t layout_columns(const struct ui *ui, int width, struct column_at *ret)
{
	const struct column_spec *specs = view_at(ui->view)->columns, *s;
	int rest = width, x = 0;
	size_t n = 0;

	for (s = specs; s && s->title; s++)
		if (is_shown(ui, s, width))
			rest -= width >= 120 ? s->wide : s->width;
	for (s = specs; s && s->title && n < COLUMNS_MAX; s++) {
		int left, w = width >= 120 ? s->wide : s->width;

		if (!is_shown(ui, s, width))
			continue;
		/* The column without a width takes the rest of the line, which may be empty. */
		if (!w)
			w = rest > 0 ? rest : 0;
		left = s->flags & COLUMN_LEFT;
		ret[n++] = (struct column_at){ s->id, s->title, x + left, w - left, left };
		x += w;
	}
	/* The last column always extends to the end of the line. */
	if (n && ret[n - 1].x + ret[n - 1].width < width)
		ret[n - 1].width = width - ret[n - 1].x;
	return n;
}
