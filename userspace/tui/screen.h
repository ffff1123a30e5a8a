/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole screen, drawn from the ui alone. From top to bottom: two lines of trust (how much was seen, how much was
 * lost, what it costs), the views, where one is, the view, the keys. Low screens have one line for the first two, and
 * one for the next two.
 */
#ifndef SFBPF_TUI_SCREEN_H
#define SFBPF_TUI_SCREEN_H

#include "tui/rows.h"
#include "tui/ui.h"

struct layout {			/* lines; -1: not there */
	int trust, ntrust;	/* first, how many */
	int tabs, crumb, title, body, nbody, bar;
};

struct layout screen_layout(enum view view, int w, int h);
/* g has been reset to ui->w x ui->h. */
void screen_draw(const struct ui *ui, struct grid *g);

/* What a click at x, on the line of the tabs or the bar, means. VIEW_MAX, ACT_NONE: nothing. */
enum view screen_tab_at(const struct ui *ui, int x);
enum action screen_bar_at(const struct ui *ui, int x);

/* The parts. */
void draw_trust(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_list(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_tree(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_flame(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_titles(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_help(const struct ui *ui, struct grid *g);
size_t help_lines(void);

/* Numbers as the views write them: "1234", "12.3k", "4.5M". Returns dst. */
const char *screen_amount(uint64_t n, char *dst, size_t cap);
const char *screen_bytes(uint64_t n, char *dst, size_t cap);

#endif
