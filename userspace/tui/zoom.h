/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the Enter key leads from a row: levels that are added to the zoom, each with its view. */
#ifndef SFBPF_TUI_ZOOM_H
#define SFBPF_TUI_ZOOM_H

#include "tui/ui.h"

struct zoom_path { /* zeroed before its use */
	struct {
		struct zoom zoom;
		enum view view;
	} v[2];
	unsigned int n;
	const char *refused; /* the reason why the row leads nowhere, for the user; NULL: none */
};

void zoom_add(struct zoom_path *to, const struct zoom *z, enum view view);
void zoom_add_symbol(const struct ui *ui, struct zoom_path *to, uint32_t symbol, enum view view);
/* A process, with its name for the label: foreign bytes, at most SF_COMM */
struct zoom zoom_of_process(uint32_t pid, const char *name);

#endif
