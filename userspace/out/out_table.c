/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

#define MODULE_COLUMNS 20
#define NAME_COLUMN    51 /* a screen of 80 columns leaves 29 for it */
#define LEAST	       8  /* columns of a name, however narrow the screen */

static bool is_time(const char *unit)
{
	return !strcmp(unit, "microseconds");
}

const char *out_table_time(char buf[OUT_TIME], uint64_t usec)
{
	if (usec >= 1000000)
		snprintf(buf, OUT_TIME, "%.3f s", (double)usec / 1e6);
	else if (usec >= 1000)
		snprintf(buf, OUT_TIME, "%.3f ms", (double)usec / 1e3);
	else
		snprintf(buf, OUT_TIME, "%" PRIu64 " us", usec);
	return buf;
}

void out_table_head(FILE *f, const char *unit)
{
	fprintf(f, "  SELF%%  TOTAL%% %10s  %-*s  FUNCTION\n", is_time(unit) ? "SELF TIME" : "SELF",
		MODULE_COLUMNS, "MODULE");
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

void out_table_row(FILE *f, const struct out_table_row *row, const char *unit, int columns)
{
	char cell[256], self[OUT_TIME];
	int used = text_fit(cell, sizeof(cell), *row->module ? row->module : "-", MODULE_COLUMNS,
			    false);

	if (is_time(unit))
		out_table_time(self, row->self);
	else
		snprintf(self, sizeof(self), "%" PRIu64, row->self);
	fprintf(f, "%7.2f %7.2f %10s  %s%*s  ", row->self_pct, row->total_pct, self, cell,
		MODULE_COLUMNS - used, "");
	out_table_name(f, row->name, row->suffix, NAME_COLUMN, columns);
}
