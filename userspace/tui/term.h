/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal: shows grids, reads keys and the mouse, and gives the terminal back as it was on every way out: quit,
 * error, SIGINT, SIGTERM, SIGHUP, suspension, and a crash. The only user of curses, and the only state of the program that
 * is not in a struct (signal handlers need it).
 */
#ifndef SFBPF_TUI_TERM_H
#define SFBPF_TUI_TERM_H

#include <stdbool.h>

#include "tui/grid.h"
#include "tui/ui.h"

/* Takes the screen. What is written to stderr meanwhile is shown after term_close. 0; -ENOTTY: curses cannot use it. */
int term_open(bool color);
void term_close(void);		/* also if it is not open */
void term_size(int *ret_w, int *ret_h);
bool term_unicode(void);	/* the locale is UTF-8 */

/* Waits for input, at most that long. Suspends and resumes in here. */
void term_wait(int timeout_ms);
bool term_read(struct ui_event *ret);	/* false: nothing there */
bool term_stopped(void);	/* a signal asked to end, or the terminal is gone */
/* The size changed, or the contents are not what was drawn (resumed): asked once. */
bool term_changed(void);
void term_draw(const struct grid *g, bool repaint);

#endif
