/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/keys.h"

#include <stdio.h>
#include <string.h>

#define FLAME	IN(VIEW_FLAME)
#define OFFCPU	IN(VIEW_OFFCPU)
#define WALL	IN(VIEW_WALL)
#define OPENING (IN_TREES | IN(VIEW_PROCESSES) | OFFCPU | WALL)

static const struct binding bindings[] = {
	{ ACT_HELP, IN_ALL, { K_F0 + 1, 'h', '?' }, NULL, "Help", "this help; any key closes it" },
	{ ACT_QUIT, IN_ALL, { 'q', K_F0 + 10 }, NULL, "Quit", "quit" },

	{ ACT_NEXT_VIEW, IN_ALL, { KEY_TABULATOR }, NULL, "View", "the next view" },
	{ ACT_PREV_VIEW, IN_ALL, { K_BACK_TAB }, NULL, NULL, "the previous view" },
	{ ACT_VIEW, IN_ALL, { '1', '2', '3', '4' }, "1 .. 8", NULL, "the view with this number" },
	{ ACT_VIEW, IN_ALL, { '5', '6', '7', '8' }, "", NULL, NULL },
	{ ACT_TREE, IN_ALL, { 't', K_F0 + 5 }, NULL, NULL, "the call tree" },

	{ ACT_ENTER,
	  IN_ALL,
	  { KEY_RETURN },
	  NULL,
	  "Zoom",
	  "zoom into the row: a function shows its callers" },
	{ ACT_ANNOTATE,
	  IN(VIEW_FUNCTIONS) | IN_TREES,
	  { 'a' },
	  NULL,
	  NULL,
	  "annotate: the function's instructions, each with its share of the samples" },
	{ ACT_BACK,
	  IN_ALL,
	  { KEY_ESCAPE, KEY_RUBOUT },
	  NULL,
	  "Back",
	  "clear the filter, or zoom out by one level" },

	{ ACT_UP, IN_ALL & ~FLAME, { K_UP, 'k' }, NULL, NULL, "one row up" },
	{ ACT_DOWN, IN_ALL & ~FLAME, { K_DOWN, 'j' }, NULL, NULL, "one row down" },
	{ ACT_PAGE_UP, IN_ALL & ~FLAME, { K_PAGE_UP }, NULL, NULL, "one page up" },
	{ ACT_PAGE_DOWN, IN_ALL & ~FLAME, { K_PAGE_DOWN }, NULL, NULL, "one page down" },
	{ ACT_FIRST, IN_ALL, { K_HOME, 'g' }, NULL, NULL, "the first row" },
	{ ACT_LAST, IN_ALL & ~FLAME, { K_END, 'G' }, NULL, NULL, "the last row" },
	{ ACT_FOLLOW,
	  IN_ALL & ~FLAME,
	  { 'F' },
	  NULL,
	  NULL,
	  "follow the row when the order changes, even from the top" },
	{ ACT_OUTER, FLAME, { K_UP, 'k' }, NULL, NULL, "flame: the caller" },
	{ ACT_DEEPER, FLAME, { K_DOWN, 'j' }, NULL, NULL, "flame: the widest callee" },
	{ ACT_LEFT, FLAME, { K_LEFT }, NULL, NULL, "flame: the frame to the left" },
	{ ACT_RIGHT, FLAME, { K_RIGHT }, NULL, NULL, "flame: the frame to the right" },

	{ ACT_TOGGLE, OPENING, { ' ' }, NULL, NULL, "open or close the row" },
	{ ACT_OPEN, OPENING, { '+' }, NULL, NULL, "open the row" },
	{ ACT_CLOSE, OPENING, { '-' }, NULL, NULL, "close the row" },
	{ ACT_OPEN, IN_TREES, { K_RIGHT }, NULL, NULL, "open the row (trees)" },
	{ ACT_CLOSE, IN_TREES, { K_LEFT }, NULL, NULL, "close row, or go to its parent (trees)" },
	{ ACT_OPEN_ALL, OPENING, { 'E' }, NULL, NULL, "open all rows" },
	{ ACT_CLOSE_ALL, OPENING, { 'C' }, NULL, NULL, "close all rows" },

	{ ACT_SORT_NEXT,
	  IN_LISTS,
	  { K_F0 + 6, '>', K_RIGHT },
	  NULL,
	  "Sort",
	  "sort by the next column" },
	{ ACT_SORT_PREV, IN_LISTS, { '<', K_LEFT }, NULL, NULL, "sort by the previous column" },
	{ ACT_SORT_SELF, IN_LISTS, { 'P' }, NULL, NULL, "sort by self share" },
	{ ACT_SORT_TOTAL,
	  IN_LISTS & ~IN(VIEW_PROCESSES) & ~OFFCPU & ~WALL,
	  { 'T' },
	  NULL,
	  NULL,
	  "sort by total share, which includes callees" },
	{ ACT_SORT_PID,
	  IN(VIEW_PROCESSES) | OFFCPU | WALL,
	  { 'N' },
	  NULL,
	  NULL,
	  "sort by process id" },
	{ ACT_INVERT, IN_LISTS, { 'I' }, NULL, NULL, "invert the order" },

	{ ACT_FILTER,
	  IN_ALL,
	  { '/', K_F0 + 4 },
	  NULL,
	  "Filter",
	  "filter by part of the name; empty: no filter" },
	{ ACT_NEXT_MATCH, IN_ALL, { 'n' }, NULL, NULL, "the next row that matches the filter" },
	{ ACT_HIDE_KERNEL, IN_ALL, { 'K' }, NULL, NULL, "hide or show kernel frames" },
	{ ACT_HIDE_IDLE,
	  OFFCPU | WALL,
	  { 'i' },
	  NULL,
	  NULL,
	  "off-CPU and wall: show or hide idle threads, such as those in epoll_wait" },
	{ ACT_CPU,
	  IN_ALL & ~OFFCPU & ~WALL,
	  { 'c' },
	  NULL,
	  NULL,
	  "show only one CPU: enter its number; empty: all" },
	{ ACT_CPU_NEXT,
	  IN_ALL & ~OFFCPU & ~WALL,
	  { ']' },
	  NULL,
	  NULL,
	  "the next CPU; after the last one: all" },
	{ ACT_CPU_PREV, IN_ALL & ~OFFCPU & ~WALL, { '[' }, NULL, NULL, "the previous CPU" },
	{ ACT_USER,
	  IN_ALL,
	  { 'u' },
	  NULL,
	  NULL,
	  "show only processes of one user: name or number; empty: all" },
	{ ACT_WINDOW, IN_ALL, { 'w' }, NULL, NULL, "window: last 5 s, last 30 s, all" },
	{ ACT_PAUSE, IN_ALL, { 'Z' }, NULL, "Pause", "pause or resume" },
	{ ACT_RESET, IN_ALL, { 'z' }, NULL, NULL, "discard all samples so far" },
	{ ACT_DELAY, IN_ALL, { 'd' }, NULL, NULL, "set the time between refreshes" },
	{ ACT_BASELINE,
	  IN_LISTS & ~WALL,
	  { 'b' },
	  NULL,
	  NULL,
	  "mark a baseline (DIFF shows the change since then), or clear it" },
	{ ACT_WRITE,
	  IN_ALL,
	  { 'W', K_F0 + 12 },
	  NULL,
	  NULL,
	  "write the shown stacks to files: folded, json, pprof, html" },
	{ ACT_SEARCH,
	  IN_ALL,
	  { K_F0 + 3 },
	  NULL,
	  "Search",
	  "search for a name while typing; again: the next row" },
	{ ACT_SIGNAL,
	  IN_ALL,
	  { K_F0 + 9 },
	  NULL,
	  "Signal",
	  "send a signal to the process of the row; asks which one first" },
	{ ACT_SETUP,
	  IN_ALL,
	  { K_F0 + 2 },
	  NULL,
	  "Setup",
	  "choose columns, colours, times; saved for the next start" },
	{ ACT_REDRAW, IN_ALL, { 'L' & 0x1f }, NULL, NULL, "redraw the screen" },
};

#define NBINDINGS (sizeof(bindings) / sizeof(bindings[0]))

const struct binding *keys_at(size_t i)
{
	return i < NBINDINGS ? &bindings[i] : NULL;
}

enum action keys_find(uint32_t key, enum view view)
{
	for (size_t i = 0; i < NBINDINGS && key; i++) {
		const struct binding *b = &bindings[i];

		for (size_t k = 0; k < 4 && (b->views & IN(view)); k++)
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
	if (b->shown) {
		snprintf(dst, cap, "%s", b->shown);
		return dst;
	}
	for (size_t k = 0; k < 4 && b->keys[k] && n < cap; k++)
		n += (size_t)snprintf(dst + n, cap - n, "%s%s", k ? " " : "",
				      keys_name(b->keys[k], one, sizeof(one)));
	return dst;
}
