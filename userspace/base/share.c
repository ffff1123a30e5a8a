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
	/* Prefer few large items to many small ones */
	return x->size > y->size ? -1 : x->size < y->size;
}

static int by_uses(const void *a, const void *b)
{
	const struct share_item *x = a, *y = b;

	if (x->uses != y->uses)
		return x->uses < y->uses ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size;
}

/* The sum that each owner holds, sorted by owner. *ret_n: number of owners. NULL: out of memory. */
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

/*
 * The level after req->want has been freed and given to the user. user NULL: the user holds nothing
 * yet.
 */
static int level_of(const struct owner *o, size_t n, const struct owner *user,
		    const struct share_request *req, uint64_t *ret)
{
	uint64_t *demand = malloc((n + 1) * sizeof(*demand)), total = 0;

	if (!demand)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		total += o[i].held;
		demand[i] = o[i].held + (&o[i] == user ? req->want : 0);
	}
	if (req->owner == SHARE_NO_USER)
		total = total > req->want ? total - req->want : 0;
	else if (!user)
		demand[n++] = req->want;
	*ret = share_level(demand, n, total);
	free(demand);
	return 0;
}

struct choice {
	struct share_item *items; /* [0, chosen) are evicted */
	size_t n, chosen;
	struct owner *owners;
	size_t nowners;
	uint64_t level, freed;
};

/* Adds items to the choice until `want` is freed: items in use (hot), or the others. */
static void choose(struct choice *c, const struct share_request *req, bool hot)
{
	qsort(c->items + c->chosen, c->n - c->chosen, sizeof(*c->items), hot ? by_uses : by_last);
	for (size_t i = c->chosen; i < c->n && c->freed < req->want; i++) {
		struct share_item it = c->items[i];
		struct owner *of = owner_named(c->owners, c->nowners, it.owner);

		if (it.fixed || of->held <= c->level || hot != (it.last >= req->hot_since))
			continue;
		of->held -= it.size;
		c->freed += it.size;
		c->items[i] = c->items[c->chosen];
		c->items[c->chosen++] = it;
	}
}

long share_choose(struct share_item *items, size_t n, const struct share_request *req)
{
	struct choice c = { .items = items, .n = n };
	struct owner *user;
	bool below;
	int err;

	c.owners = owners_of(items, n, &c.nowners);
	if (!c.owners)
		return -ENOMEM;
	user = owner_named(c.owners, c.nowners, req->owner);
	err = level_of(c.owners, c.nowners, user, req, &c.level);
	if (!err) {
		if (user)
			user->held += req->want;
		below = req->owner == SHARE_NO_USER || (user ? user->held : req->want) <= c.level;
		choose(&c, req, false);
		if (below)
			choose(&c, req, true);
	}
	free(c.owners);
	return err ? err : (long)c.chosen;
}
