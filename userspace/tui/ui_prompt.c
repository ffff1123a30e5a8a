/* SPDX-License-Identifier: BSD-2-Clause */
/* Prompts on the bottom line: the filter, the CPU, the delay. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "tui/ui_internal.h"

unsigned int ui_ask(struct ui *ui, enum ui_prompt prompt)
{
	ui->prompt = prompt;
	if (prompt == PROMPT_FILTER)
		memcpy(ui->typed, ui->filter, sizeof(ui->typed));
	else
		ui->typed[0] = 0;
	return UI_DRAW;
}

void ui_show_cpu(struct ui *ui, uint32_t cpu1)
{
	ui->sel.cpu1 = cpu1;
	ui_set_view(ui, ui->view);
}

static void refuse_cpu(struct ui *ui)
{
	char text[80];

	snprintf(text, sizeof(text), "no such CPU: enter 0 to %u, or nothing for all",
		 ui->gauges.ncpus - 1);
	ui_say(ui, true, text);
}

static void answer(struct ui *ui)
{
	uint64_t ns;

	if (ui->prompt == PROMPT_FILTER) {
		memcpy(ui->filter, ui->typed, sizeof(ui->filter));
		ui_rearrange(ui);
	} else if (ui->prompt == PROMPT_CPU) {
		if (!ui->typed[0])
			ui_show_cpu(ui, 0);
		else if (num_u64(ui->typed, 0, ui->gauges.ncpus - 1ull, &ns))
			refuse_cpu(ui);
		else
			ui_show_cpu(ui, (uint32_t)ns + 1);
	} else if (ui->typed[0]) {
		if (num_duration(ui->typed, NUM_S, &ns) || ns < UI_DELAY_MIN || ns > UI_DELAY_MAX)
			ui_say(ui, true, "the delay must be 0.1 to 3600 seconds");
		else
			ui->delay_ns = ns;
	}
	ui->prompt = PROMPT_NONE;
}

void ui_type(struct ui *ui, uint32_t key)
{
	size_t n = strlen(ui->typed);

	if (key == KEY_RETURN) {
		answer(ui);
	} else if (key == KEY_ESCAPE) {
		ui->prompt = PROMPT_NONE;
	} else if (key == KEY_RUBOUT || key == 8) {
		if (n)
			ui->typed[n - 1] = 0;
	} else if (key == ('U' & 0x1f)) {
		ui->typed[0] = 0;
	} else if (key >= ' ' && key < 0x7f && n + 1 < sizeof(ui->typed)) {
		ui->typed[n] = (char)key;
		ui->typed[n + 1] = 0;
	}
}
