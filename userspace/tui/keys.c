/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/keys.h"
#include "tui/view.h"

#include <stdio.h>
#include <string.h>

static const struct binding bindings[] = {
	{ ACT_HELP, IN_ALL, { K_F0 + 1, 'h', '?' }, "Help", "this help; any key closes it" },
	{ ACT_QUIT, IN_ALL, { 'q', K_F0 + 10 }, "Quit", "quit" },

	{ ACT_NEXT_VIEW, IN_ALL, { KEY_TABULATOR }, "View", "the next view" },
	{ ACT_PREV_VIEW, IN_ALL, { K_BACK_TAB }, NULL, "the previous view" },
	{ ACT_VIEW, IN_ALL, { '1' }, NULL, "the view with this number" },
	{ ACT_TREE, IN_ALL, { 't', K_F0 + 5 }, NULL, "the call tree" },

	{ ACT_ENTER,
	  IN_ALL,
	  { KEY_RETURN },
	  "Zoom",
	  "zoom into the row: a function shows its callers" },
	{ ACT_ANNOTATE,
	  WITH_SYMBOL,
	  { 'a' },
	  NULL,
	  "annotate: the function's instructions, each with its share of the samples" },
	{ ACT_BACK,
	  IN_ALL,
	  { KEY_ESCAPE, KEY_RUBOUT },
	  "Back",
	  "clear the filter, or zoom out by one level" },

	{ ACT_UP, IN_TABLES, { K_UP, 'k' }, NULL, "one row up" },
	{ ACT_DOWN, IN_TABLES, { K_DOWN, 'j' }, NULL, "one row down" },
	{ ACT_PAGE_UP, IN_TABLES, { K_PAGE_UP }, NULL, "one page up" },
	{ ACT_PAGE_DOWN, IN_TABLES, { K_PAGE_DOWN }, NULL, "one page down" },
	{ ACT_FIRST, IN_ALL, { K_HOME, 'g' }, NULL, "the first row" },
	{ ACT_LAST, IN_TABLES, { K_END, 'G' }, NULL, "the last row" },
	{ ACT_FOLLOW,
	  IN_TABLES,
	  { 'F' },
	  NULL,
	  "follow the row when the order changes, even from the top" },
	{ ACT_OUTER, IN_PICTURES, { K_UP, 'k' }, NULL, "flame: the caller" },
	{ ACT_DEEPER, IN_PICTURES, { K_DOWN, 'j' }, NULL, "flame: the widest callee" },
	{ ACT_LEFT, IN_PICTURES, { K_LEFT }, NULL, "flame: the frame to the left" },
	{ ACT_RIGHT, IN_PICTURES, { K_RIGHT }, NULL, "flame: the frame to the right" },

	{ ACT_TOGGLE, WITH_PARTS, { ' ' }, NULL, "open or close the row" },
	{ ACT_OPEN, WITH_PARTS, { '+' }, NULL, "open the row" },
	{ ACT_CLOSE, WITH_PARTS, { '-' }, NULL, "close the row" },
	{ ACT_OPEN, IN_TREES, { K_RIGHT }, NULL, "open the row (trees)" },
	{ ACT_CLOSE, IN_TREES, { K_LEFT }, NULL, "close row, or go to its parent (trees)" },
	{ ACT_OPEN_ALL, WITH_PARTS, { 'E' }, NULL, "open all rows" },
	{ ACT_CLOSE_ALL, WITH_PARTS, { 'C' }, NULL, "close all rows" },

	{ ACT_SORT_NEXT, IN_LISTS, { K_F0 + 6, '>', K_RIGHT }, "Sort", "sort by the next column" },
	{ ACT_SORT_PREV, IN_LISTS, { '<', K_LEFT }, NULL, "sort by the previous column" },
	{ ACT_SORT_SELF, IN_LISTS, { 'P' }, NULL, "sort by self share" },
	{ ACT_SORT_TOTAL, BY_TOTAL, { 'T' }, NULL, "sort by total share, which includes callees" },
	{ ACT_SORT_PID, BY_PID, { 'N' }, NULL, "sort by process id" },
	{ ACT_INVERT, IN_LISTS, { 'I' }, NULL, "invert the order" },

	{ ACT_FILTER,
	  IN_ALL,
	  { '/', K_F0 + 4 },
	  "Filter",
	  "filter by part of the name; empty: no filter" },
	{ ACT_NEXT_MATCH, IN_ALL, { 'n' }, NULL, "the next row that matches the filter" },
	{ ACT_HIDE_KERNEL, IN_ALL, { 'K' }, NULL, "hide or show kernel frames" },
	{ ACT_HIDE_IDLE,
	  WITH_IDLE,
	  { 'i' },
	  NULL,
	  "off-CPU and wall: show or hide idle threads, such as those in epoll_wait" },
	{ ACT_CPU, WITH_CPUS, { 'c' }, NULL, "show only one CPU: enter its number; empty: all" },
	{ ACT_CPU_NEXT, WITH_CPUS, { ']' }, NULL, "the next CPU; after the last one: all" },
	{ ACT_CPU_PREV, WITH_CPUS, { '[' }, NULL, "the previous CPU" },
	{ ACT_USER,
	  IN_ALL,
	  { 'u' },
	  NULL,
	  "show only processes of one user: name or number; empty: all" },
	{ ACT_WINDOW, IN_ALL, { 'w' }, NULL, "window: last 5 s, last 30 s, all" },
	{ ACT_PAUSE, IN_ALL, { 'Z' }, "Pause", "pause or resume" },
	{ ACT_RESET, IN_ALL, { 'z' }, NULL, "discard all samples so far" },
	{ ACT_DELAY, IN_ALL, { 'd' }, NULL, "set the time between refreshes" },
	{ ACT_BASELINE,
	  WITH_BASELINE,
	  { 'b' },
	  NULL,
	  "mark a baseline (DIFF shows the change since then), or clear it" },
	{ ACT_WRITE,
	  IN_ALL,
	  { 'W', K_F0 + 12 },
	  NULL,
	  "write the shown stacks to files: folded, json, pprof, html" },
	{ ACT_SEARCH,
	  IN_ALL,
	  { K_F0 + 3 },
	  "Search",
	  "search for a name while typing; again: the next row" },
	{ ACT_SIGNAL,
	  IN_ALL,
	  { K_F0 + 9 },
	  "Signal",
	  "send a signal to the process of the row; asks which one first" },
	{ ACT_SETUP,
	  IN_ALL,
	  { K_F0 + 2 },
	  "Setup",
	  "choose columns, colours, times; saved for the next start" },
	{ ACT_REDRAW, IN_ALL, { 'L' & 0x1f }, NULL, "redraw the screen" },
};

#define NBINDINGS (sizeof(bindings) / sizeof(bindings[0]))

const struct binding *keys_at(size_t i)
{
	return i < NBINDINGS ? &bindings[i] : NULL;
}

static bool has_column(const struct view_spec *view, enum column id)
{
	const struct column_spec *col = view->columns;

	while (col && col->title && col->id != id)
		col++;
	return col && col->title;
}

bool keys_work(const struct binding *b, enum view view)
{
	const struct view_spec *v = view_at(view);
	bool list = v->compare, tree = v->columns && !list;
	const bool works[] = {
		[IN_ALL] = true,
		[IN_LISTS] = list,
		[IN_TREES] = tree,
		[IN_TABLES] = list || tree,
		[IN_PICTURES] = v->draw,
		[WITH_PARTS] = tree || v->add_parts,
		[BY_TOTAL] = list && has_column(v, COL_TOTAL),
		[BY_PID] = list && has_column(v, COL_PID),
		[WITH_SYMBOL] = v->annotates,
		[WITH_BASELINE] = v->baseline,
		[WITH_CPUS] = v->time == TIME_RUNNING,
		[WITH_IDLE] = v->time != TIME_RUNNING,
	};

	return works[b->place];
}

enum action keys_find(uint32_t key, enum view view)
{
	for (size_t i = 0; i < NBINDINGS && key; i++) {
		const struct binding *b = &bindings[i];

		for (size_t k = 0; k < 4 && keys_work(b, view); k++)
			if (b->keys[k] == key)
				return b->action;
	}
	return ACT_NONE;
}

const char *keys_name(uint32_t key, char *dst, size_t cap)
{
	static const struct {
		uint32_t key;
		const char *name;
	} names[] = {
		{ KEY_TABULATOR, "Tab" }, { KEY_RETURN, "Enter" },
		{ KEY_ESCAPE, "Esc" },	  { KEY_RUBOUT, "Backspace" },
		{ ' ', "Space" },	  { K_UP, "Up" },
		{ K_DOWN, "Down" },	  { K_LEFT, "Left" },
		{ K_RIGHT, "Right" },	  { K_PAGE_UP, "PgUp" },
		{ K_PAGE_DOWN, "PgDn" },  { K_HOME, "Home" },
		{ K_END, "End" },	  { K_BACK_TAB, "Shift-Tab" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].key == key) {
			snprintf(dst, cap, "%s", names[i].name);
			return dst;
		}
	}
	if (key > K_F0 && key <= K_LAST)
		snprintf(dst, cap, "F%u", key - K_F0);
	else if (key < 0x20)
		snprintf(dst, cap, "Ctrl-%c", (char)(key + '@'));
	else
		snprintf(dst, cap, "%c", (char)key);
	return dst;
}

const char *keys_text(const struct binding *b, char *dst, size_t cap)
{
	size_t n = 0;
	char one[16];

	dst[0] = 0;
	if (b->action == ACT_VIEW) {
		snprintf(dst, cap, "1 .. %d", VIEW_MAX);
		return dst;
	}
	for (size_t k = 0; k < 4 && b->keys[k] && n < cap; k++)
		n += (size_t)snprintf(dst + n, cap - n, "%s%s", k ? " " : "",
				      keys_name(b->keys[k], one, sizeof(one)));
	return dst;
}
