/* SPDX-License-Identifier: BSD-2-Clause */
/* The setup page: what can be set there, and how it is drawn and changed. */
#ifndef SFBPF_TUI_SETUP_H
#define SFBPF_TUI_SETUP_H

#include "tui/ui.h"

/* The settings that the configuration file keeps (docs/top.md). */
struct ui_settings {
	uint64_t delay_ns;
	enum live_span span;
	enum view view; /* the first one */
	bool by_thread, hide_kernel, no_color;
	uint32_t hidden[VIEW_MAX]; /* columns that are not shown: 1 << column_spec.id */
};

struct ui_settings ui_settings(const struct ui *ui);
void ui_apply_settings(struct ui *ui, const struct ui_settings *s);
/* The column of a view with this title that can be hidden; false: no such column. */
bool setup_column(enum view view, const char *title, enum column *ret);

unsigned int setup_open(struct ui *ui);		     /* UI_DRAW */
unsigned int setup_key(struct ui *ui, uint32_t key); /* UI_* */
void draw_setup(const struct ui *ui, struct grid *g);

#endif
