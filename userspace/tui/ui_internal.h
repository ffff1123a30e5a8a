/* SPDX-License-Identifier: BSD-2-Clause */
/* Between ui.c, which owns the state, and ui_zoom.c. */
#ifndef SFBPF_TUI_UI_INTERNAL_H
#define SFBPF_TUI_UI_INTERNAL_H

#include "tui/ui.h"

void ui_set_view(struct ui *ui, enum view view);
void ui_rearrange(struct ui *ui);	/* rows only: the filter, the order, what is open */
void ui_open_row(struct ui *ui, enum action act);
void ui_zoom(struct ui *ui);
bool ui_zoom_back(struct ui *ui);	/* false: there was nothing to leave */

#endif
