/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole screen, drawn from the ui alone. From top to bottom: two header lines (samples, losses,
 * cost), the tabs, the zoom path with the state, the view, the keys. Low screens have one header
 * line, and one line for the tabs and the zoom path.
 */
#ifndef SFBPF_TUI_SCREEN_H
#define SFBPF_TUI_SCREEN_H

#include "tui/layout.h"
#include "tui/ui.h"

/* g has been reset to ui->w x ui->h. */
void screen_draw(const struct ui *ui, struct grid *g);

/* The meaning of a click at x on the line of the tabs or the bar. VIEW_MAX, ACT_NONE: none. */
enum view screen_tab_at(const struct ui *ui, int x);
enum action screen_bar_at(const struct ui *ui, int x);

/* The parts. draw_table: any view with columns. */
void draw_table(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_titles(const struct ui *ui, struct grid *g, const struct layout *l);
void draw_help(const struct ui *ui, struct grid *g);
size_t help_lines(void);

#endif
