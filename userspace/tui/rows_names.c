/* SPDX-License-Identifier: BSD-2-Clause */
/* The names and keys of rows. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/rows.h"
#include "tui/view.h"

const char *rows_node_name(const struct ui *ui, const struct calltree_node *node, char *dst,
			   size_t cap)
{
	const char *raw;

	switch (node->label) {
	case LABEL_PROCESS:
	case LABEL_COMM:
		raw = calltree_comm(&ui->tree, node->id);
		text_clean(dst, cap, raw, strlen(raw), 0);
		break;
	case LABEL_STOP:
		snprintf(dst, cap, "[incomplete:%s]", profile_stop_name((uint8_t)node->id));
		break;
	default:
		snprintf(dst, cap, "%s", symbolizer_name(ui->symbols, node->id));
		break;
	}
	return dst;
}

const char *rows_node_module(const struct ui *ui, const struct calltree_node *node)
{
	return node->label == LABEL_SYMBOL ? symbolizer_module(ui->symbols, node->id) : "";
}

const char *rows_module_name(const struct census_module *m, char *dst, size_t cap)
{
	const char *raw = m->name				       ? m->name
			  : m->file && m->file->name && *m->file->name ? m->file->name
								       : "[unknown]";

	text_clean(dst, cap, raw, strlen(raw), 0);
	return dst;
}

/* ---- Of rows: struct view_spec ---- */

const char *name_of_function(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	(void)dst, (void)cap;
	return ui->census.functions[row->index].name;
}

const char *name_of_process(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	const struct census_process *p = rows_process(ui, row);
	char comm[SF_COMM * 3 + 1];

	text_clean(comm, sizeof(comm), p->comm, strnlen(p->comm, SF_COMM), 0);
	snprintf(dst, cap, "%s %u", comm, p->pid);
	return dst;
}

const char *name_of_module(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	return rows_module_name(&ui->census.modules[row->index], dst, cap);
}

const char *name_of_blocked(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	(void)dst, (void)cap;
	return rows_blocked_leaf(ui, &ui->off.now.v[row->index]);
}

const char *name_of_node(const struct ui *ui, const struct ui_row *row, char *dst, size_t cap)
{
	return row->folded ? "" : rows_node_name(ui, &ui->tree.nodes[row->index], dst, cap);
}

const char *rows_cgroup(const struct ui *ui, const struct census_process *p, char *dst, size_t cap)
{
	snprintf(dst, cap, "%s", ui->cgroups ? cgroup_names_get(ui->cgroups, p->pid, p->comm) : "");
	return dst;
}

uint64_t rows_module_key(const struct census_module *m)
{
	return m->file ? 1ull << 32 | m->file->id : m->index;
}

uint64_t rows_process_key(uint32_t pid)
{
	return 1ull << 62 | pid;
}

static const char *tables_of(const struct module *m)
{
	const struct module_ranges *r = m->ranges;

	for (uint32_t i = 0; r && i < r->n; i++)
		if (r->v[i].code)
			return "with code";
	return r ? "sframe" : "eh_frame";
}

const char *rows_module_tables(const struct census_module *m)
{
	uint8_t known;

	if (!m->file)
		return "-";
	if (m->file->state == FILE_PUBLISHED)
		return tables_of(m->file);
	if (m->file->state == FILE_RETIRED)
		return "evicted";
	known = m->file->known;
	switch (known) {
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
