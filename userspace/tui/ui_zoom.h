/* SPDX-License-Identifier: BSD-2-Clause */
/* Zooming into a row and back. */
#ifndef SFBPF_TUI_UI_ZOOM_H
#define SFBPF_TUI_UI_ZOOM_H

#include "tui/ui.h"

void ui_zoom(struct ui *ui);
bool ui_zoom_back(struct ui *ui); /* false: neither a filter nor a zoom to leave */

#endif
