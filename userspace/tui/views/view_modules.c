/* SPDX-License-Identifier: BSD-2-Clause */
/* Modules: files with their unwind tables, and how stacks through them end. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "tui/draw_cell.h"
#include "tui/rows.h"
#include "tui/view.h"
#include "tui/zoom.h"

enum { COL_COMPLETE = COL_OWN, COL_TABLES, COL_ROWS, COL_BYTES, COL_ENDS, COL_FILE };

static const struct column_spec columns[] = {
	{ COL_SELF, "SELF%", 7, 7, 0, 0 },
	{ COL_TOTAL, "TOTAL%", 8, 8, 0, 0 },
	{ COL_COMPLETE, "COMPL%", 8, 8, 60, 0 },
	{ COL_DIFF, "DIFF", 7, 7, 50, 0 },
	{ COL_TABLES, "TABLES", 10, 10, 38, COLUMN_LEFT },
	{ COL_ROWS, "ROWS", 8, 9, 70, 0 },
	{ COL_BYTES, "BYTES", 7, 8, 60, 0 },
	{ COL_ENDS, "ENDS", 13, 14, 80, COLUMN_LEFT },
	{ COL_FILE, "MODULE", 0, 0, 0, COLUMN_LEFT },
	{ 0 },
};

static const struct census_module *module_of(const struct ui *ui, const struct ui_row *row)
{
	return &ui->census.modules[row->index];
}

static uint64_t key_of(const struct census_module *m)
{
	return m->file ? 1ull << 32 | m->file->id : m->index;
}

static const char *name_of(const struct census_module *m, char *dst, size_t cap)
{
	const char *raw = m->name				       ? m->name
			  : m->file && m->file->name && *m->file->name ? m->file->name
								       : "[unknown]";

	text_clean(dst, cap, raw, strlen(raw), 0);
	return dst;
}

static const char *source_of(const struct module *m)
{
	const struct module_ranges *r = m->ranges;

	for (uint32_t i = 0; r && i < r->n; i++)
		if (r->v[i].code)
			return "with code";
	return r ? "sframe" : "eh_frame";
}

static const char *tables_of(const struct census_module *m)
{
	if (!m->file)
		return "-";
	if (m->file->state == FILE_PUBLISHED)
		return source_of(m->file);
	if (m->file->state == FILE_RETIRED)
		return "evicted";
	switch ((enum file_known)m->file->known) { /* clang 14 takes no atomic here */
	case KNOWN_ID:
		return "loading";
	case KNOWN_PATH:
		return "gone";
	case KNOWN_TABLES:
		return "evicted";
	default:
		return "none";
	}
}

static int modules_rows(struct ui *ui)
{
	for (size_t i = 0; i < ui->census.nmodules; i++) {
		const struct census_module *m = &ui->census.modules[i];
		struct ui_row *row;
		char text[512];

		if (!rows_filter(ui->filter, name_of(m, text, sizeof(text))))
			continue;
		row = rows_add(ui, key_of(m), (uint32_t)i);
		if (!row)
			return -ENOMEM;
		row->self = m->self;
	}
	return 0;
}

static void cell_ends(const struct cell_at *c, const struct census_module *m)
{
	uint8_t stop = census_worst_stop(m);

	if (stop != SF_STOP_COMPLETE)
		cell_text(c, ui_share(m->ended[stop], m->user_stacks) >= 3 ? ROLE_BAD : ROLE_TEXT,
			  profile_stop_name(stop));
}

static void modules_cell(const struct ui *ui, const struct cell_at *c, const struct ui_row *row)
{
	const struct census_module *m = module_of(ui, row);
	char text[512] = "-";

	switch (c->col->id) {
	case COL_SELF:
		cell_share(c, m->self, ui->census.sum, true);
		break;
	case COL_TOTAL:
		cell_share(c, m->total, ui->census.sum, false);
		break;
	case COL_COMPLETE:
		cell_complete(c, m->complete, m->user_stacks);
		break;
	case COL_DIFF:
		cell_diff(c, row->diff);
		break;
	case COL_TABLES:
		cell_text(c, m->file && !m->file->rows ? ROLE_WARN : ROLE_TEXT, tables_of(m));
		break;
	case COL_ROWS:
		cell_text(c, ROLE_TEXT,
			  m->file ? draw_amount(m->file->rows, text, sizeof(text)) : text);
		break;
	case COL_BYTES:
		cell_text(c, ROLE_TEXT,
			  m->file ? draw_bytes(m->file->bytes, text, sizeof(text)) : text);
		break;
	case COL_ENDS:
		cell_ends(c, m);
		break;
	default:
		cell_text(c, ROLE_TEXT, name_of(m, text, sizeof(text)));
		break;
	}
}

static uint64_t rows_of(const struct census_module *m)
{
	return m->file ? m->file->rows : 0;
}

static uint64_t memory_of(const struct census_module *m)
{
	return m->file ? m->file->bytes : 0;
}

static uint64_t ended(const struct census_module *m)
{
	return m->user_stacks ? m->ended[census_worst_stop(m)] : 0;
}

static int modules_compare(const struct ui *ui, unsigned int by, const struct ui_row *a,
			   const struct ui_row *b)
{
	const struct census_module *x = module_of(ui, a), *y = module_of(ui, b);
	char nx[512], ny[512];
	int c = 0;

	if (by == COL_TOTAL)
		c = rows_compare(x->total, y->total);
	else if (by == COL_COMPLETE)
		c = rows_compare_complete(x->complete, x->user_stacks, y->complete, y->user_stacks);
	else if (by == COL_ROWS)
		c = rows_compare(rows_of(x), rows_of(y));
	else if (by == COL_BYTES)
		c = rows_compare(memory_of(x), memory_of(y));
	else if (by == COL_ENDS)
		c = rows_compare(ended(x), ended(y));
	else if (by == COL_TABLES)
		c = strcmp(tables_of(y), tables_of(x));
	else if (by == COL_FILE)
		c = strcmp(name_of(y, ny, sizeof(ny)), name_of(x, nx, sizeof(nx)));
	c = c ? c : rows_compare(x->self, y->self);
	c = c ? c : rows_compare(x->total, y->total);
	c = c ? c : rows_compare(memory_of(x), memory_of(y));
	return c ? c : rows_compare(key_of(y), key_of(x));
}

static bool modules_baseline(const struct ui *ui, size_t i, struct baseline_row *ret)
{
	const struct census *c = &ui->before;

	if (i < c->nmodules)
		*ret = (struct baseline_row){ key_of(&c->modules[i]), c->modules[i].self };
	return i < c->nmodules;
}

static void modules_zoom(const struct ui *ui, const struct ui_row *row, struct zoom_path *to)
{
	const struct census_module *m = module_of(ui, row);
	struct zoom z = { .kind = ZOOM_MODULE, .id = m->index };

	name_of(m, z.label, sizeof(z.label));
	if (m->total)
		zoom_add(to, &z, VIEW_FUNCTIONS);
	else
		to->refused = "this module has no samples";
}

static const char *modules_name(const struct ui *ui, const struct ui_row *row, char *dst,
				size_t cap)
{
	return name_of(module_of(ui, row), dst, cap);
}

const struct view_spec view_modules = {
	.title = "Modules",
	.finds = VIEW_FINDS_MODULE,
	.census = CENSUS_MODULES,
	.rows = modules_rows,
	.zoom = modules_zoom,
	.name = modules_name,
	.columns = columns,
	.cell = modules_cell,
	.compare = modules_compare,
	.baseline = modules_baseline,
};
