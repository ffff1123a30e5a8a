/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live view's state and what changes it. A refresh takes a window of samples; keys change what is asked of it; both
 * leave rows that screen_draw shows. No terminal, no clock, no kernel in here: tests drive it like a user.
 *
 *   ui_refresh (window) --> census, calltree, blocked --> rows --> screen_draw --> grid
 *   ui_event (key, mouse) --^ changes view, zoom, order, filter
 */
#ifndef SFBPF_TUI_UI_H
#define SFBPF_TUI_UI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "out/out.h"
#include "prof/profile.h"
#include "tui/blocked.h"
#include "tui/calltree.h"
#include "prof/census.h"
#include "tui/cgroup_name.h"
#include "tui/grid.h"
#include "tui/keys.h"
#include "tui/live.h"
#include "prof/selection.h"

#define UI_DELAY_MIN (100 * NUM_MS)
#define UI_DELAY_MAX (3600 * NUM_S)

enum column {
	COL_SELF, COL_TOTAL, COL_KERNEL, COL_DIFF, COL_MODULE, COL_FUNCTION,
	COL_PID, COL_COMPLETE, COL_COMM, COL_CGROUP, COL_HOTTEST,
	COL_TABLES, COL_ROWS, COL_BYTES, COL_ENDS, COL_FILE,
	COL_THREADS, COL_BLOCKS, COL_EACH, COL_STATE, COL_BLOCKED,
};

enum row_kind { ROW_WHOLE, ROW_THREAD, ROW_FUNCTION };	/* the last two belong to a row above; ROW_THREAD: index is into census.threads */
enum opening { ROW_LEAF, ROW_CLOSED, ROW_OPEN };

struct ui_row {
	uint64_t key;			/* the same thing has it at every refresh */
	uint32_t index;			/* into census rows, calltree nodes, or blocked stacks */
	uint16_t indent;
	uint8_t opening;		/* enum opening */
	uint8_t kind;			/* enum row_kind */
	uint32_t symbol;		/* ROW_FUNCTION: a frame of a blocked stack; or a hot function of threads[index], with */
	uint64_t self;
	uint32_t folded;		/* stands for that many nodes, of which index is the first */
	bool match;			/* the filter found it (trees, flame) */
	int x, width;			/* the flame: where it is; its depth is indent */
	double diff;			/* self share now minus then, in percent points */
};

struct ui_position {			/* of a view */
	uint64_t key;			/* the row the cursor is on */
	size_t cursor, scroll;
	enum column sort;
	bool invert, follow;
};

struct ui_gauges {			/* what the header says besides the window */
	const char *what;		/* "cpu-clock 99 Hz, all processes" */
	uint64_t rss_kb, table_files, table_bytes, table_limit;
	uint64_t table_evicted, table_refused;	/* since the start: tables taken away; new files beyond what a user is granted */
	struct run_parsers parsers;
	double full_rate;		/* samples a second if all CPUs were busy; 0: not known */
	unsigned int ncpus;		/* possible ones */
};

struct ui_offcpu {			/* blocked time; not there unless the view is shown, or it is always wanted */
	struct profile *window;		/* borrowed; NULL: there is none */
	struct live_sum sum;
	struct profile *baseline;	/* NULL: none marked */
	struct blocked now, before;	/* of the window, of the baseline */
	char error[512];		/* why it cannot be had; empty: it can */
};

struct keyset {				/* rows opened or closed by hand */
	struct { uint64_t key; bool open; } *v;
	size_t n, cap;
};

enum ui_prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_DELAY, PROMPT_CPU };

struct ui {
	struct symbolizer *symbols;
	struct cgroup_names *cgroups;	/* NULL: their names are not known */
	const struct modules *modules;
	struct ui_gauges gauges;
	struct profile *window;		/* borrowed; NULL before the first refresh */
	struct live_sum sum;
	struct profile *baseline;	/* NULL: none marked */
	struct census census, before;	/* of the window, of the baseline */
	struct calltree tree;
	struct ui_offcpu off;
	struct selection sel;
	struct { enum view view; struct ui_position pos[VIEW_MAX]; } came_from[ZOOM_MAX];	/* for Esc, by level */
	enum view view;
	struct ui_position pos[VIEW_MAX];
	enum live_span span;
	uint64_t delay_ns;
	struct keyset opened;
	double open_share;		/* tree rows from this share on are open by themselves */
	struct ui_row *rows;
	size_t nrows, rows_cap;
	int w, h;			/* of the screen */
	bool paused, help;
	bool all_tables;		/* batch: functions and processes at once, whatever the view */
	size_t help_scroll;
	enum ui_prompt prompt;
	char filter[64], typed[64];
	char message[160];
	bool message_bad;
};

/* What the caller has to do after an event. */
enum {
	UI_DRAW = 1,			/* the screen changed */
	UI_WINDOW = 2,			/* give it the window afresh: ui_refresh, also while paused */
	UI_QUIT = 4,
	UI_RESET = 8,			/* live_reset, then as UI_WINDOW */
	UI_WRITE = 16,			/* write a snapshot, then ui_say where */
	UI_REPAINT = 32,		/* the terminal's contents are not what we think */
	UI_RESUMED = 64,		/* pause ended */
};

struct ui_event {
	uint32_t key;			/* 0: a mouse event or none */
	enum { MOUSE_NONE, MOUSE_CLICK, MOUSE_DOUBLE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN } mouse;
	int x, y;
};

void ui_init(struct ui *ui, struct symbolizer *symbols, const struct modules *modules);
void ui_free(struct ui *ui);
/* A new window, which must stay valid until the next call. 0 or -ENOMEM (the rows are then empty). */
int ui_refresh(struct ui *ui, struct profile *window, const struct live_sum *sum);
/* The off-CPU window that goes with the next ui_refresh; NULL: there is none. */
void ui_set_offcpu(struct ui *ui, struct profile *window, const struct live_sum *sum);
void ui_resize(struct ui *ui, int w, int h);
unsigned int ui_event(struct ui *ui, const struct ui_event *ev);	/* UI_* */
/* Shown at the bottom until the next key. text is made clean. */
void ui_say(struct ui *ui, bool bad, const char *text);

/* Whether stack i is among what the rows of that view stand for: CPU, zoom and filter. p is the window, or off.window. */
bool ui_shows_stack(const struct ui *ui, enum view view, struct profile *p, size_t i);
/* "gdb (123), CPU 1, without kernel": what that leaves, clean; empty: everything. Returns dst. */
const char *ui_describe(const struct ui *ui, enum view view, char *dst, size_t cap);

/* The row under the cursor; NULL: there are no rows. */
static inline const struct ui_row *ui_current(const struct ui *ui)
{
	size_t at = ui->pos[ui->view].cursor;

	return at < ui->nrows ? &ui->rows[at] : NULL;
}

/* Whether DIFF can be shown in this view. */
static inline bool ui_has_baseline(const struct ui *ui)
{
	return ui->view == VIEW_OFFCPU ? ui->off.baseline != NULL : ui->baseline != NULL;
}

static inline double ui_share(uint64_t part, uint64_t sum)
{
	return sum ? 100.0 * (double)part / (double)sum : 0;
}

#endif
