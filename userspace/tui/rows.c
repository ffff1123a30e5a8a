/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/rows.h"
#include "tui/view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"

#define OPENED_MAX 4096 /* rows opened by the user; beyond that the older half is dropped */

/* ---- Opened rows ---- */

void keyset_free(struct keyset *ks)
{
	free(ks->v);
	*ks = (struct keyset){ 0 };
}

int keyset_get(const struct keyset *ks, uint64_t key)
{
	for (size_t i = 0; i < ks->n; i++)
		if (ks->v[i].key == key)
			return ks->v[i].open;
	return -1;
}

void keyset_set(struct keyset *ks, uint64_t key, bool open)
{
	size_t i;

	for (i = 0; i < ks->n && ks->v[i].key != key; i++)
		;
	if (i == ks->n) {
		if (ks->n == OPENED_MAX) {
			ks->n /= 2;
			memmove(ks->v, ks->v + ks->n, ks->n * sizeof(*ks->v));
			i = ks->n;
		}
		if (vec_reserve(&ks->v, &ks->cap, ks->n + 1, sizeof(*ks->v)))
			return;
		ks->v[ks->n++].key = key;
	}
	ks->v[i].open = open;
}

/* ---- Making rows ---- */

struct ui_row *rows_add(struct ui *ui, uint64_t key, uint32_t index)
{
	if (vec_reserve(&ui->rows, &ui->rows_cap, ui->nrows + 1, sizeof(*ui->rows)))
		return NULL;
	ui->rows[ui->nrows] = (struct ui_row){ .key = key, .index = index };
	return &ui->rows[ui->nrows++];
}

int rows_functions(struct ui *ui)
{
	for (size_t i = 0; i < ui->census.nfunctions; i++) {
		const struct census_function *f = &ui->census.functions[i];

		if ((rows_filter(ui->filter, f->name) || rows_filter(ui->filter, f->module)) &&
		    !rows_add(ui, f->symbol, (uint32_t)i))
			return -ENOMEM;
	}
	return 0;
}

bool rows_open_by_hand(const struct ui *ui, uint64_t key)
{
	int by_hand = keyset_get(&ui->opened, key);

	return by_hand >= 0 ? by_hand : ui->open_share <= 0;
}

int rows_processes(struct ui *ui)
{
	for (size_t i = 0; i < ui->census.nprocesses; i++) {
		const struct census_process *p = &ui->census.processes[i];
		char comm[SF_COMM * 3 + 1], pid[16];
		struct ui_row *row;

		text_clean(comm, sizeof(comm), p->comm, strlen(p->comm), 0);
		snprintf(pid, sizeof(pid), "%u", p->pid);
		if (!rows_filter(ui->filter, comm) && !rows_filter(ui->filter, pid))
			continue;
		row = rows_add(ui, p->pid, (uint32_t)i);
		if (!row)
			return -ENOMEM;
		row->opening = rows_open_by_hand(ui, rows_process_key(p->pid)) ? ROW_OPEN
									       : ROW_CLOSED;
	}
	return 0;
}

int rows_modules(struct ui *ui)
{
	for (size_t i = 0; i < ui->census.nmodules; i++) {
		const struct census_module *m = &ui->census.modules[i];
		char name[512];

		if (rows_filter(ui->filter, rows_module_name(m, name, sizeof(name))) &&
		    !rows_add(ui, rows_module_key(m), (uint32_t)i))
			return -ENOMEM;
	}
	return 0;
}

const char *rows_blocked_leaf(const struct ui *ui, const struct blocked_stack *b)
{
	const uint32_t *ids = profile_symbols(ui->off.window, b->stack, ui->symbols);
	struct profile_stack s;
	struct shown f;

	profile_stack(ui->off.window, b->stack, &s);
	f = shown_frames(&ui->sel, &s);
	return symbolizer_name(ui->symbols,
			       ids && shown_count(&f) ? ids[shown_at(&f, 0)] : SYM_NO_STACK);
}

/* By row: whether the filter matches any of its stacks. NULL: out of memory. */
static bool *found_rows(const struct ui *ui)
{
	const struct blocked *b = &ui->off.now;
	bool *found = calloc(b->n + 1, sizeof(*found));

	/* Only stacks counted by blocked_build: the profile may have grown since then. */
	for (size_t i = 0; found && b->n && i < b->nstacks; i++)
		if (b->row_of[i] != BLOCKED_NONE && !found[b->row_of[i]])
			found[b->row_of[i]] = rows_filter_stack(ui, VIEW_OFFCPU, ui->off.window, i);
	return found;
}

int rows_blocked(struct ui *ui)
{
	bool *found = ui->filter[0] ? found_rows(ui) : NULL;
	int err = ui->filter[0] && !found ? -ENOMEM : 0;

	for (size_t i = 0; i < ui->off.now.n && !err; i++) {
		const struct blocked_stack *b = &ui->off.now.v[i];
		struct ui_row *row;

		if (found && !found[i])
			continue;
		row = rows_add(ui, b->key, (uint32_t)i);
		if (row)
			row->opening = rows_open_by_hand(ui, b->key) ? ROW_OPEN : ROW_CLOSED;
		else
			err = -ENOMEM;
	}
	free(found);
	return err;
}

/* ---- Filtering stacks ---- */

static bool filter_who(const char *filter, const struct profile_stack *s)
{
	char comm[SF_COMM * 3 + 1], process[SF_COMM * 3 + 1], pid[16];

	text_clean(comm, sizeof(comm), s->comm, strlen(s->comm), 0);
	text_clean(process, sizeof(process), s->process, strlen(s->process), 0);
	snprintf(pid, sizeof(pid), "%u", s->pid);
	return rows_filter(filter, comm) || rows_filter(filter, process) ||
	       rows_filter(filter, pid);
}

bool rows_filter_stack(const struct ui *ui, enum view view, struct profile *p, size_t i)
{
	const uint32_t *ids = profile_symbols(p, i, ui->symbols);
	unsigned int finds = view_at(view)->finds;
	struct profile_stack s;
	struct shown f;

	profile_stack(p, i, &s);
	f = shown_frames(&ui->sel, &s);
	if ((finds & VIEW_FINDS_PROCESS) && filter_who(ui->filter, &s))
		return true;
	for (size_t k = 0; ids && k < shown_count(&f); k++) {
		uint32_t id = ids[shown_at(&f, k)];

		if (((finds & VIEW_FINDS_FUNCTION) &&
		     rows_filter(ui->filter, symbolizer_name(ui->symbols, id))) ||
		    ((finds & VIEW_FINDS_MODULE) &&
		     rows_filter(ui->filter, symbolizer_module(ui->symbols, id))))
			return true;
	}
	return false;
}

/* ---- The change since the baseline ---- */

static int ascending(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_key(const void *a, const void *b)
{
	return ascending(((const struct row_then *)a)->key, ((const struct row_then *)b)->key);
}

static int compare_with_baseline(struct ui *ui)
{
	const struct view_spec *view = view_at(ui->view);
	bool off = ui->view == VIEW_OFFCPU;
	uint64_t sum = off ? ui->off.now.ns : ui->census.sum,
		 sum_then = off ? ui->off.before.ns : ui->before.sum;
	struct row_then *v = NULL;
	size_t n = 0, cap = 0;

	if (!view->then || !ui_has_baseline(ui))
		return 0;
	for (;; n++) {
		if (vec_reserve(&v, &cap, n + 1, sizeof(*v))) {
			free(v);
			return -ENOMEM;
		}
		if (!view->then(ui, n, &v[n]))
			break;
	}
	qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 0; i < ui->nrows; i++) {
		struct ui_row *row = &ui->rows[i];
		const struct row_then key = { .key = row->key },
				      *then = bsearch(&key, v, n, sizeof(*v), by_key);

		row->diff = ui_share(view->self(ui, row), sum) -
			    ui_share(then ? then->self : 0, sum_then);
	}
	free(v);
	return 0;
}

/* ---- Processes opened into their thread names, blocked stacks into their frames ---- */

/* Index of the first of n ascending numbers, `stride` bytes apart, that is >= key; n: none. */
static size_t lower_bound(const uint32_t *first, size_t stride, size_t n, uint32_t key)
{
	size_t lo = 0, hi = n; /* invariant: numbers before lo are < key, those from hi on >= key */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (*(const uint32_t *)((const char *)first + mid * stride) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Index of the first thread of a process; nthreads: none. */
static size_t first_thread(const struct census *c, uint32_t pid)
{
	return c->nthreads
		       ? lower_bound(&c->threads[0].pid, sizeof(c->threads[0]), c->nthreads, pid)
		       : 0;
}

#define HOTTEST 5 /* functions listed below an opened thread name */

struct hot_list {
	struct census_hot *v; /* NULL: not made yet */
	size_t n;
};

/* Index of the thread's first hot function, if it has one. */
static size_t first_hot(const struct hot_list *hot, uint32_t thread)
{
	return hot->n ? lower_bound(&hot->v[0].thread, sizeof(hot->v[0]), hot->n, thread) : 0;
}

static int add_hottest(struct ui *ui, struct hot_list *hot, uint64_t key, uint32_t index,
		       uint16_t indent)
{
	uint32_t id = ui->census.threads[index].id;
	size_t first;

	if (!hot->v && census_hottest(&ui->census, &hot->v, &hot->n))
		return -ENOMEM;
	first = first_hot(hot, id);
	for (size_t i = first; i < hot->n && hot->v[i].thread == id && i < first + HOTTEST; i++) {
		struct ui_row *row = rows_add(ui, hash_mix(key, hot->v[i].symbol), index);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_FUNCTION;
		row->indent = indent;
		row->symbol = hot->v[i].symbol;
		row->self = hot->v[i].self;
	}
	return 0;
}

/* A process whose threads all have its name lists its functions directly. */
static int add_threads(struct ui *ui, const struct census_process *process, struct hot_list *hot)
{
	const struct census *c = &ui->census;
	uint32_t pid = process->pid, names = process->names;
	size_t first = first_thread(c, pid);

	if (names < 2 && !strncmp(c->threads[first].comm, process->comm, SF_COMM))
		return add_hottest(ui, hot, rows_process_key(pid), (uint32_t)first, 1);
	for (size_t k = first; k < c->nthreads && c->threads[k].pid == pid; k++) {
		const struct census_process *t = &c->threads[k];
		uint64_t key = 1ull << 63 | hash_mix(pid, hash_bytes(t->comm, sizeof(t->comm)));
		struct ui_row *row = rows_add(ui, key, (uint32_t)k);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_THREAD;
		row->indent = 1;
		row->opening = rows_open_by_hand(ui, key) ? ROW_OPEN : ROW_CLOSED;
		if (row->opening == ROW_OPEN && add_hottest(ui, hot, key, (uint32_t)k, 2))
			return -ENOMEM;
	}
	return 0;
}

int rows_process_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot)
{
	return add_threads(ui, &ui->census.processes[top->index], hot);
}

/* The frames from the leaf's caller on; the row itself shows the leaf. */
int rows_blocked_parts(struct ui *ui, const struct ui_row *top, struct hot_list *hot)
{
	uint64_t key = top->key;
	uint32_t index = top->index;
	uint32_t stack = ui->off.now.v[index].stack;
	const uint32_t *ids = profile_symbols(ui->off.window, stack, ui->symbols);
	struct profile_stack s;
	struct shown f;

	(void)hot;
	profile_stack(ui->off.window, stack, &s);
	f = shown_frames(&ui->sel, &s);
	for (size_t k = 1; ids && k < shown_count(&f); k++) {
		struct ui_row *row = rows_add(ui, hash_mix(key, k + 1), index);

		if (!row)
			return -ENOMEM;
		row->kind = ROW_FUNCTION;
		row->indent = 1;
		row->symbol = ids[shown_at(&f, k)];
	}
	return 0;
}

static int insert_parts(struct ui *ui)
{
	size_t n = ui->nrows;
	struct ui_row *top = n ? malloc(n * sizeof(*top)) : NULL, *row;
	int err = n && !top ? -ENOMEM : 0;
	struct hot_list hot = { 0 };

	if (top)
		memcpy(top, ui->rows, n * sizeof(*top));
	ui->nrows = 0;
	for (size_t i = 0; i < n && !err; i++) {
		row = rows_add(ui, 0, 0);
		if (!row) {
			err = -ENOMEM;
			break;
		}
		*row = top[i];
		if (top[i].opening == ROW_OPEN)
			err = view_at(ui->view)->add_parts(ui, &top[i], &hot);
	}
	free(hot.v);
	free(top);
	return err;
}

static int list_rows(struct ui *ui)
{
	int err = view_at(ui->view)->rows(ui);

	if (!err)
		err = compare_with_baseline(ui);
	if (!err && ui->nrows)
		qsort_r(ui->rows, ui->nrows, sizeof(*ui->rows), rows_compare, ui);
	if (!err && view_at(ui->view)->add_parts)
		err = insert_parts(ui);
	return err;
}

/* ---- Trees ---- */

/* Marks the ancestors of nodes that match the filter, so that they are opened. */
static void search_tree(struct ui *ui)
{
	struct calltree *t = &ui->tree;
	char name[512];

	for (size_t i = 0; i < t->n; i++)
		t->nodes[i].found = false;
	for (size_t i = 1; i < t->n && ui->filter[0]; i++) {
		if (!rows_filter(ui->filter, rows_node_name(ui, &t->nodes[i], name, sizeof(name))))
			continue;
		for (uint32_t k = t->nodes[i].parent; k != CALLTREE_NONE && !t->nodes[k].found;
		     k = t->nodes[k].parent)
			t->nodes[k].found = true;
	}
}

static bool is_open(const struct ui *ui, const struct calltree_node *node)
{
	int by_hand = keyset_get(&ui->opened, node->path);

	if (by_hand >= 0)
		return by_hand;
	return node->found ||
	       ui_share(node->total, ui->tree.nodes[CALLTREE_ROOT].total) >= ui->open_share;
}

#define FOLD_MIN 4 /* shorter chains are shown */

/*
 * The number of frames in the unbranched chain below a node: each has one child and no samples of
 * its own. *ret_end is the frame after the chain.
 */
static uint32_t chain_below(const struct ui *ui, uint32_t from, uint32_t *ret_end)
{
	const struct calltree_node *nodes = ui->tree.nodes;
	uint32_t n = 0, at;

	if (nodes[from].nchildren != 1)
		return 0;
	at = nodes[from].first_child;
	while (nodes[at].nchildren == 1 && nodes[nodes[at].first_child].total == nodes[at].total &&
	       keyset_get(&ui->opened, nodes[at].path) != 0) {
		at = nodes[at].first_child;
		n++;
	}
	*ret_end = at;
	return n;
}

static int add_children(struct ui *ui, uint32_t parent, unsigned int indent);

static int add_node(struct ui *ui, uint32_t index, unsigned int indent, struct ui_row **ret)
{
	const struct calltree_node *node = &ui->tree.nodes[index];
	struct ui_row *row = rows_add(ui, node->path, index);
	char name[512];

	if (!row)
		return -ENOMEM;
	row->indent = (uint16_t)indent;
	row->match = ui->filter[0] &&
		     rows_filter(ui->filter, rows_node_name(ui, node, name, sizeof(name)));
	if (node->nchildren)
		row->opening = is_open(ui, node) ? ROW_OPEN : ROW_CLOSED;
	*ret = row;
	return 0;
}

/*
 * Adds the rows below an opened node. A long chain without branches becomes one row, unless the
 * user opened it or a match is below the node.
 */
static int add_below(struct ui *ui, uint32_t index, unsigned int indent)
{
	const struct calltree_node *node = &ui->tree.nodes[index];
	uint32_t end = index, n = chain_below(ui, index, &end);
	uint64_t key = ~node->path;
	struct ui_row *row;
	int err;

	if (n < FOLD_MIN || node->found || ui->open_share <= 0 ||
	    keyset_get(&ui->opened, key) == 1 || !is_open(ui, &ui->tree.nodes[node->first_child]))
		return add_children(ui, index, indent);
	row = rows_add(ui, key, node->first_child);
	if (!row)
		return -ENOMEM;
	row->indent = (uint16_t)indent;
	row->opening = ROW_CLOSED;
	row->folded = n;
	err = add_node(ui, end, indent, &row);
	if (!err && row->opening == ROW_OPEN)
		err = add_below(ui, end, indent + (ui->tree.nodes[end].nchildren > 1));
	return err;
}

static int add_children(struct ui *ui, uint32_t parent, unsigned int indent)
{
	const struct calltree *t = &ui->tree;
	size_t n = t->nodes[parent].nchildren;
	uint32_t *children = n ? malloc(n * sizeof(*children)) : NULL;
	int err = n && !children ? -ENOMEM : 0;

	n = children ? calltree_children(t, parent, children, n) : 0;
	for (size_t i = 0; i < n && !err; i++) {
		struct ui_row *row;

		err = add_node(ui, children[i], indent, &row);
		/* Chains without branches are not indented, because stacks are deep. */
		if (!err && row->opening == ROW_OPEN)
			err = add_below(ui, children[i],
					indent + (t->nodes[children[i]].nchildren > 1 || n > 1 ||
						  parent == CALLTREE_ROOT));
	}
	free(children);
	return err;
}

/* ---- The flame ---- */

/* By name, so that a frame keeps its position across refreshes. */
static int cmp_names(const void *a, const void *b, void *ctx)
{
	const struct ui *ui = ctx;
	const struct calltree_node *x = &ui->tree.nodes[*(const uint32_t *)a],
				   *y = &ui->tree.nodes[*(const uint32_t *)b];
	char nx[512], ny[512];

	return strcmp(rows_node_name(ui, x, nx, sizeof(nx)), rows_node_name(ui, y, ny, sizeof(ny)));
}

static int add_flames(struct ui *ui, uint32_t parent, int x, int width)
{
	const struct calltree *t = &ui->tree;
	uint64_t total = t->nodes[parent].total, before = 0;
	size_t n = t->nodes[parent].nchildren;
	uint32_t *children = n ? malloc(n * sizeof(*children)) : NULL;
	int err = n && !children ? -ENOMEM : 0;
	char name[512];

	n = children ? calltree_children(t, parent, children, n) : 0;
	if (n > 1)
		qsort_r(children, n, sizeof(*children), cmp_names, ui);
	for (size_t i = 0; i < n && !err; i++) {
		const struct calltree_node *node = &t->nodes[children[i]];
		int from = (int)(before * (uint64_t)width / total), to;
		struct ui_row *row;

		before += node->total;
		to = (int)(before * (uint64_t)width / total);
		if (to <= from)
			continue;
		row = rows_add(ui, node->path, children[i]);
		if (!row) {
			err = -ENOMEM;
			break;
		}
		row->indent = node->depth;
		row->x = x + from;
		row->width = to - from;
		row->match = ui->filter[0] &&
			     rows_filter(ui->filter, rows_node_name(ui, node, name, sizeof(name)));
		err = add_flames(ui, children[i], row->x, row->width);
	}
	free(children);
	return err;
}

int rows_tree(struct ui *ui)
{
	return add_children(ui, CALLTREE_ROOT, 0);
}

int rows_flame(struct ui *ui)
{
	const struct calltree_node *root = &ui->tree.nodes[CALLTREE_ROOT];
	struct ui_row *row;

	if (!root->total)
		return 0;
	row = rows_add(ui, root->path, CALLTREE_ROOT);
	if (!row)
		return -ENOMEM;
	row->width = ui->w;
	return add_flames(ui, CALLTREE_ROOT, 0, ui->w);
}

/* ---- All of them ---- */

/* Moves the cursor with its row. A cursor on the first row stays there, unless it follows. */
static void anchor(struct ui *ui)
{
	struct ui_position *pos = &ui->pos[ui->view];

	if (pos->cursor || pos->follow) {
		for (size_t i = 0; i < ui->nrows; i++) {
			if (ui->rows[i].key == pos->key) {
				pos->cursor = i;
				return;
			}
		}
	}
	if (pos->cursor >= ui->nrows)
		pos->cursor = ui->nrows ? ui->nrows - 1 : 0;
	if (ui->nrows && !pos->follow)
		pos->key = ui->rows[pos->cursor].key;
}

int rows_build(struct ui *ui)
{
	int err = 0;

	ui->nrows = 0;
	if (IN(ui->view) & IN_LISTS) {
		err = list_rows(ui);
	} else if (ui->tree.n) {
		search_tree(ui);
		err = view_at(ui->view)->rows(ui);
	}
	if (err)
		ui->nrows = 0;
	anchor(ui);
	return err;
}
