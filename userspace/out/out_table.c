/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_table.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

#define MODULE_COLUMNS 20
#define NAME_COLUMN 51			/* 80 leave room for 29 */
#define LEAST 8				/* of a name, however narrow the screen */

void out_table_head(FILE *f, const char *unit)
{
	fprintf(f, "  SELF%%  TOTAL%% %10s  %-*s  FUNCTION\n", strcmp(unit, "samples") ? "SELF(us)" : "SELF", MODULE_COLUMNS, "MODULE");
}

void out_table_name(FILE *f, const char *name, const char *suffix, int used, int columns)
{
	char text[4096], cell[4096];

	if (!columns) {
		fprintf(f, "%s%s\n", name, suffix);
		return;
	}
	snprintf(text, sizeof(text), "%s%s", name, suffix);
	text_fit(cell, sizeof(cell), text, columns - used > LEAST ? columns - used : LEAST, false);
	fprintf(f, "%s\n", cell);
}

void out_table_row(FILE *f, const struct out_table_row *row, int columns)
{
	char cell[256];
	int used = text_fit(cell, sizeof(cell), *row->module ? row->module : "-", MODULE_COLUMNS, false);

	fprintf(f, "%7.2f %7.2f %10" PRIu64 "  %s%*s  ", row->self_pct, row->total_pct, row->self, cell, MODULE_COLUMNS - used, "");
	out_table_name(f, row->name, row->suffix, NAME_COLUMN, columns);
}
