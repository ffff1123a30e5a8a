/* SPDX-License-Identifier: BSD-2-Clause */
/* The help, generated from the key bindings. */
#include <stdio.h>
#include <string.h>

#include "tui/screen.h"

#define KEYS_WIDTH 18

static const char *const notes[] = {
	"SELF%   samples in the function itself, not in its callees",
	"TOTAL%  samples with the function anywhere on the stack",
	"KERN%   share of these samples that were taken in kernel mode",
	"COMPL%  user stacks that reach their outermost frame",
	"ENDS    the most common reason why stacks end early in the module",
	"PART%   share of the parent row's samples that come from this caller",
	"Percentages refer to the samples in the window and the zoom.",
	"Mouse: click a row, view, column or key; double-click zooms; wheel moves.",
};

#define NNOTES (sizeof(notes) / sizeof(notes[0]))

size_t help_lines(void)
{
	size_t n = NNOTES + 1;

	for (size_t i = 0; keys_at(i); i++)
		n += keys_at(i)->help != NULL;
	return n;
}

void draw_help(const struct ui *ui, struct grid *g)
{
	static const char title[] =
		"sfbpf top " SFBPF_VERSION
		": where the CPUs spend their time, by full stacks of all processes";
	bool more = g->h < 3 || help_lines() > (size_t)(g->h - 3);
	size_t line = 0, first = ui->help_scroll;
	int end = g->h - 1, y = 2;
	char keys[64];

	grid_fit(g, 0, 0, g->w, ROLE_STRONG, title);
	for (size_t i = 0; keys_at(i); i++) {
		const struct binding *b = keys_at(i);

		if (!b->help || line++ < first || y >= end)
			continue;
		grid_fit(g, 1, y, KEYS_WIDTH - 2, ROLE_KEY, keys_text(b, keys, sizeof(keys)));
		grid_fit(g, KEYS_WIDTH, y++, g->w - KEYS_WIDTH, ROLE_TEXT, b->help);
	}
	if (line++ >= first && y < end)
		y++;
	for (size_t i = 0; i < NNOTES; i++)
		if (line++ >= first && y < end)
			grid_fit(g, 1, y++, g->w - 1, ROLE_DIM, notes[i]);
	grid_fit(g, 0, g->h - 1, g->w, ROLE_LABEL,
		 more ? "Up, Down, PgUp, PgDn: scroll   any other key: close" : "any key: close");
}
