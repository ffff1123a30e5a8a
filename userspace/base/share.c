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

long share_choose(struct share_item *items, size_t n, const struct share_ask *ask)
{
	struct owner *o, *of, *asker;
	uint64_t level = 0, freed = 0;
	size_t nowners, chosen = 0;
	bool urgent;
	int err;

	o = owners_of(items, n, &nowners);
	if (!o)
		return -ENOMEM;
	asker = owner_named(o, nowners, ask->owner);
	err = level_of(o, nowners, asker, ask, &level);
	if (err) {
		free(o);
		return err;
	}
	if (asker)
		asker->held += ask->want;
	urgent = ask->owner == SHARE_NOBODY || (asker ? asker->held : ask->want) <= level;
	qsort(items, n, sizeof(*items), by_last);
	for (size_t i = 0; i < n && freed < ask->want; i++) {
		struct share_item it = items[i];

		of = owner_named(o, nowners, it.owner);
		if (it.fixed || of->held <= level || (it.last >= ask->hot_since && !urgent))
			continue;
		of->held -= it.size;
		freed += it.size;
		items[i] = items[chosen];
		items[chosen++] = it;
	}
	free(o);
	return (long)chosen;
}
