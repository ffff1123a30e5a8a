/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/rows.h"

struct column_spec {
	enum column id;
	const char *title;
	int width;		/* with the blank before it; 0: the rest of the line */
	int wide;		/* the width on screens of 120 columns and more */
	int from;		/* the narrowest screen that shows it */
	bool left;
};

static const struct column_spec function_columns[] = {
	{ COL_SELF, "SELF%", 7, 7, 0, false },
	{ COL_TOTAL, "TOTAL%", 7, 7, 0, false },
	{ COL_KERNEL, "KERN%", 7, 7, 60, false },
	{ COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_FUNCTION, "FUNCTION", 0, 0, 0, true },
	{ COL_MODULE, "MODULE", 18, 28, 60, true },
	{ 0 },
};

static const struct column_spec process_columns[] = {
	{ COL_PID, "PID", 8, 8, 0, false },
	{ COL_SELF, "SELF%", 7, 7, 0, false },
	{ COL_KERNEL, "KERN%", 7, 7, 60, false },
	{ COL_COMPLETE, "COMPL%", 8, 8, 60, false },
	{ COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_COMM, "NAME", 21, 26, 0, true },
	{ COL_CGROUP, "CGROUP", 22, 28, 108, true },
	{ COL_HOTTEST, "HOTTEST FUNCTION", 0, 0, 60, true },
	{ 0 },
};

static const struct column_spec module_columns[] = {
	{ COL_SELF, "SELF%", 7, 7, 0, false },
	{ COL_TOTAL, "TOTAL%", 7, 7, 0, false },
	{ COL_COMPLETE, "COMPL%", 7, 7, 60, false },
	{ COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_TABLES, "TABLES", 10, 10, 38, true },
	{ COL_ROWS, "ROWS", 8, 9, 70, false },
	{ COL_BYTES, "BYTES", 7, 8, 60, false },
	{ COL_ENDS, "ENDS", 13, 14, 80, true },
	{ COL_FILE, "MODULE", 0, 0, 0, true },
	{ 0 },
};

static const struct column_spec offcpu_columns[] = {
	{ COL_SELF, "TIME%", 7, 7, 0, false },
	{ COL_DIFF, "DIFF", 7, 7, 50, false },
	{ COL_THREADS, "THREADS", 9, 9, 100, false },
	{ COL_BLOCKS, "BLOCKS/s", 9, 10, 70, false },
	{ COL_EACH, "EACH", 7, 8, 60, false },
	{ COL_STATE, "S", 3, 3, 50, true },
	{ COL_PID, "PID", 8, 8, 100, false },
	{ COL_COMM, "NAME", 17, 20, 0, true },
	{ COL_BLOCKED, "BLOCKED IN, AND BELOW IT ITS CALLERS", 0, 0, 0, true },
	{ 0 },
};

static const struct column_spec tree_columns[] = {
	{ COL_TOTAL, "TOTAL%", 7, 7, 0, false },
	{ COL_SELF, "SELF%", 7, 7, 50, false },
	{ COL_FUNCTION, "CALL TREE", 0, 0, 0, true },
	{ COL_MODULE, "MODULE", 18, 28, 70, true },
	{ 0 },
};

static const struct column_spec caller_columns[] = {
	{ COL_TOTAL, "TOTAL%", 7, 7, 0, false },
	{ COL_SELF, "PART%", 7, 7, 50, false },
	{ COL_FUNCTION, "FUNCTION, AND BELOW IT ITS CALLERS", 0, 0, 0, true },
	{ COL_MODULE, "MODULE", 18, 28, 70, true },
	{ 0 },
};

static const struct column_spec *columns_of(enum view view)
{
	switch (view) {
	case VIEW_PROCESSES:
		return process_columns;
	case VIEW_MODULES:
		return module_columns;
	case VIEW_TREE:
		return tree_columns;
	case VIEW_CALLERS:
		return caller_columns;
	case VIEW_OFFCPU:
		return offcpu_columns;
	case VIEW_FLAME:
		return NULL;
	default:
		return function_columns;
	}
}

size_t columns_lay_out(enum view view, bool baseline, int width, struct column_at *ret)
{
	const struct column_spec *specs = columns_of(view), *s;
	int rest = width, x = 0;
	size_t n = 0;

	for (s = specs; s && s->title; s++)
		if (width >= s->from && (s->id != COL_DIFF || baseline))
			rest -= width >= 120 ? s->wide : s->width;
	for (s = specs; s && s->title && n < COLUMNS_MAX; s++) {
		int w = width >= 120 ? s->wide : s->width;

		if (width < s->from || (s->id == COL_DIFF && !baseline))
			continue;
		/* What takes the rest of the line may have no rest; what has a width but stands last may take more. */
		if (!w)
			w = rest > 0 ? rest : 0;
		ret[n++] = (struct column_at){ s->id, s->title, x + (s->left ? 1 : 0), w - (s->left ? 1 : 0), s->left };
		x += w;
	}
	if (n && ret[n - 1].x + ret[n - 1].width < width)
		ret[n - 1].width = width - ret[n - 1].x;
	return n;
}
