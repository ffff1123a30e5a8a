/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "out/out.h"
#include "out/out_html.h"
#include "out/out_table.h"

/* ---- Tables ---- */

/* What the stack of a leaf begins with, in the pool of names */
static const char *group_name(const struct stackset *ss, size_t leaf)
{
	return strpool_str(ss->strings, (uint32_t)ss->groups.keys[ss->leaves.keys[leaf].b].a);
}

struct node { /* a node of the trie; total includes its descendants */
	uint64_t total[STACK_SIDES];
	uint32_t child, sibling; /* 0: none */
};

/* group: only the stacks that begin with this name; NULL: all */
static int sum_nodes(const struct stackset *ss, const char *group, struct node **ret)
{
	struct node *nodes = calloc(ss->nodes.n, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	for (size_t l = 0; l < ss->leaves.n; l++)
		for (int side = 0; side < STACK_SIDES && (!group || group == group_name(ss, l));
		     side++)
			nodes[ss->leaves.keys[l].a].total[side] += ss->values[l][side];
	for (size_t i = ss->nodes.n - 1; i > 0; i--) {
		struct node *parent = &nodes[ss->nodes.keys[i].a];

		for (int side = 0; side < STACK_SIDES; side++)
			parent->total[side] += nodes[i].total[side];
		nodes[i].sibling = parent->child;
		parent->child = (uint32_t)i;
	}
	*ret = nodes;
	return 0;
}

static void tally_self(const struct stackset *ss, struct stacks_tally *ret)
{
	for (size_t i = 0; i < ss->frames.n; i++)
		ret[i].frame = (uint32_t)i;
	for (size_t l = 0; l < ss->leaves.n; l++) {
		uint32_t node = (uint32_t)ss->leaves.keys[l].a;

		for (int side = 0; node != STACK_ROOT && side < STACK_SIDES; side++)
			ret[ss->nodes.keys[node].b].self[side] += ss->values[l][side];
	}
}

/* Walks the tree and counts each frame on the path. A frame that is already on it is recursion. */
static int tally_total(const struct stackset *ss, const struct node *nodes,
		       struct stacks_tally *ret)
{
	uint32_t *above = calloc(ss->frames.n + 1, sizeof(*above)), node = STACK_ROOT;
	const struct idmap_key *keys = ss->nodes.keys;

	if (!above)
		return -ENOMEM;
	for (;;) {
		if (nodes[node].child) {
			node = nodes[node].child;
		} else {
			while (node != STACK_ROOT && !nodes[node].sibling) {
				above[keys[node].b]--;
				node = (uint32_t)keys[node].a;
			}
			if (node == STACK_ROOT)
				break;
			above[keys[node].b]--;
			node = nodes[node].sibling;
		}
		if (above[keys[node].b]++)
			continue;
		for (int side = 0; side < STACK_SIDES; side++)
			ret[keys[node].b].total[side] += nodes[node].total[side];
	}
	free(above);
	return 0;
}

int stacks_tally(const struct stackset *ss, struct stacks_tally **ret)
{
	struct stacks_tally *tally = calloc(ss->frames.n + 1, sizeof(*tally));
	struct node *nodes = NULL;
	int err = tally ? sum_nodes(ss, NULL, &nodes) : -ENOMEM;

	if (!err) {
		tally_self(ss, tally);
		err = tally_total(ss, nodes, tally);
	}
	free(nodes);
	if (err)
		free(tally);
	else
		*ret = tally;
	return err;
}

static double pct(uint64_t part, uint64_t sum)
{
	return sum ? 100.0 * (double)part / (double)sum : 0;
}

static int by_self(const void *a, const void *b)
{
	const struct stacks_tally *x = a, *y = b;

	if (x->self[STACK_AFTER] != y->self[STACK_AFTER])
		return x->self[STACK_AFTER] < y->self[STACK_AFTER] ? 1 : -1;
	if (x->total[STACK_AFTER] != y->total[STACK_AFTER])
		return x->total[STACK_AFTER] < y->total[STACK_AFTER] ? 1 : -1;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static void put_name(const struct stackset *ss, uint32_t frame, int used, int columns, FILE *f)
{
	out_table_name(f, stackset_frame_name(ss, frame),
		       stack_kind_suffix(stackset_frame_kind(ss, frame)), used, columns);
}

static void put_functions(const struct stackset *ss, const struct stacks_text *o,
			  const struct stacks_tally *t, FILE *f)
{
	size_t n = 0, shown;

	while (n < ss->frames.n && t[n].total[STACK_AFTER]) /* others are of stacks left out */
		n++;
	shown = n < o->rows ? n : o->rows;
	out_table_head(f, o->unit);
	for (size_t i = 0; i < shown; i++) {
		struct out_table_row row = {
			.self_pct = pct(t[i].self[STACK_AFTER], ss->totals[STACK_AFTER]),
			.total_pct = pct(t[i].total[STACK_AFTER], ss->totals[STACK_AFTER]),
			.self = t[i].self[STACK_AFTER],
			.module = stackset_frame_module(ss, t[i].frame),
			.name = stackset_frame_name(ss, t[i].frame),
			.suffix = stack_kind_suffix(stackset_frame_kind(ss, t[i].frame)),
		};

		out_table_row(f, &row, o->unit, o->columns);
	}
	if (n > shown)
		fprintf(f, "  ... and %zu more functions\n", n - shown);
}

/* ---- What stacks begin with ---- */

static int by_sum(const void *a, const void *b)
{
	const struct stacks_group *x = a, *y = b;

	for (int side = 0; side < STACK_SIDES; side++)
		if (x->sum[side] != y->sum[side])
			return x->sum[side] < y->sum[side] ? 1 : -1;
	return strcmp(x->name, y->name);
}

int stacks_groups(const struct stackset *ss, struct stacks_group **ret, size_t *ret_n)
{
	struct idmap names = { 0 };
	struct stacks_group *list = calloc(ss->groups.n + 1, sizeof(*list));
	uint32_t id;

	for (size_t l = 0; list && l < ss->leaves.n; l++) {
		uint64_t name = ss->groups.keys[ss->leaves.keys[l].b].a;

		if (idmap_get(&names, name, 0, &id)) {
			free(list);
			list = NULL;
			break;
		}
		list[id].name = strpool_str(ss->strings, (uint32_t)name);
		for (int side = 0; side < STACK_SIDES; side++)
			list[id].sum[side] += ss->values[l][side];
	}
	*ret_n = names.n;
	idmap_free(&names);
	if (!list)
		return -ENOMEM;
	qsort(list, *ret_n, sizeof(*list), by_sum);
	*ret = list;
	return 0;
}

static void put_groups(const struct stackset *ss, const struct stacks_text *o,
		       const struct stacks_group *list, size_t n, FILE *f)
{
	size_t shown = n < o->rows ? n : o->rows;

	fprintf(f, "  SHARE%%  %12s  %s\n", o->unit, o->by);
	for (size_t i = 0; i < shown; i++) {
		fprintf(f, "%8.2f  %12" PRIu64 "  ",
			pct(list[i].sum[STACK_AFTER], ss->totals[STACK_AFTER]),
			list[i].sum[STACK_AFTER]);
		out_table_name(f, list[i].name, "", 24, o->columns);
	}
	if (n > shown)
		fprintf(f, "  ... and %zu more\n", n - shown);
	putc('\n', f);
}

/* ---- The call tree ---- */

#define TREE_LEVELS 60 /* forks whose lines are drawn */

struct tree {
	const struct stackset *ss;
	struct node *nodes;
	uint64_t min;
	int columns;
	bool unicode;
	FILE *f;
	/* The forks above the current node, outermost first */
	size_t depth;
	bool more[TREE_LEVELS]; /* whether the branch taken there has a sibling below it */
};

/* Sorts the children of a node, largest first, and cuts off those below t->min. */
static void sort_children(struct tree *t, uint32_t node)
{
	uint32_t *list = NULL, i;
	size_t n = 0, cap = 0;

	for (i = t->nodes[node].child; i; i = t->nodes[i].sibling) {
		if (t->nodes[i].total[STACK_AFTER] < t->min)
			continue;
		if (vec_reserve(&list, &cap, n + 1, sizeof(*list)))
			break;
		/* Insertion sort: each has at least t->min, so they are few. */
		size_t at = n++;

		for (; at &&
		       t->nodes[list[at - 1]].total[STACK_AFTER] < t->nodes[i].total[STACK_AFTER];
		     at--)
			list[at] = list[at - 1];
		list[at] = i;
	}
	t->nodes[node].child = n ? list[0] : 0;
	for (size_t k = 0; k < n; k++)
		t->nodes[list[k]].sibling = k + 1 < n ? list[k + 1] : 0;
	free(list);
}

static bool forks(const struct tree *t, uint32_t node)
{
	return t->nodes[t->nodes[node].child].sibling != 0;
}

/* branch: the node is one of several children. Otherwise it continues its parent's line. */
static void put_node(const struct tree *t, uint32_t node, bool branch)
{
	static const char *const lines[2][4] = { { "   ", "|  ", "`- ", "|- " },
						 { "   ", "│  ", "└─ ", "├─ " } };
	size_t shown = t->depth, most = TREE_LEVELS;

	if (t->columns)
		most = (size_t)(t->columns > 50 ? t->columns - 40 : 10) / 3;
	if (shown > most)
		shown = most;
	fprintf(t->f, "%7.2f  ",
		pct(t->nodes[node].total[STACK_AFTER], t->ss->totals[STACK_AFTER]));
	for (size_t i = 0; i < shown; i++)
		fputs(lines[t->unicode][(branch && i + 1 == t->depth ? 2 : 0) + t->more[i]], t->f);
	put_name(t->ss, (uint32_t)t->ss->nodes.keys[node].b, 9 + 3 * (int)shown, t->columns, t->f);
}

/* Only forks are indented, because stacks are deeper than screens are wide. */
static void put_tree(struct tree *t)
{
	uint32_t node = STACK_ROOT, parent;
	bool branch;

	for (;;) {
		sort_children(t, node);
		if (t->nodes[node].child) {
			branch = forks(t, node);
			t->depth += branch;
			node = t->nodes[node].child;
		} else {
			for (; node != STACK_ROOT && !t->nodes[node].sibling; node = parent) {
				parent = (uint32_t)t->ss->nodes.keys[node].a;
				/* Its children are already sorted. */
				t->depth -= forks(t, parent);
			}
			if (node == STACK_ROOT)
				return;
			branch = true;
			node = t->nodes[node].sibling;
		}
		if (branch && t->depth <= TREE_LEVELS)
			t->more[t->depth - 1] = t->nodes[node].sibling != 0;
		put_node(t, node, branch);
	}
}

/* group: NULL: of all stacks */
static int put_call_tree(const struct stackset *ss, const struct stacks_text *o,
			 const struct stacks_group *group, FILE *f)
{
	struct tree t = { .ss = ss, .columns = o->columns, .unicode = o->unicode, .f = f };
	int err;

	t.min = (uint64_t)((double)ss->totals[STACK_AFTER] * o->tree_min / 100) + 1;
	if (group && group->sum[STACK_AFTER] < t.min)
		return 0;
	err = sum_nodes(ss, group ? group->name : NULL, &t.nodes);
	if (err)
		return err;
	if (group) {
		fprintf(f, "%7.2f  ", pct(group->sum[STACK_AFTER], ss->totals[STACK_AFTER]));
		out_table_name(f, group->name, ":", 9, o->columns);
	}
	put_tree(&t);
	free(t.nodes);
	return 0;
}

/* One tree for each name that stacks begin with, if these were asked for */
static int put_call_trees(const struct stackset *ss, const struct stacks_text *o,
			  const struct stacks_group *list, size_t n, FILE *f)
{
	int err = 0;

	fprintf(f, "\n TOTAL%%  CALL TREE, branches of %g %% and more\n", o->tree_min);
	if (!o->by)
		return put_call_tree(ss, o, NULL, f);
	for (size_t i = 0; i < n && !err; i++)
		err = put_call_tree(ss, o, &list[i], f);
	return err;
}

static void put_summary(const struct stackset *ss, const struct stacks_text *o, FILE *f)
{
	const struct html_meta *m = o->meta;

	fprintf(f, "\n%" PRIu64 " %s", ss->totals[STACK_AFTER], o->unit);
	if (m && m->event)
		fprintf(f, " of %s", m->event);
	if (m && m->hz > 0)
		fprintf(f, " at %g Hz", m->hz);
	if (m && m->duration_s > 0)
		fprintf(f, " in %.1f s", m->duration_s);
	if (m && m->host)
		fprintf(f, " on %s", m->host);
	if (m && m->lost)
		fprintf(f, ", %" PRIu64 " lost", m->lost);
	if (m && m->user_stacks)
		fprintf(f, ", %.1f %% of %" PRIu64 " user stacks complete",
			pct(m->complete, m->user_stacks), m->user_stacks);
	putc('\n', f);
}

int stacks_write_text(const struct stackset *ss, const struct stacks_text *o, FILE *f)
{
	struct stacks_group *groups = NULL;
	struct stacks_tally *tally;
	size_t ngroups = 0;
	int err = stacks_tally(ss, &tally);

	if (!err && o->by && (err = stacks_groups(ss, &groups, &ngroups)))
		free(tally);
	if (err)
		return err;
	if (ss->frames.n)
		qsort(tally, ss->frames.n, sizeof(*tally), by_self);
	if (o->by)
		put_groups(ss, o, groups, ngroups, f);
	put_functions(ss, o, tally, f);
	err = put_call_trees(ss, o, groups, ngroups, f);
	put_summary(ss, o, f);
	free(groups);
	free(tally);
	return err ? err : out_finish(f);
}
