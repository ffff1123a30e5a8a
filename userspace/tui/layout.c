/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/layout.h"
#include "tui/view.h"

const struct column_spec function_columns[] = {
	{ COL_SELF, "SELF%", 7, 7, 0, false },
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, false },
	{ COL_KERNEL, "KERN%", 7, 7, 60, false },
	{ COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_FUNCTION, "FUNCTION", 0, 0, 0, true },
	{ COL_MODULE, "MODULE", 18, 28, 60, true },
	{ 0 },
};

const struct column_spec process_columns[] = {
	{ COL_PID, "PID", 8, 8, 0, false },
	{ COL_SELF, "SELF%", 7, 7, 0, false },
	{ COL_KERNEL, "KERN%", 7, 7, 70, false },
	{ COL_COMPLETE, "COMPL%", 8, 8, 76, false },
	{ COL_DIFF, "DIFF", 7, 7, 66, false },
	{ COL_COMM, "NAME", 18, 26, 0, true },
	{ COL_CGROUP, "CGROUP", 22, 28, 108, true },
	{ COL_HOTTEST, "HOTTEST FUNCTION", 0, 0, 50, true },
	{ 0 },
};

const struct column_spec module_columns[] = {
	{ COL_SELF, "SELF%", 7, 7, 0, false },	     { COL_TOTAL, "TOTAL%", 8, 8, 0, false },
	{ COL_COMPLETE, "COMPL%", 8, 8, 60, false }, { COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_TABLES, "TABLES", 10, 10, 38, true },  { COL_ROWS, "ROWS", 8, 9, 70, false },
	{ COL_BYTES, "BYTES", 7, 8, 60, false },     { COL_ENDS, "ENDS", 13, 14, 80, true },
	{ COL_FILE, "MODULE", 0, 0, 0, true },	     { 0 },
};

const struct column_spec offcpu_columns[] = {
	{ COL_SELF, "TIME%", 7, 7, 0, false },
	{ COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_THREADS, "THREADS", 9, 9, 100, false },
	{ COL_BLOCKS, "BLOCKS/s", 9, 10, 70, false },
	{ COL_EACH, "EACH", 7, 8, 60, false },
	{ COL_STATE, "S", 3, 3, 50, true },
	{ COL_PID, "PID", 8, 8, 100, false },
	{ COL_COMM, "NAME", 17, 20, 0, true },
	{ COL_BLOCKED, "BLOCKED IN, THEN ITS CALLERS", 0, 0, 0, true },
	{ 0 },
};

/* In threads: the average number of threads that were in the state. */
const struct column_spec wall_columns[] = {
	{ COL_PID, "PID", 8, 8, 0, false },	 { COL_SELF, "ALL", 7, 8, 0, false },
	{ COL_RUNNING, "RUN", 7, 8, 0, false },	 { COL_READY, "READY", 6, 8, 60, false },
	{ COL_LOCK, "LOCK", 6, 8, 40, false },	 { COL_IO, "I/O", 6, 8, 40, false },
	{ COL_PEER, "NET", 6, 8, 60, false },	 { COL_SLEEP, "SLEEP", 7, 8, 70, false },
	{ COL_OTHER, "OTHER", 7, 8, 70, false }, { COL_IDLE, "IDLE", 7, 8, 76, false },
	{ COL_COMM, "NAME", 0, 0, 0, true },	 { 0 },
};

const struct column_spec tree_columns[] = {
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, false },
	{ COL_SELF, "SELF%", 7, 7, 50, false },
	{ COL_FUNCTION, "CALL TREE", 0, 0, 0, true },
	{ COL_MODULE, "MODULE", 18, 28, 70, true },
	{ 0 },
};

const struct column_spec caller_columns[] = {
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, false },
	{ COL_SELF, "PART%", 7, 7, 50, false },
	{ COL_FUNCTION, "FUNCTION, ITS CALLERS BELOW", 0, 0, 0, true },
	{ COL_MODULE, "MODULE", 18, 28, 70, true },
	{ 0 },
};

static bool is_shown(const struct ui *ui, const struct column_spec *s, int width)
{
	if (s->id == COL_IDLE && ui->sel.no_idle)
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
	l.title = view == VIEW_FLAME ? -1 : y++;
	l.body = y;
	l.bar = height - 1;
	l.nbody = l.bar - l.body;
	if (l.nbody < 0)
		l.nbody = 0;
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
		int w = width >= 120 ? s->wide : s->width;

		if (!is_shown(ui, s, width))
			continue;
		/* The column without a width takes the rest of the line, which may be empty. */
		if (!w)
			w = rest > 0 ? rest : 0;
		ret[n++] = (struct column_at){ s->id, s->title, x + (s->left ? 1 : 0),
					       w - (s->left ? 1 : 0), s->left };
		x += w;
	}
	/* The last column always extends to the end of the line. */
	if (n && ret[n - 1].x + ret[n - 1].width < width)
		ret[n - 1].width = width - ret[n - 1].x;
	return n;
}
