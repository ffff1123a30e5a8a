/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of the state in ui.c, the prompts and the zoom: what keys and the mouse lead to. */
#ifndef SFBPF_TUI_UI_INTERNAL_H
#define SFBPF_TUI_UI_INTERNAL_H

#include "tui/ui.h"

/* Rebuilds the census and the rows, also if the view stays the same. */
void ui_set_view(struct ui *ui, enum view view);
/* Rebuilds only the rows: after a change of the filter, the order or the opened rows. */
void ui_rearrange(struct ui *ui);
void ui_open_row(struct ui *ui, enum action act);
void ui_zoom(struct ui *ui);
bool ui_zoom_back(struct ui *ui); /* false: neither a filter nor a zoom to leave */

unsigned int ui_ask(struct ui *ui, enum ui_prompt prompt); /* opens a prompt; UI_DRAW */
/* A key while a prompt is open. UI_* */
unsigned int ui_type(struct ui *ui, uint32_t key);
unsigned int ui_ask_signal(struct ui *ui); /* F9 */
void ui_move_to(struct ui *ui, size_t row);
void ui_show_cpu(struct ui *ui, uint32_t cpu1); /* CPU number + 1; 0: all CPUs */

#endif
