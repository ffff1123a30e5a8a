/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/map_ages.h"

/* An even number, so that generations of equal epochs are even or odd alike */
#define EPOCHS 4094u

uint32_t map_ages_next(const struct map_ages *a)
{
	return a->generation + 2;
}

void map_ages_lost(struct map_ages *a)
{
	a->since = map_ages_next(a);
	a->replaces = true;
}

void map_ages_read(struct map_ages *a, bool replaces, bool whole, uint64_t look_ns, uint64_t now_ns)
{
	a->replaces |= replaces;
	if (!whole)
		return;
	if (a->replaces || a->expected) {
		a->generation += 2;
		a->changes[a->nchanges++ % MAP_AGES_CHANGES] =
			(struct map_change){ a->whole_ns, now_ns, a->generation };
	}
	a->replaces = a->expected = false;
	a->whole_ns = look_ns;
}

static uint32_t generation_at(const struct map_ages *a, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t n = a->nchanges < MAP_AGES_CHANGES ? a->nchanges : MAP_AGES_CHANGES, ret = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct map_change *c = &a->changes[(a->nchanges - 1 - i) % MAP_AGES_CHANGES];

		if (from_ns >= c->after_ns)
			return c->generation;
		if (to_ns > c->before_ns)
			return c->generation - 1;
		ret = c->generation - 2;
	}
	return a->nchanges > n ? ret + 1 : ret;
}

uint32_t map_ages_epoch(struct map_ages *a, uint64_t from_ns, uint64_t to_ns, bool unread)
{
	uint32_t generation;

	if (unread && to_ns > a->whole_ns) {
		a->expected = true;
		generation = a->generation + 1;
	} else {
		generation = generation_at(a, from_ns, to_ns);
	}
	return 1 + generation % EPOCHS;
}

bool map_ages_span(const struct map_ages *a, uint32_t epoch, uint64_t *ret_from, uint64_t *ret_to)
{
	uint32_t newest = a->generation + 1,
		 ago = (newest + EPOCHS - (epoch - 1) % EPOCHS) % EPOCHS;
	uint32_t generation = ago <= newest ? newest - ago : 0;

	*ret_from = *ret_to = 0;
	if (!epoch)
		return true;
	if (generation == newest && a->expected)
		return false;
	*ret_from = generation & 1 ? generation - 1 : generation;
	*ret_to = generation & 1 ? generation + 2 : generation + 1;
	if (generation < a->since) {
		*ret_from = 0;
		*ret_to = a->since + 1;
	}
	return true;
}
