/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of sfbpf top. top.c has the options and the main loops. */
#ifndef SFBPF_TOOLS_TOP_H
#define SFBPF_TOOLS_TOP_H

#include <limits.h>
#include <stdio.h>

#include "cli/options.h"
#include "tools/blocks.h"
#include "tools/session.h"
#include "tui/live.h"
#include "tui/ui.h"

struct top_offcpu { /* blocked time */
	/* Measure during the whole run; otherwise while the view is shown, and shortly after */
	bool always;
	bool on, tried;
	bool ready; /* waits for a CPU are measured, too: for the wall view */
	struct offcpu_opts opts;
	struct blocks blocks;
	struct live *live;
	struct live_counters before; /* totals of earlier collections */
	uint64_t due_ns, until_ns;   /* the next slice; when the collection ends */
	uint64_t thin_ns;	     /* offcpu_thin */
	uint64_t bpf_ns, bpf_at_ns;  /* CPU time of the programs, and when it was read */
	uint64_t started_ns;
};

struct top {
	struct common_opts common;
	bool batch, json, always_color, never_color;
	bool has_delay, has_by, has_kernel; /* options that replace saved settings */
	uint64_t pages;			    /* 0: no limit */
	uint64_t rows;
	FILE *out; /* batch */
	char what[320];
	char config_path[PATH_MAX];
	struct session session;
	struct live *live;
	struct top_offcpu off;
	struct ui ui;
	struct grid grid;
	uint64_t slice_ns, refresh_ns; /* when the next ones are due */
	uint64_t refreshed;
	bool page_due;	       /* batch: after the next poll */
	bool changed, repaint; /* live: what to draw before the next poll */
	bool done;	       /* the user ended the run, and has the last page */
};

/* Writes the shown stacks to new files in the current directory, and shows their names. */
void top_snapshot(struct top *t);

/* ---- top_config.c: the settings of the setup page, in ~/.config/sfbpf/config ---- */

/* Reads and applies the settings that no option replaces. An error is shown with ui_say. */
void top_config_read(struct top *t);
void top_config_save(struct top *t); /* writes the settings; shows an error, too */

/* ---- top_offcpu.c. Most have no effect while blocked time is not measured. ---- */

int top_offcpu_start(struct top *t); /* 0, or the exit code after printing the error */
/* Starts or ends the collection, depending on the view. Returns whether to draw. */
bool top_offcpu_keep(struct top *t);
void top_offcpu_record(struct top *t, const struct sf_sample *rec);
/* Like live_take, but at intervals that limit its cost to 1 % of a CPU. */
void top_offcpu_take(struct top *t, bool late);
/* modules_mark for all frames it shows */
void top_offcpu_mark(const struct top *t, const struct modules *ms);
int top_offcpu_window(struct top *t); /* called before ui_refresh; 0 or -ENOMEM */
void top_offcpu_reset(struct top *t);
uint64_t top_offcpu_bpf_ns(const struct top *t);
void top_offcpu_free(struct top *t);

#endif
