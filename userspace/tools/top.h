/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf top: what its parts share. top.c has the options and the loops. */
#ifndef SFBPF_TOOLS_TOP_H
#define SFBPF_TOOLS_TOP_H

#include <stdio.h>

#include "tools/blocks.h"
#include "tools/options.h"
#include "tools/session.h"
#include "tui/live.h"
#include "tui/ui.h"

struct top_offcpu {			/* blocked time */
	bool always;			/* from start to end; else only while the view is shown, and a little longer */
	bool on, tried;
	struct offcpu_opts opts;
	struct blocks blocks;
	struct live *live;
	struct live_counters before;	/* of the collections before this one */
	uint64_t due_ns, until_ns;	/* the next slice; when the collection ends */
	uint64_t thin_ns;		/* offcpu_thin */
	uint64_t bpf_ns, bpf_at_ns;	/* the programs' time so far, and when that was read */
	uint64_t started_ns;
};

struct top {
	struct common_opts common;
	bool batch, json, always_color, never_color;
	uint64_t pages;			/* 0: no end */
	uint64_t rows;
	FILE *out;			/* batch */
	char what[128];
	struct session session;
	struct live *live;
	struct top_offcpu off;
	struct ui ui;
	struct grid grid;
	uint64_t slice_ns, refresh_ns;	/* when the next ones are due */
	uint64_t refreshed;
};

/* Writes what is shown to new files in the current directory, and says which. */
void top_snapshot(struct top *t);

/* ---- top_offcpu.c. What does not run does nothing. ---- */

int top_offcpu_start(struct top *t);	/* 0, or the exit code after having said why */
/* Starts and ends the collection as the view is shown. Returns whether to draw. */
bool top_offcpu_keep(struct top *t);
void top_offcpu_record(struct top *t, const struct sf_sample *rec);
/* As live_take, if it is time: it never takes more than a hundredth of a CPU. */
void top_offcpu_take(struct top *t, bool late);
void top_offcpu_see(const struct top *t, const struct modules *ms);	/* modules_see for all frames it shows */
int top_offcpu_window(struct top *t);	/* for the ui's next refresh; 0 or -ENOMEM */
void top_offcpu_reset(struct top *t);
uint64_t top_offcpu_bpf_ns(const struct top *t);
void top_offcpu_free(struct top *t);

#endif
