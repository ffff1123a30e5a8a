/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The terminal: shows grids, reads keys and the mouse, and restores the terminal on every exit:
 * quit, error, SIGINT, SIGTERM, SIGHUP, suspension and crash. This is the only user of curses. Its
 * state is global, because signal handlers need it.
 */
#ifndef SFBPF_TUI_TERM_H
#define SFBPF_TUI_TERM_H

#include <stdbool.h>

#include "tui/grid.h"
#include "tui/ui.h"

/*
 * Opens the screen. stderr is held back until term_close. 0, or -ENOTTY: curses cannot use the
 * terminal.
 */
int term_open(bool color);
void term_close(void); /* no effect if the screen is not open */
void term_size(int *ret_w, int *ret_h);
void term_color(bool color); /* switches colours on or off; then redraw everything */
bool term_unicode(void);     /* the locale is UTF-8 */

/* Waits for input, or until fd is readable, with a timeout. Handles suspension. fd -1: none. */
void term_wait(int fd, int timeout_ms);
bool term_read(struct ui_event *ret); /* false: no event */
bool term_stopped(void);	      /* a signal requested the end, or the terminal is gone */
/* The size changed, or the program was resumed and must redraw. Clears the flag. */
bool term_changed(void);
void term_draw(const struct grid *g, bool repaint);

#endif
