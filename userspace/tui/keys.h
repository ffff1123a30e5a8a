/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Key bindings: one table, used for key presses, the help, the bar at the bottom and the key list
 * in docs/top.md. Any other key does nothing.
 */
#ifndef SFBPF_TUI_KEYS_H
#define SFBPF_TUI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum view {
#define VIEW(id, name) VIEW_##id,
#include "tui/views.def"
#undef VIEW
	VIEW_MAX
};

/* A key with a character is that character; these have none or are control characters. */
enum key {
	KEY_NONE = 0,
	KEY_TABULATOR = 9,
	KEY_RETURN = 13,
	KEY_ESCAPE = 27,
	KEY_RUBOUT = 127,
	KEYS_SPECIAL = 0x110000,
	K_UP,
	K_DOWN,
	K_LEFT,
	K_RIGHT,
	K_PAGE_UP,
	K_PAGE_DOWN,
	K_HOME,
	K_END,
	K_BACK_TAB,
	K_F0, /* K_F0 + n */
	K_LAST = K_F0 + 12,
};

enum action {
	ACT_NONE,
	ACT_UP,
	ACT_DOWN,
	ACT_PAGE_UP,
	ACT_PAGE_DOWN,
	ACT_FIRST,
	ACT_LAST,
	ACT_LEFT,
	ACT_RIGHT,
	ACT_DEEPER,
	ACT_OUTER, /* used in the flame view */
	ACT_ENTER,
	ACT_BACK,
	ACT_NEXT_VIEW,
	ACT_PREV_VIEW,
	ACT_VIEW,
	ACT_TREE,
	ACT_OPEN,
	ACT_CLOSE,
	ACT_TOGGLE,
	ACT_OPEN_ALL,
	ACT_CLOSE_ALL,
	ACT_SORT_PREV,
	ACT_SORT_NEXT,
	ACT_SORT_SELF,
	ACT_SORT_TOTAL,
	ACT_SORT_PID,
	ACT_INVERT,
	ACT_FILTER,
	ACT_NEXT_MATCH,
	ACT_HIDE_KERNEL,
	ACT_HIDE_IDLE,
	ACT_CPU,
	ACT_CPU_NEXT,
	ACT_CPU_PREV,
	ACT_FOLLOW,
	ACT_PAUSE,
	ACT_RESET,
	ACT_WINDOW,
	ACT_DELAY,
	ACT_BASELINE,
	ACT_WRITE,
	ACT_REDRAW,
	ACT_USER,
	ACT_SEARCH,
	ACT_SIGNAL,
	ACT_SETUP,
	ACT_ANNOTATE,
	ACT_HELP,
	ACT_QUIT,
};

/* Where a key works: in views of a kind, or in views with what the key acts on. */
enum key_place {
	IN_ALL,
	IN_LISTS,
	IN_TREES,
	IN_TABLES, /* lists and trees */
	IN_PICTURES,
	WITH_PARTS,  /* rows that can be opened */
	BY_TOTAL,    /* lists with the column TOTAL% */
	BY_PID,	     /* lists with the column PID */
	WITH_SYMBOL, /* rows that can be annotated */
	WITH_BASELINE,
	WITH_CPUS, /* only samples have a CPU */
	WITH_IDLE, /* idle threads */
};

struct binding {
	enum action action;
	enum key_place place;
	uint32_t keys[4];  /* 0: none */
	const char *label; /* text on the bar at the bottom; NULL: not on the bar */
	const char *help;  /* NULL: not in the help */
};

/* The i-th binding in the order of the help; NULL after the last one. */
const struct binding *keys_at(size_t i);
bool keys_work(const struct binding *b, enum view view);
/* The action of the key in the view; ACT_NONE: nothing. */
enum action keys_find(uint32_t key, enum view view);
/* The names of a binding's keys, such as "Up k". Returns dst. */
const char *keys_text(const struct binding *b, char *dst, size_t cap);
/* The name of one key. Returns dst. */
const char *keys_name(uint32_t key, char *dst, size_t cap);

#endif
