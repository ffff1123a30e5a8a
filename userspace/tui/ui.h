/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the live view. A refresh takes a new window of samples; keys and the mouse change
 * how the window is shown. Both rebuild the rows that screen_draw shows. Nothing here uses a
 * terminal, a clock or the kernel, so unit tests can drive it with events.
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
#include "prof/census.h"
#include "prof/profile.h"
#include "prof/run_stats.h"
#include "prof/selection.h"
#include "tui/annotate.h"
#include "tui/blocked.h"
#include "tui/calltree.h"
#include "tui/cgroup_name.h"
#include "tui/grid.h"
#include "tui/keys.h"
#include "tui/live.h"
#include "tui/wall.h"

#define UI_DELAY_MIN (100 * NUM_MS)
#define UI_DELAY_MAX (3600 * NUM_S)

/* Columns that more than the view knows. Each view numbers the others from COL_OWN on. */
enum column { COL_SELF, COL_TOTAL, COL_DIFF, COL_PID, COL_OWN };

/* ROW_THREAD, ROW_FUNCTION, ROW_PART: below another row */
enum row_kind { ROW_WHOLE, ROW_THREAD, ROW_FUNCTION, ROW_PART };
enum opening { ROW_LEAF, ROW_CLOSED, ROW_OPEN };

#define ROW_NONE UINT32_MAX

struct ui_row {
	uint64_t key;	 /* identifies the row across refreshes */
	uint64_t self;	 /* samples or blocked time: what DIFF compares */
	uint32_t index;	 /* into a table of the census, the tree, the blocked stacks or the wall */
	uint32_t symbol; /* the row's function; ROW_NONE: none. ROW_PART: index of the part */
	uint32_t pid;	 /* the row's process; 0: none, or several */
	uint16_t indent;
	uint8_t opening; /* enum opening */
	uint8_t kind;	 /* enum row_kind */
	/* Not 0: the row stands for this many nodes, and index is the first of them */
	uint32_t folded;
	bool match;   /* matches the filter (trees, flame) */
	int x, width; /* flame: columns; the depth is indent */
	double diff;  /* self share minus that of the baseline, in percentage points */
};

struct ui_position {  /* position in a view */
	uint64_t key; /* the row the cursor is on */
	size_t cursor, scroll;
	unsigned int sort; /* column_spec.id */
	bool invert, follow;
};

struct ui_gauges {	  /* header values that do not depend on the window */
	const char *what; /* "cpu-clock 99 Hz, all processes" */
	uint64_t rss_kb, table_files, table_bytes, table_limit;
	/* Tables evicted since the start; new files refused because their user's share was used */
	uint64_t table_evicted, table_refused;
	struct worker_totals parsers;
	double full_rate;   /* samples per second if all CPUs were busy; 0: unknown */
	unsigned int ncpus; /* configured CPUs */
	uint64_t period_ns; /* CPU time that a sample stands for; 0: unknown */
};

/* Blocked time, measured only while its view is shown or with --offcpu */
struct ui_offcpu {
	struct profile *window; /* borrowed; NULL: not measured */
	struct live_sum sum;
	struct profile *baseline;   /* NULL: none marked */
	struct blocked now, before; /* the window's, the baseline's */
	struct wall wall;
	char error[512]; /* why it cannot be measured; empty: no error */
};

struct keyset { /* rows opened or closed by hand */
	struct {
		uint64_t key;
		bool open;
	} * v;
	size_t n, cap;
};

enum ui_prompt {
	PROMPT_NONE,
	PROMPT_FILTER,
	PROMPT_DELAY,
	PROMPT_CPU,
	PROMPT_USER,
	PROMPT_SEARCH,
	PROMPT_SIGNAL,
};

struct ui {
	struct symbolizer *symbols;
	struct cgroup_names *cgroups; /* NULL: no cgroup names */
	const struct modules *modules;
	struct ui_gauges gauges;
	struct profile *window; /* borrowed; NULL before the first refresh */
	struct live_sum sum;
	struct profile *baseline;     /* NULL: none marked */
	struct census census, before; /* the window's, the baseline's */
	struct calltree tree;
	struct ui_offcpu off;
	struct selection sel;
	/* Restored by Esc, by zoom level */
	struct {
		enum view view;
		struct ui_position pos[VIEW_MAX];
	} came_from[ZOOM_MAX];
	enum view view;
	struct ui_position pos[VIEW_MAX];
	enum live_span span;
	uint64_t delay_ns;
	struct keyset opened;
	double open_share; /* percent: tree rows from this share on start opened */
	struct ui_row *rows;
	size_t nrows, rows_cap;
	int w, h; /* size of the screen */
	bool paused, help, setup;
	struct annotate annotate;
	bool no_color;
	enum view first_view;
	uint32_t hidden[VIEW_MAX]; /* columns: 1 << column_spec.id */
	size_t setup_at;	   /* the item under the cursor of the setup page */
	const char *config_path;   /* where the settings are saved; NULL: nowhere */
	/* Batch mode: count functions and processes, independently of the view */
	bool all_tables;
	size_t help_scroll;
	enum ui_prompt prompt;
	char filter[64], typed[64];
	size_t search_from; /* the row on which the cursor was when the search began */
	char user[64];	    /* whose processes sel.uid1 selects */
	struct ui_signal {  /* what UI_SIGNAL sends */
		uint32_t pid;
		int number;
		char to[SF_COMM * 3 + 16];
	} signal;
	char message[160];
	bool message_bad;
};

/* What the caller must do after an event. */
enum {
	UI_DRAW = 1, /* the screen changed */
	/* Call ui_refresh with the current window, even while paused */
	UI_WINDOW = 2,
	UI_QUIT = 4,
	UI_RESET = 8,	 /* live_reset, then as for UI_WINDOW */
	UI_WRITE = 16,	 /* write a snapshot, then show the file names with ui_say */
	UI_REPAINT = 32, /* redraw everything: the terminal contents are unknown */
	UI_RESUMED = 64, /* a pause ended */
	UI_SIGNAL = 128, /* send ui.signal, then show the outcome with ui_say */
	UI_SAVE = 256,	 /* save the settings */
	UI_COLOR = 512,	 /* ui.no_color changed */
};

struct ui_event {
	uint32_t key; /* 0: a mouse event or none */
	enum { MOUSE_NONE, MOUSE_CLICK, MOUSE_DOUBLE, MOUSE_WHEEL_UP, MOUSE_WHEEL_DOWN } mouse;
	int x, y;
};

void ui_init(struct ui *ui, struct symbolizer *symbols, const struct modules *modules);
void ui_free(struct ui *ui);
/* Takes a window, which must stay valid until the next call. 0 or -ENOMEM (no rows then). */
int ui_refresh(struct ui *ui, struct profile *window, const struct live_sum *sum);
/* Sets the off-CPU window for the next ui_refresh; NULL: blocked time is not measured. */
void ui_set_offcpu(struct ui *ui, struct profile *window, const struct live_sum *sum);
void ui_resize(struct ui *ui, int w, int h);
unsigned int ui_event(struct ui *ui, const struct ui_event *ev); /* UI_* */
/* Shows text on the bottom line until the next key. text is sanitised. */
void ui_say(struct ui *ui, bool bad, const char *text);

/*
 * Whether the rows of the view include stack i: it matches the CPU, the zoom and the filter. p is
 * the window, or off.window.
 */
bool ui_shows_stack(const struct ui *ui, enum view view, struct profile *p, size_t i);
/* The selection as text: "gdb (123), CPU 1, without kernel", sanitised; "": all. Returns dst. */
const char *ui_describe(const struct ui *ui, enum view view, char *dst, size_t cap);

/* The row under the cursor; NULL: no rows. */
static inline const struct ui_row *ui_current(const struct ui *ui)
{
	size_t at = ui->pos[ui->view].cursor;

	return at < ui->nrows ? &ui->rows[at] : NULL;
}

/* Whether the view shows blocked time, which is measured only then. */
bool ui_needs_offcpu(const struct ui *ui);
/* Whether DIFF can be shown in this view. */
bool ui_has_baseline(const struct ui *ui);

static inline double ui_share(uint64_t part, uint64_t sum)
{
	return sum ? 100.0 * (double)part / (double)sum : 0;
}

/* ---- Changes of the state: what keys and the mouse lead to ---- */

/* Rebuilds the census and the rows, also if the view stays the same. */
void ui_set_view(struct ui *ui, enum view view);
/* Rebuilds only the rows: after a change of the filter, the order or the opened rows. */
void ui_rearrange(struct ui *ui);
void ui_open_row(struct ui *ui, enum action act);
void ui_move_to(struct ui *ui, size_t row);

#endif
