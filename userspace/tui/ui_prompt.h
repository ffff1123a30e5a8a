/* SPDX-License-Identifier: BSD-2-Clause */
/* Prompts on the bottom line: the filter, the search, the CPU, the user, the delay, the signal. */
#ifndef SFBPF_TUI_UI_PROMPT_H
#define SFBPF_TUI_UI_PROMPT_H

#include "tui/ui.h"

unsigned int ui_ask(struct ui *ui, enum ui_prompt prompt); /* opens a prompt; UI_DRAW */
/* A key while a prompt is open. UI_* */
unsigned int ui_type(struct ui *ui, uint32_t key);
unsigned int ui_ask_signal(struct ui *ui);	/* F9 */
void ui_show_cpu(struct ui *ui, uint32_t cpu1); /* CPU number + 1; 0: all CPUs */

#endif
