/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/out_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "out/out.h"
#include "out/out_table.h"

/* ---- Folded ---- */

struct line {
	char *text;
	uint64_t values[STACK_SIDES];
};

/* ';' separates frames, so in a name it is ':'. */
static int append(char **buf, size_t *cap, size_t *len, const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	if (vec_reserve(buf, cap, *len + n + m + 2, 1))
		return -ENOMEM;
	if (*len)
		(*buf)[(*len)++] = ';';
	for (size_t i = 0; i < n; i++)
		(*buf)[*len + i] = s[i] == ';' ? ':' : s[i];
	memcpy(*buf + *len + n, suffix, m + 1);
	*len += n + m;
	return 0;
}

static int make_line(const struct stackset *ss, uint32_t leaf, struct line *ret)
{
	size_t n = 0, len = 0, cap = 0, path_cap = 0;
	uint32_t *path = NULL;
	int err;

	memcpy(ret->values, ss->values[leaf], sizeof(ret->values));
	for (uint32_t node = (uint32_t)ss->leaves.keys[leaf].a; node != STACK_ROOT; node = (uint32_t)ss->nodes.keys[node].a) {
		if (vec_reserve(&path, &path_cap, n + 1, sizeof(*path))) {
			free(path);
			return -ENOMEM;
		}
		path[n++] = (uint32_t)ss->nodes.keys[node].b;
	}
	err = append(&ret->text, &cap, &len, strpool_str(ss->strings, (uint32_t)ss->groups.keys[ss->leaves.keys[leaf].b].a), "");
	while (n-- > 0 && !err)
		err = append(&ret->text, &cap, &len, stackset_frame_name(ss, path[n]),
			     stack_kind_suffix(stackset_frame_kind(ss, path[n])));
	free(path);
	return err;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(((const struct line *)a)->text, ((const struct line *)b)->text);
}

static void write_lines(const struct line *lines, size_t n, bool two_sides, FILE *f)
{
	uint64_t sum[STACK_SIDES] = { 0 };

	for (size_t i = 0; i < n && !ferror(f); i++) {
		for (int side = 0; side < STACK_SIDES; side++)
			sum[side] += lines[i].values[side];
		if (i + 1 < n && !strcmp(lines[i].text, lines[i + 1].text))
			continue;	/* another process, the same text */
		if (two_sides)
			fprintf(f, "%s %" PRIu64 " %" PRIu64 "\n", lines[i].text, sum[STACK_BEFORE], sum[STACK_AFTER]);
		else if (sum[STACK_AFTER])
			fprintf(f, "%s %" PRIu64 "\n", lines[i].text, sum[STACK_AFTER]);
		memset(sum, 0, sizeof(sum));
	}
}

int stacks_write_folded(const struct stackset *ss, bool two_sides, FILE *f)
{
	size_t n = ss->leaves.n;
	struct line *lines = calloc(n + 1, sizeof(*lines));
	int err = lines ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++)
		err = make_line(ss, (uint32_t)i, &lines[i]);
	if (!err) {
		qsort(lines, n, sizeof(*lines), compare_text);
		write_lines(lines, n, two_sides, f);
	}
	for (size_t i = 0; lines && i < n; i++)
		free(lines[i].text);
	free(lines);
	return err ? err : out_finish(f);
}

/* ---- Tables ---- */

struct node {			/* of the trie, with what is below it */
	uint64_t total[STACK_SIDES];
	uint32_t child, sibling;	/* 0: none */
};

static int sum_nodes(const struct stackset *ss, struct node **ret)
{
	struct node *nodes = calloc(ss->nodes.n, sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	for (size_t l = 0; l < ss->leaves.n; l++)
		for (int side = 0; side < STACK_SIDES; side++)
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

static bool is_recursion(const struct stackset *ss, uint32_t node)
{
	uint64_t frame = ss->nodes.keys[node].b;

	while ((node = (uint32_t)ss->nodes.keys[node].a) != STACK_ROOT)
		if (ss->nodes.keys[node].b == frame)
			return true;
	return false;
}

static void tally_nodes(const struct stackset *ss, const struct node *nodes, struct stacks_tally *ret)
{
	for (size_t i = 0; i < ss->frames.n; i++)
		ret[i].frame = (uint32_t)i;
	for (size_t l = 0; l < ss->leaves.n; l++) {
		uint32_t node = (uint32_t)ss->leaves.keys[l].a;

		for (int side = 0; node != STACK_ROOT && side < STACK_SIDES; side++)
			ret[ss->nodes.keys[node].b].self[side] += ss->values[l][side];
	}
	for (size_t i = 1; i < ss->nodes.n; i++) {
		if (is_recursion(ss, (uint32_t)i))
			continue;
		for (int side = 0; side < STACK_SIDES; side++)
			ret[ss->nodes.keys[i].b].total[side] += nodes[i].total[side];
	}
}

int stacks_tally(const struct stackset *ss, struct stacks_tally **ret)
{
	struct stacks_tally *tally = calloc(ss->frames.n + 1, sizeof(*tally));
	struct node *nodes = NULL;
	int err = tally ? sum_nodes(ss, &nodes) : -ENOMEM;

	if (!err)
		tally_nodes(ss, nodes, tally);
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

/* qsort has no argument for it. */
static const struct stackset *comparing;

static double change(const uint64_t v[STACK_SIDES])
{
	return pct(v[STACK_AFTER], comparing->totals[STACK_AFTER]) - pct(v[STACK_BEFORE], comparing->totals[STACK_BEFORE]);
}

static int by_change(const void *a, const void *b)
{
	const struct stacks_tally *x = a, *y = b;
	double dx = fabs(change(x->self)), dy = fabs(change(y->self));

	if (dx == dy) {
		dx = fabs(change(x->total));
		dy = fabs(change(y->total));
	}
	return dx < dy ? 1 : dx > dy ? -1 : x->frame < y->frame ? -1 : x->frame > y->frame;
}

static void put_name(const struct stackset *ss, uint32_t frame, int used, int columns, FILE *f)
{
	out_table_name(f, stackset_frame_name(ss, frame), stack_kind_suffix(stackset_frame_kind(ss, frame)), used, columns);
}

static void put_functions(const struct stackset *ss, const struct stacks_text *o, const struct stacks_tally *t, FILE *f)
{
	size_t n = ss->frames.n, shown = n < o->rows ? n : o->rows;

	out_table_head(f, o->unit);
	for (size_t i = 0; i < shown; i++) {
		struct out_table_row row = {
			.self_pct = pct(t[i].self[STACK_AFTER], ss->totals[STACK_AFTER]),
			.total_pct = pct(t[i].total[STACK_AFTER], ss->totals[STACK_AFTER]), .self = t[i].self[STACK_AFTER],
			.module = stackset_frame_module(ss, t[i].frame), .name = stackset_frame_name(ss, t[i].frame),
			.suffix = stack_kind_suffix(stackset_frame_kind(ss, t[i].frame)),
		};

		out_table_row(f, &row, o->columns);
	}
	if (n > shown)
		fprintf(f, "  ... and %zu more functions\n", n - shown);
}

static void put_changes(const struct stackset *ss, const struct stacks_text *o, const struct stacks_tally *t, FILE *f)
{
	size_t n = ss->frames.n, shown = n < o->rows ? n : o->rows;

	fprintf(f, "          SELF %%                   TOTAL %%\n BEFORE   AFTER   CHANGE   BEFORE   AFTER   CHANGE  FUNCTION\n");
	for (size_t i = 0; i < shown; i++) {
		fprintf(f, "%7.2f %7.2f %+8.2f  %7.2f %7.2f %+8.2f  ", pct(t[i].self[STACK_BEFORE], ss->totals[STACK_BEFORE]),
			pct(t[i].self[STACK_AFTER], ss->totals[STACK_AFTER]), change(t[i].self),
			pct(t[i].total[STACK_BEFORE], ss->totals[STACK_BEFORE]), pct(t[i].total[STACK_AFTER], ss->totals[STACK_AFTER]),
			change(t[i].total));
		put_name(ss, t[i].frame, 53, o->columns, f);
	}
	if (n > shown)
		fprintf(f, "  ... and %zu more functions\n", n - shown);
	fprintf(f, "\n%" PRIu64 " %s before, %" PRIu64 " after; percentages are of each\n", ss->totals[STACK_BEFORE], o->unit,
		ss->totals[STACK_AFTER]);
}

/* ---- The call tree ---- */

struct tree {
	const struct stackset *ss;
	struct node *nodes;
	uint64_t min;
	int columns;
	FILE *f;
};

/* Sorts a node's children, widest first; those too narrow to be shown are cut off. */
static void sort_children(struct tree *t, uint32_t node)
{
	uint32_t *list = NULL, i;
	size_t n = 0, cap = 0;

	for (i = t->nodes[node].child; i; i = t->nodes[i].sibling) {
		if (t->nodes[i].total[STACK_AFTER] < t->min)
			continue;
		if (vec_reserve(&list, &cap, n + 1, sizeof(*list)))
			break;
		/* Insertion: at least 1/min of the sum each, so they are few. */
		size_t at = n++;

		for (; at && t->nodes[list[at - 1]].total[STACK_AFTER] < t->nodes[i].total[STACK_AFTER]; at--)
			list[at] = list[at - 1];
		list[at] = i;
	}
	t->nodes[node].child = n ? list[0] : 0;
	for (size_t k = 0; k < n; k++)
		t->nodes[list[k]].sibling = k + 1 < n ? list[k + 1] : 0;
	free(list);
}

/* Only forks are indented: stacks are deeper than screens are wide. */
static void put_tree(struct tree *t)
{
	int deepest = t->columns ? (t->columns > 50 ? t->columns - 40 : 10) / 2 : 60;
	uint32_t node = STACK_ROOT;
	int indent = 0, at;

	for (;;) {
		sort_children(t, node);
		if (t->nodes[node].child) {
			indent += t->nodes[t->nodes[node].child].sibling != 0;
			node = t->nodes[node].child;
		} else {
			while (node != STACK_ROOT && !t->nodes[node].sibling) {
				node = (uint32_t)t->ss->nodes.keys[node].a;
				/* Its children are sorted by now. */
				indent -= t->nodes[t->nodes[node].child].sibling != 0;
			}
			if (node == STACK_ROOT)
				return;
			node = t->nodes[node].sibling;
		}
		at = 2 * (indent < deepest ? indent : deepest);
		fprintf(t->f, "%7.2f  %*s", pct(t->nodes[node].total[STACK_AFTER], t->ss->totals[STACK_AFTER]), at, "");
		put_name(t->ss, (uint32_t)t->ss->nodes.keys[node].b, 9 + at, t->columns, t->f);
	}
}

static int put_call_tree(const struct stackset *ss, const struct stacks_text *o, FILE *f)
{
	struct tree t = { .ss = ss, .columns = o->columns, .f = f };
	int err = sum_nodes(ss, &t.nodes);

	if (err)
		return err;
	t.min = (uint64_t)((double)ss->totals[STACK_AFTER] * o->tree_min / 100) + 1;
	fprintf(f, "\n TOTAL%%  CALL TREE, branches of %g %% and more\n", o->tree_min);
	put_tree(&t);
	free(t.nodes);
	return 0;
}

int stacks_write_text(const struct stackset *ss, const struct stacks_text *o, FILE *f)
{
	struct stacks_tally *tally;
	int err = stacks_tally(ss, &tally);

	if (err)
		return err;
	comparing = ss;
	if (ss->frames.n)
		qsort(tally, ss->frames.n, sizeof(*tally), o->two_sides ? by_change : by_self);
	if (o->two_sides) {
		put_changes(ss, o, tally, f);
	} else {
		put_functions(ss, o, tally, f);
		err = put_call_tree(ss, o, f);
		fprintf(f, "\n%" PRIu64 " %s\n", ss->totals[STACK_AFTER], o->unit);
	}
	free(tally);
	return err ? err : out_finish(f);
}
