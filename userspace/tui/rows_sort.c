/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of rows, and their values in the baseline. */
#include <string.h>

#include "tui/rows.h"
#include "tui/view.h"

static int ascending(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_share(uint64_t a, uint64_t a_sum, uint64_t b, uint64_t b_sum)
{
	double x = ui_share(a, a_sum), y = ui_share(b, b_sum);

	return x < y ? -1 : x > y;
}

/*
 * Comparisons of rows: the row that belongs further down is the smaller one. So names are compared
 * in reverse.
 */
int compare_functions(const struct ui *ui, enum column by, const struct ui_row *a,
		      const struct ui_row *b)
{
	const struct census_function *x = &ui->census.functions[a->index],
				     *y = &ui->census.functions[b->index];
	int c = 0;

	switch (by) {
	case COL_TOTAL:
		c = ascending(x->total, y->total);
		break;
	case COL_KERNEL:
		c = by_share(x->kernel, x->total, y->kernel, y->total);
		break;
	case COL_MODULE:
		c = strcmp(y->module, x->module);
		break;
	case COL_FUNCTION:
		c = strcmp(y->name, x->name);
		break;
	default:
		break;
	}
	c = c ? c : ascending(x->self, y->self);
	c = c ? c : ascending(x->total, y->total);
	c = c ? c : strcmp(y->name, x->name);
	return c ? c : strcmp(y->module, x->module);
}

const struct census_process *rows_process(const struct ui *ui, const struct ui_row *row)
{
	return row->kind != ROW_WHOLE ? &ui->census.threads[row->index]
				      : &ui->census.processes[row->index];
}

int compare_processes(const struct ui *ui, enum column by, const struct ui_row *a,
		      const struct ui_row *b)
{
	const struct census_process *x = rows_process(ui, a), *y = rows_process(ui, b);
	char nx[64], ny[64];
	int c = 0;

	switch (by) {
	case COL_PID:
		c = ascending(y->pid, x->pid);
		break;
	case COL_KERNEL:
		c = by_share(x->kernel, x->self, y->kernel, y->self);
		break;
	case COL_COMPLETE: /* worst first, rows without user stacks last */
		if (x->user_stacks && y->user_stacks)
			c = by_share(y->complete, y->user_stacks, x->complete, x->user_stacks);
		else
			c = ascending(!!x->user_stacks, !!y->user_stacks);
		break;
	case COL_COMM:
		c = strncmp(y->comm, x->comm, SF_COMM);
		break;
	case COL_CGROUP:
		c = strcmp(rows_cgroup(ui, y, ny, sizeof(ny)), rows_cgroup(ui, x, nx, sizeof(nx)));
		break;
	case COL_HOTTEST:
		c = strcmp(symbolizer_name(ui->symbols, y->hottest),
			   symbolizer_name(ui->symbols, x->hottest));
		break;
	default:
		break;
	}
	c = c ? c : ascending(x->self, y->self);
	c = c ? c : strncmp(y->comm, x->comm, SF_COMM);
	return c ? c : ascending(y->pid, x->pid);
}

static uint64_t module_rows_of(const struct census_module *m)
{
	return m->file ? m->file->rows : 0;
}

static uint64_t module_bytes_of(const struct census_module *m)
{
	return m->file ? m->file->bytes : 0;
}

static uint64_t module_ended(const struct census_module *m)
{
	return m->user_stacks ? m->ended[census_worst_stop(m)] : 0;
}

int compare_modules(const struct ui *ui, enum column by, const struct ui_row *a,
		    const struct ui_row *b)
{
	const struct census_module *x = &ui->census.modules[a->index],
				   *y = &ui->census.modules[b->index];
	char nx[512], ny[512];
	int c = 0;

	switch (by) {
	case COL_TOTAL:
		c = ascending(x->total, y->total);
		break;
	case COL_COMPLETE:
		if (x->user_stacks && y->user_stacks)
			c = by_share(y->complete, y->user_stacks, x->complete, x->user_stacks);
		else
			c = ascending(!!x->user_stacks, !!y->user_stacks);
		break;
	case COL_ROWS:
		c = ascending(module_rows_of(x), module_rows_of(y));
		break;
	case COL_BYTES:
		c = ascending(module_bytes_of(x), module_bytes_of(y));
		break;
	case COL_ENDS:
		c = ascending(module_ended(x), module_ended(y));
		break;
	case COL_TABLES:
		c = strcmp(rows_module_tables(y), rows_module_tables(x));
		break;
	case COL_FILE:
		c = strcmp(rows_module_name(y, ny, sizeof(ny)),
			   rows_module_name(x, nx, sizeof(nx)));
		break;
	default:
		break;
	}
	c = c ? c : ascending(x->self, y->self);
	c = c ? c : ascending(x->total, y->total);
	c = c ? c : ascending(module_bytes_of(x), module_bytes_of(y));
	return c ? c : ascending(rows_module_key(y), rows_module_key(x));
}

static uint64_t each_ns(const struct blocked_stack *b)
{
	return b->blocks ? b->ns / b->blocks : 0;
}

int compare_blocked(const struct ui *ui, enum column by, const struct ui_row *a,
		    const struct ui_row *b)
{
	const struct blocked_stack *x = &ui->off.now.v[a->index], *y = &ui->off.now.v[b->index];
	struct profile_stack sx, sy;
	int c = 0;

	profile_stack(ui->off.window, x->stack, &sx);
	profile_stack(ui->off.window, y->stack, &sy);
	switch (by) {
	case COL_BLOCKS:
		c = ascending(x->blocks, y->blocks);
		break;
	case COL_EACH:
		c = ascending(each_ns(x), each_ns(y));
		break;
	case COL_STATE:
		c = ascending(sy.state, sx.state);
		break;
	case COL_PID:
		c = ascending(y->pid, x->pid);
		break;
	case COL_COMM:
		c = strcmp(sy.comm, sx.comm);
		break;
	case COL_BLOCKED:
		c = strcmp(rows_blocked_leaf(ui, y), rows_blocked_leaf(ui, x));
		break;
	default:
		break;
	}
	c = c ? c : ascending(x->ns, y->ns);
	c = c ? c : strcmp(sy.comm, sx.comm);
	c = c ? c : strcmp(rows_blocked_leaf(ui, y), rows_blocked_leaf(ui, x));
	/* The keys are keyed hashes, so this order differs between runs. */
	return c ? c : ascending(x->key, y->key);
}

/* ---- Values in the baseline ---- */

bool then_function(const struct ui *ui, size_t i, struct row_then *ret)
{
	const struct census *c = &ui->before;

	if (i < c->nfunctions)
		*ret = (struct row_then){ c->functions[i].symbol, c->functions[i].self };
	return i < c->nfunctions;
}

bool then_process(const struct ui *ui, size_t i, struct row_then *ret)
{
	const struct census *c = &ui->before;

	if (i < c->nprocesses)
		*ret = (struct row_then){ c->processes[i].pid, c->processes[i].self };
	return i < c->nprocesses;
}

bool then_module(const struct ui *ui, size_t i, struct row_then *ret)
{
	const struct census *c = &ui->before;

	if (i < c->nmodules)
		*ret = (struct row_then){ rows_module_key(&c->modules[i]), c->modules[i].self };
	return i < c->nmodules;
}

bool then_blocked(const struct ui *ui, size_t i, struct row_then *ret)
{
	if (i < ui->off.before.n)
		*ret = (struct row_then){ ui->off.before.v[i].key, ui->off.before.v[i].ns };
	return i < ui->off.before.n;
}

uint64_t self_of_function(const struct ui *ui, const struct ui_row *row)
{
	return ui->census.functions[row->index].self;
}

uint64_t self_of_process(const struct ui *ui, const struct ui_row *row)
{
	return rows_process(ui, row)->self;
}

uint64_t self_of_module(const struct ui *ui, const struct ui_row *row)
{
	return ui->census.modules[row->index].self;
}

uint64_t self_of_blocked(const struct ui *ui, const struct ui_row *row)
{
	return ui->off.now.v[row->index].ns;
}

int rows_compare(const void *a, const void *b, void *ctx)
{
	const struct ui_row *x = a, *y = b;
	const struct ui *ui = ctx;
	const struct ui_position *pos = &ui->pos[ui->view];
	int c = 0;

	if (pos->sort == COL_DIFF)
		c = x->diff < y->diff ? -1 : x->diff > y->diff;
	if (!c)
		c = view_at(ui->view)->compare(ui, pos->sort, x, y);
	return pos->invert ? c : -c;
}

bool rows_filter(const char *filter, const char *s)
{
	return !*filter || strcasestr(s, filter);
}
