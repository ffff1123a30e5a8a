/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/slots.h"
#include "base/strpool.h"
#include "base/vec.h"

#define NODES_MAX (1u << 18) /* 16 MB; windows of real programs have some ten thousand nodes */

struct calltree_scratch {
	struct slots slots; /* nodes by (parent, label, id) */
	struct strpool *comms;
};

void calltree_free(struct calltree *t)
{
	free(t->nodes);
	if (t->scratch) {
		slots_free(&t->scratch->slots);
		strpool_free(t->scratch->comms);
		free(t->scratch);
	}
	*t = (struct calltree){ 0 };
}

const char *calltree_comm(const struct calltree *t, uint32_t id)
{
	return strpool_str(t->scratch->comms, id);
}

static uint64_t hash_child(uint32_t parent, uint8_t label, uint32_t id)
{
	return hash_mix((uint64_t)parent << 8 | label, id);
}

static uint64_t hash_of(const void *ctx, size_t i)
{
	const struct calltree_node *node = &((const struct calltree *)ctx)->nodes[i];

	return hash_child(node->parent, node->label, node->id);
}

/*
 * Moves *at to its child of this name and creates the child if necessary. 0, -ENOMEM, or 1: the
 * tree is full, so the stack ends here.
 */
static int descend(struct calltree *t, uint32_t *at, enum calltree_label label, uint32_t id,
		   uint64_t name)
{
	struct calltree_scratch *sc = t->scratch;
	struct calltree_node *node, *parent;
	size_t slot;

	if (slots_reserve(&sc->slots, t->n, hash_of, t))
		return -ENOMEM;
	slots_each(&sc->slots, hash_child(*at, label, id), slot) {
		node = &t->nodes[sc->slots.ids[slot] - 1];
		if (node->parent == *at && node->label == label && node->id == id) {
			*at = sc->slots.ids[slot] - 1;
			return 0;
		}
	}
	if (t->n >= NODES_MAX) {
		t->cut = true;
		return 1;
	}
	if (vec_reserve(&t->nodes, &t->cap, t->n + 1, sizeof(*t->nodes)))
		return -ENOMEM;
	parent = &t->nodes[*at];
	node = &t->nodes[t->n];
	*node = (struct calltree_node){
		.path = hash_mix(parent->path, hash_mix(label, name)),
		.id = id,
		.parent = *at,
		.first_child = CALLTREE_NONE,
		.next = parent->first_child,
		.depth = (uint16_t)(parent->depth + 1),
		.label = (uint8_t)label,
	};
	parent->first_child = (uint32_t)t->n;
	parent->nchildren++;
	sc->slots.ids[slot] = (uint32_t)++t->n;
	*at = (uint32_t)t->n - 1;
	return 0;
}

struct walk {
	struct calltree *t;
	uint32_t at;
	uint64_t count;
};

static int step(struct walk *w, enum calltree_label label, uint32_t id, uint64_t name)
{
	int err = descend(w->t, &w->at, label, id, name);

	if (!err)
		w->t->nodes[w->at].total += w->count;
	return err;
}

static int step_comm(struct walk *w, enum calltree_label label, const char *comm)
{
	uint32_t id;

	if (strpool_intern(w->t->scratch->comms, comm, strlen(comm), &id))
		return -ENOMEM;
	return step(w, label, id, hash_mix(label, hash_bytes(comm, strlen(comm))));
}

/* The position (leaf first) of the outermost or innermost frame of a function; n: none. */
static size_t find(const struct shown *f, const uint32_t *ids, uint32_t symbol, bool outermost)
{
	size_t n = shown_count(f), found = n;

	for (size_t i = 0; i < n; i++) {
		if (ids[shown_at(f, i)] != symbol)
			continue;
		found = i;
		if (!outermost)
			break;
	}
	return found;
}

/*
 * A stack starts with the process's name, then the thread's if it has another one, then the stop
 * reason if it is incomplete.
 */
static int add_top(struct walk *w, const struct profile_stack *s, const struct selection *sel)
{
	bool in_thread = selection_level(sel, ZOOM_PROCESS) || selection_level(sel, ZOOM_COMM);
	bool in_name = in_thread || selection_level(sel, ZOOM_NAME);
	int err = 0;

	if (!in_name && !sel->by_thread)
		err = step_comm(w, LABEL_PROCESS, s->process);
	if (!err && !in_thread && (sel->by_thread || strcmp(s->comm, s->process) != 0))
		err = step_comm(w, LABEL_COMM, s->comm);

	if (!err && (s->flags & SF_SAMPLE_USER) && !profile_at_root(s->stop) && !sel->kernel_only)
		err = step(w, LABEL_STOP, s->stop, s->stop);
	return err;
}

static int add_stack(struct walk *w, const struct profile_stack *s, const uint32_t *ids,
		     const struct selection *sel, enum calltree_order order)
{
	const struct zoom *from = selection_level(sel, ZOOM_FUNCTION);
	struct shown f = shown_frames(sel, s);
	size_t n = shown_count(&f), start;
	int err = 0;

	if (order == CALLTREE_BOTTOM_UP) {
		start = from ? find(&f, ids, from->id, false) : 0;
		for (size_t i = start; i < n && !err; i++)
			err = step(w, LABEL_SYMBOL, ids[shown_at(&f, i)], ids[shown_at(&f, i)]);
	} else {
		start = from ? find(&f, ids, from->id, true) + 1 : n;
		if (!from)
			err = add_top(w, s, sel);
		for (size_t i = start > n ? 0 : start; i-- > 0 && !err;)
			err = step(w, LABEL_SYMBOL, ids[shown_at(&f, i)], ids[shown_at(&f, i)]);
	}
	if (!err && !n)
		err = step(w, LABEL_SYMBOL, SYM_NO_STACK, SYM_NO_STACK);
	/* Top-down, the leaf is the last node. */
	if (err >= 0 && order == CALLTREE_TOP_DOWN)
		w->t->nodes[w->at].self += s->count;
	return err < 0 ? err : 0;
}

static int start(struct calltree *t)
{
	struct calltree_scratch *sc = t->scratch;

	if (!sc) {
		sc = t->scratch = calloc(1, sizeof(*sc));
		if (!sc)
			return -ENOMEM;
	}
	/* A window has few commands, but a long run keeps adding new ones. */
	if (sc->comms && strpool_count(sc->comms) > 4096) {
		strpool_free(sc->comms);
		sc->comms = NULL;
	}
	if (!sc->comms)
		sc->comms = strpool_new();
	if (!sc->comms || vec_reserve(&t->nodes, &t->cap, 1, sizeof(*t->nodes)))
		return -ENOMEM;
	slots_reset(&sc->slots);
	t->cut = false;
	t->n = 1;
	t->nodes[CALLTREE_ROOT] = (struct calltree_node){
		.parent = CALLTREE_NONE,
		.first_child = CALLTREE_NONE,
		.next = CALLTREE_NONE,
	};
	return 0;
}

int calltree_build(struct calltree *t, struct profile *p, struct symbolizer *sz,
		   const struct selection *sel, enum calltree_order order)
{
	int err = start(t);

	for (size_t i = 0; i < profile_count(p) && !err; i++) {
		const uint32_t *ids = profile_symbols(p, i, sz);
		struct walk w = { .t = t, .at = CALLTREE_ROOT };
		struct profile_stack s;

		profile_stack(p, i, &s);
		if (!ids)
			err = -ENOMEM;
		else if (selection_takes(sel, &s, ids, sz)) {
			w.count = s.count;
			t->nodes[CALLTREE_ROOT].total += s.count;
			err = add_stack(&w, &s, ids, sel, order);
		}
	}
	if (err)
		calltree_free(t);
	return err;
}

static int by_total(const void *a, const void *b, void *ctx)
{
	const struct calltree_node *x = (const struct calltree_node *)ctx + *(const uint32_t *)a;
	const struct calltree_node *y = (const struct calltree_node *)ctx + *(const uint32_t *)b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->path < y->path ? -1 : x->path > y->path;
}

size_t calltree_children(const struct calltree *t, uint32_t node, uint32_t *ret, size_t cap)
{
	size_t n = 0;

	if (node >= t->n)
		return 0;
	for (uint32_t i = t->nodes[node].first_child; i != CALLTREE_NONE && n < cap;
	     i = t->nodes[i].next)
		ret[n++] = i;
	if (n > 1)
		qsort_r(ret, n, sizeof(*ret), by_total, t->nodes);
	return n;
}
