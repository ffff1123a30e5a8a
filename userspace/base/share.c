/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/share.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct owner {
	uint32_t id;
	uint64_t held;
};

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t share_level(uint64_t *demand, size_t n, uint64_t total)
{
	if (n)
		qsort(demand, n, sizeof(*demand), ascending);
	for (size_t i = 0; i < n; i++) {
		uint64_t level = total / (n - i);

		if (demand[i] > level)
			return level;
		total -= demand[i];
	}
	return UINT64_MAX;
}

static int by_owner(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_last(const void *a, const void *b)
{
	const struct share_item *x = a, *y = b;

	if (x->last != y->last)
		return x->last < y->last ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size;	/* few large ones rather than many small ones */
}

static int by_uses(const void *a, const void *b)
{
	const struct share_item *x = a, *y = b;

	if (x->uses != y->uses)
		return x->uses < y->uses ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size;
}

/* What each owner holds, by owner; *ret_n of them. NULL: out of memory. */
static struct owner *owners_of(const struct share_item *items, size_t n, size_t *ret_n)
{
	struct owner *o = malloc((n ? n : 1) * sizeof(*o));
	size_t k = 0;

	*ret_n = 0;
	if (!o)
		return NULL;
	for (size_t i = 0; i < n; i++)
		o[i] = (struct owner){ items[i].owner, items[i].size };
	qsort(o, n, sizeof(*o), by_owner);
	for (size_t i = 0; i < n; i++) {
		if (k && o[k - 1].id == o[i].id)
			o[k - 1].held += o[i].held;
		else
			o[k++] = o[i];
	}
	*ret_n = k;
	return o;
}

static struct owner *owner_named(struct owner *o, size_t n, uint32_t id)
{
	struct owner key = { .id = id };

	return bsearch(&key, o, n, sizeof(*o), by_owner);
}

/* The level once `want` is free, which the asker (NULL: he holds nothing yet) then has in addition. */
static int level_of(const struct owner *o, size_t n, const struct owner *asker, const struct share_ask *ask, uint64_t *ret)
{
	uint64_t *demand = malloc((n + 1) * sizeof(*demand)), total = 0;

	if (!demand)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		total += o[i].held;
		demand[i] = o[i].held + (&o[i] == asker ? ask->want : 0);
	}
	if (ask->owner == SHARE_NOBODY)
		total = total > ask->want ? total - ask->want : 0;
	else if (!asker)
		demand[n++] = ask->want;
	*ret = share_level(demand, n, total);
	free(demand);
	return 0;
}

/* What is being chosen: items[0 .. chosen) go. */
struct choice {
	struct share_item *items;
	size_t n, chosen;
	struct owner *owners;
	size_t nowners;
	uint64_t level, freed;
};

static void let_go(struct choice *c, uint64_t until, uint64_t hot_since, bool hot, bool fresh)
{
	qsort(c->items + c->chosen, c->n - c->chosen, sizeof(*c->items), hot ? by_uses : by_last);
	for (size_t i = c->chosen; i < c->n && c->freed < until; i++) {
		struct share_item it = c->items[i];
		struct owner *of = owner_named(c->owners, c->nowners, it.owner);

		if (it.fixed || of->held <= c->level || hot != (it.last >= hot_since) || (hot && it.fresh && !fresh))
			continue;
		of->held -= it.size;
		c->freed += it.size;
		c->items[i] = c->items[c->chosen];
		c->items[c->chosen++] = it;
	}
}

long share_choose(struct share_item *items, size_t n, const struct share_ask *ask)
{
	struct choice c = { .items = items, .n = n };
	struct owner *asker;
	size_t unused;
	bool urgent;
	int err;

	c.owners = owners_of(items, n, &c.nowners);
	if (!c.owners)
		return -ENOMEM;
	asker = owner_named(c.owners, c.nowners, ask->owner);
	err = level_of(c.owners, c.nowners, asker, ask, &c.level);
	if (err) {
		free(c.owners);
		return err;
	}
	if (asker)
		asker->held += ask->want;
	urgent = ask->owner == SHARE_NOBODY || (asker ? asker->held : ask->want) <= c.level;
	let_go(&c, ask->want, ask->hot_since, false, false);
	unused = c.chosen;
	if (urgent)
		let_go(&c, ask->want, ask->hot_since, true, true);
	else if (ask->turn)
		let_go(&c, ask->turn, ask->hot_since, true, false);
	if (!urgent && c.freed < ask->turn)
		c.chosen = unused;	/* what is in use goes for something, or stays */
	free(c.owners);
	return (long)c.chosen;
}

bool share_before(const struct share_waiter *a, const struct share_waiter *b)
{
	if (a->turn != b->turn)
		return a->turn < b->turn;
	return a->since != b->since ? a->since < b->since : a->id < b->id;
}
