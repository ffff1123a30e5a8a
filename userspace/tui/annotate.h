/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of one function: its instructions, each with its share of the function's own samples.
 * The stacks of a window keep their leaf's place in the file, so counting needs nothing of the
 * sampler, and costs nothing while the page is closed.
 */
#ifndef SFBPF_TUI_ANNOTATE_H
#define SFBPF_TUI_ANNOTATE_H

#include "sym/symbolizer.h"

struct ui;
struct ui_event;
struct grid;

struct annotate {
	bool open;
	uint32_t symbol;
	struct symbolizer_code fn;
	uint64_t *self;	   /* samples by instruction */
	uint64_t own, all; /* samples at its instructions; all that are selected */
	size_t cursor;
	bool moved; /* moved by hand; until then the cursor is on the hottest instruction */
};

/* Opens the function of the current row, or says why it cannot. */
void annotate_open(struct ui *ui);
void annotate_close(struct annotate *a);
void annotate_count(struct ui *ui); /* called after a new window, if it is open */
unsigned int annotate_key(struct ui *ui, uint32_t key);
unsigned int annotate_mouse(struct ui *ui, const struct ui_event *ev);
void draw_annotate(const struct ui *ui, struct grid *g);

#endif
