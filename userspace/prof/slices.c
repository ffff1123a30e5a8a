/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/slices.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

static void empty(struct slices *s)
{
	idmap_free(&s->cells);
	free(s->counts);
	s->cells = (struct idmap){ 0 };
	s->counts = NULL;
	s->cap = 0;
}

void slices_free(struct slices *s)
{
	empty(s);
	*s = (struct slices){ 0 };
}

static void fail(struct slices *s)
{
	empty(s);
	s->failed = true;
}

static void count(struct slices *s, uint64_t stack, uint64_t slice, uint64_t n)
{
	size_t before = s->cells.n;
	uint32_t cell;

	if (s->failed)
		return;
	if (vec_reserve(&s->counts, &s->cap, before + 1, sizeof(*s->counts)) ||
	    idmap_get(&s->cells, stack, slice, &cell)) {
		fail(s);
		return;
	}
	if (cell == before)
		s->counts[cell] = 0;
	s->counts[cell] += n;
	if (slice >= s->n)
		s->n = (uint32_t)slice + 1;
}

/* Merges runs of `times` slices. */
static void widen(struct slices *s, uint64_t times)
{
	struct slices old = *s;

	*s = (struct slices){ .width_ns = old.width_ns * times, .failed = old.failed };
	for (size_t i = 0; i < old.cells.n; i++)
		count(s, old.cells.keys[i].a, old.cells.keys[i].b / times, old.counts[i]);
	empty(&old);
}

void slices_cover(struct slices *s, uint64_t ns)
{
	uint64_t times = 1;

	if (!s->width_ns)
		s->width_ns = SLICES_WIDTH_NS;
	while (ns / s->width_ns / times >= SLICES_MAX)
		times *= 2;
	if (times > 1)
		widen(s, times);
}

int slices_restore(struct slices *s, size_t stack, uint64_t slice, uint64_t n)
{
	count(s, stack, slice, n);
	return s->failed ? -ENOMEM : 0;
}

void slices_add(struct slices *s, uint64_t ns, size_t stack)
{
	slices_cover(s, ns);
	count(s, stack, ns / s->width_ns, 1);
}
