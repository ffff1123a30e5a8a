/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/zoom.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

void zoom_add(struct zoom_path *to, const struct zoom *z, enum view view)
{
	to->v[to->n].zoom = *z;
	to->v[to->n++].view = view;
}

void zoom_add_symbol(const struct ui *ui, struct zoom_path *to, uint32_t symbol, enum view view)
{
	struct zoom z = { .kind = ZOOM_FUNCTION, .id = symbol };

	snprintf(z.label, sizeof(z.label), "%s", symbolizer_name(ui->symbols, symbol));
	zoom_add(to, &z, view);
}

struct zoom zoom_of_process(uint32_t pid, const char *name)
{
	struct zoom z = { .kind = ZOOM_PROCESS, .id = pid };
	char clean[SF_COMM * 3 + 1];

	text_clean(clean, sizeof(clean), name, strnlen(name, SF_COMM), 0);
	snprintf(z.label, sizeof(z.label), "%s (%u)", clean, pid);
	return z;
}
