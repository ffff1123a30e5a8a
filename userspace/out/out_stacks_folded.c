/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stackset as folded lines. Frames with the same text are equal here, whatever their module or
 * kind, and so are processes with the same comm. So the set is copied into a flat one of texts,
 * whose nodes are numbered in the order of their texts. Lines are then sorted by comm and node
 * number, and built one at a time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "out/out.h"
#include "out/out_stacks.h"

struct flat {
	struct stackset set; /* texts only: no modules, kinds or pids */
	uint32_t *node;	     /* node in `set`, indexed by node of the original */
	/* While sorting, the next node of the same frame; then the next sibling; 0: none */
	uint32_t *next;
	uint32_t *child; /* first child, by node */
	uint32_t *place; /* position in preorder, by node */
	/* Length of the path in bytes, by node, with a ';' before each frame */
	uint32_t *length;
};

struct line {
	const char *comm;
	uint32_t place, leaf;
};

/* ';' separates frames, so it becomes ':' in a name. */
static size_t shown(char *buf, size_t cap, const char *name, const char *suffix)
{
	size_t n = (size_t)snprintf(buf, cap, "%s%s", name, suffix);

	for (char *at = buf; (at = strchr(at, ';'));)
		*at = ':';
	return n < cap ? n : cap - 1;
}

static int flatten_frames(const struct stackset *ss, struct flat *fl, uint32_t *frame)
{
	char text[STACK_TEXT_MAX];
	int err = 0;

	for (size_t i = 0; i < ss->frames.n && !err; i++) {
		uint32_t id = (uint32_t)i;
		size_t len = shown(text, sizeof(text), stackset_frame_name(ss, id),
				   stack_kind_suffix(stackset_frame_kind(ss, id)));

		err = stackset_frame(&fl->set, text, len, "", STACK_USER, &frame[i]);
	}
	return err;
}

/*
 * All frames read differently: they have the ids that they had, and so have the nodes, which are
 * not searched again.
 */
static int copy_nodes(const struct stackset *ss, struct flat *fl)
{
	struct idmap *to = &fl->set.nodes;

	if (vec_reserve(&to->keys, &to->cap, ss->nodes.n, sizeof(*to->keys)))
		return -ENOMEM;
	memcpy(to->keys, ss->nodes.keys, ss->nodes.n * sizeof(*to->keys));
	to->n = ss->nodes.n;
	for (uint32_t i = 0; i < ss->nodes.n; i++)
		fl->node[i] = i;
	return 0;
}

static int merge_nodes(const struct stackset *ss, struct flat *fl, const uint32_t *frame)
{
	int err = 0;

	fl->node[STACK_ROOT] = STACK_ROOT;
	for (size_t i = 1; i < ss->nodes.n && !err; i++) {
		const struct idmap_key *k = &ss->nodes.keys[i];

		err = idmap_get(&fl->set.nodes, fl->node[k->a], frame[k->b], &fl->node[i]);
	}
	return err;
}

static int flatten_nodes(const struct stackset *ss, struct flat *fl)
{
	uint32_t *frame = malloc((ss->frames.n + 1) * sizeof(*frame));
	int err = frame ? flatten_frames(ss, fl, frame) : -ENOMEM;

	fl->node = malloc(ss->nodes.n * sizeof(*fl->node));
	if (!err && !fl->node)
		err = -ENOMEM;
	if (!err)
		err = fl->set.frames.n == ss->frames.n ? copy_nodes(ss, fl)
						       : merge_nodes(ss, fl, frame);
	free(frame);
	return err;
}

static int flatten_leaves(const struct stackset *ss, struct flat *fl)
{
	struct stackset *to = &fl->set;
	uint32_t comm, group, leaf;
	char text[STACK_TEXT_MAX];

	for (size_t i = 0; i < ss->leaves.n; i++) {
		const struct idmap_key *k = &ss->leaves.keys[i];
		size_t before = to->leaves.n;
		size_t len = shown(text, sizeof(text),
				   strpool_str(ss->strings, (uint32_t)ss->groups.keys[k->b].a), "");

		if (strpool_intern(to->strings, text, len, &comm) ||
		    idmap_get(&to->groups, comm, 0, &group) ||
		    idmap_get(&to->leaves, fl->node[k->a], group, &leaf) ||
		    vec_reserve(&to->values, &to->values_cap, to->leaves.n, sizeof(*to->values)))
			return -ENOMEM;
		if (leaf == before)
			memset(to->values[leaf], 0, sizeof(to->values[leaf]));
		for (int side = 0; side < STACK_SIDES; side++)
			to->values[leaf][side] += ss->values[i][side];
	}
	return 0;
}

/* ---- Order ---- */

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct stackset *ss = ctx;

	return strcmp(stackset_frame_name(ss, *(const uint32_t *)a),
		      stackset_frame_name(ss, *(const uint32_t *)b));
}

/* Sorts children by text: nodes are put before their siblings, in descending order of text. */
static int link_children(struct flat *fl)
{
	struct stackset *ss = &fl->set;
	uint32_t *sorted = malloc((ss->frames.n + 1) * sizeof(*sorted)),
		 *of_frame = calloc(ss->frames.n + 1, sizeof(*of_frame));
	int err = sorted && of_frame ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < ss->frames.n && !err; i++)
		sorted[i] = i;
	if (!err)
		qsort_r(sorted, ss->frames.n, sizeof(*sorted), by_name, ss);
	for (uint32_t i = 1; i < ss->nodes.n && !err; i++) {
		fl->next[i] = of_frame[ss->nodes.keys[i].b];
		of_frame[ss->nodes.keys[i].b] = i;
	}
	for (size_t k = ss->frames.n; k-- > 0 && !err;) {
		for (uint32_t node = of_frame[sorted[k]], next; node; node = next) {
			uint32_t parent = (uint32_t)ss->nodes.keys[node].a;

			next = fl->next[node];
			fl->next[node] = fl->child[parent];
			fl->child[parent] = node;
		}
	}
	free(sorted);
	free(of_frame);
	return err;
}

static void number_nodes(struct flat *fl)
{
	const struct idmap_key *keys = fl->set.nodes.keys;
	uint32_t node = STACK_ROOT, place = 0;

	for (;;) {
		if (fl->child[node]) {
			node = fl->child[node];
		} else {
			while (node != STACK_ROOT && !fl->next[node])
				node = (uint32_t)keys[node].a;
			if (node == STACK_ROOT)
				return;
			node = fl->next[node];
		}
		fl->place[node] = ++place;
		fl->length[node] =
			fl->length[keys[node].a] + 1 +
			(uint32_t)strlen(stackset_frame_name(&fl->set, (uint32_t)keys[node].b));
	}
}

static int order(struct flat *fl)
{
	size_t n = fl->set.nodes.n;
	int err;

	fl->next = calloc(n, sizeof(*fl->next));
	fl->child = calloc(n, sizeof(*fl->child));
	fl->place = calloc(n, sizeof(*fl->place));
	fl->length = calloc(n, sizeof(*fl->length));
	err = fl->next && fl->child && fl->place && fl->length ? link_children(fl) : -ENOMEM;
	if (!err)
		number_nodes(fl);
	return err;
}

static int flatten(const struct stackset *ss, struct flat *fl)
{
	int err = stackset_init(&fl->set);

	if (!err)
		err = flatten_nodes(ss, fl);
	if (!err)
		err = flatten_leaves(ss, fl);
	return err ? err : order(fl);
}

static void flat_free(struct flat *fl)
{
	stackset_free(&fl->set);
	free(fl->node);
	free(fl->next);
	free(fl->child);
	free(fl->place);
	free(fl->length);
}

/* ---- Lines ---- */

static int by_text(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int c = x->comm == y->comm ? 0 : strcmp(x->comm, y->comm);

	return c ? c : x->place < y->place ? -1 : x->place > y->place;
}

/* Built from the end to the start, because nodes link to their parents. */
static void put_line(const struct flat *fl, const struct line *line, bool two_sides, char *buf,
		     FILE *f)
{
	const struct stackset *ss = &fl->set;
	uint32_t node = (uint32_t)ss->leaves.keys[line->leaf].a;
	const uint64_t *values = ss->values[line->leaf];
	char *at = buf + fl->length[node];
	size_t len;

	for (; node != STACK_ROOT; node = (uint32_t)ss->nodes.keys[node].a) {
		const char *name = stackset_frame_name(ss, (uint32_t)ss->nodes.keys[node].b);

		len = strlen(name);
		at -= len;
		memcpy(at, name, len);
		*--at = ';';
	}
	node = (uint32_t)ss->leaves.keys[line->leaf].a;
	if (!two_sides && !values[STACK_AFTER])
		return;
	fputs(line->comm, f);
	fwrite(buf, 1, fl->length[node], f);
	if (two_sides)
		fprintf(f, " %" PRIu64, values[STACK_BEFORE]);
	fprintf(f, " %" PRIu64 "\n", values[STACK_AFTER]);
}

static int write_lines(const struct flat *fl, struct line *lines, bool two_sides, uint64_t max,
		       FILE *f)
{
	const struct stackset *ss = &fl->set;
	uint64_t sum = 0, longest = 0;
	char *buf;

	for (uint32_t i = 0; i < ss->leaves.n; i++) {
		const struct idmap_key *k = &ss->leaves.keys[i];
		uint32_t length = fl->length[k->a];

		lines[i] = (struct line){
			.comm = strpool_str(ss->strings, (uint32_t)ss->groups.keys[k->b].a),
			.place = fl->place[k->a],
			.leaf = i,
		};
		longest = length > longest ? length : longest;
		sum += length + strlen(lines[i].comm);
	}
	if (sum > max)
		return -EFBIG;
	buf = malloc(longest + 1);
	if (!buf)
		return -ENOMEM;
	qsort(lines, ss->leaves.n, sizeof(*lines), by_text);
	for (size_t i = 0; i < ss->leaves.n && !ferror(f); i++)
		put_line(fl, &lines[i], two_sides, buf, f);
	free(buf);
	return 0;
}

int stacks_write_folded(const struct stackset *ss, bool two_sides, uint64_t max, FILE *f)
{
	struct flat fl = { 0 };
	struct line *lines = calloc(ss->leaves.n + 1, sizeof(*lines));
	int err = lines ? flatten(ss, &fl) : -ENOMEM;

	if (!err)
		err = write_lines(&fl, lines, two_sides, max, f);
	free(lines);
	flat_free(&fl);
	return err ? err : out_finish(f);
}
