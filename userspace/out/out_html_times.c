/* SPDX-License-Identifier: BSD-2-Clause */
/* The times of a flame graph's stacks: counts by leaf and slice. */
#include <errno.h>
#include <stdlib.h>

#include "out/out_html.h"

static int by_leaf(const void *a, const void *b)
{
	const struct html_cell *x = a, *y = b;

	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* Stacks of different addresses have the same names. */
static void merge(struct html_times *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (n && !by_leaf(&t->cells[n - 1], &t->cells[i]))
			t->cells[n - 1].count += t->cells[i].count;
		else
			t->cells[n++] = t->cells[i];
	}
	t->n = n;
}

/* Whether the cells of each leaf add up to its value: the page knows where they end by that. */
static bool adds_up(const struct html_times *t, const struct stackset *ss)
{
	size_t at = 0;

	for (uint32_t l = 0; l < ss->leaves.n; l++) {
		uint64_t sum = 0;

		for (; at < t->n && t->cells[at].leaf == l; at++)
			sum += t->cells[at].count;
		if (sum != ss->values[l][STACK_AFTER])
			return false;
	}
	return at == t->n;
}

int html_times_make(struct html_times *t, const struct stackset *ss, const struct slices *s,
		    const uint32_t *leaf_of, double duration_s)
{
	uint64_t whole;

	*t = (struct html_times){ 0 };
	if (s->failed || !s->cells.n)
		return 0;
	t->cells = calloc(s->cells.n, sizeof(*t->cells));
	if (!t->cells)
		return -ENOMEM;
	for (size_t i = 0; i < s->cells.n; i++)
		t->cells[i] = (struct html_cell){ leaf_of[s->cells.keys[i].a],
						  (uint32_t)s->cells.keys[i].b, s->counts[i] };
	t->n = s->cells.n;
	t->width_ns = s->width_ns;
	qsort(t->cells, t->n, sizeof(*t->cells), by_leaf);
	merge(t);
	if (!adds_up(t, ss)) {
		html_times_free(t);
		return 0;
	}
	whole = (uint64_t)(duration_s * 1e9) / s->width_ns + 1;
	t->slices = whole > s->n && whole <= SLICES_MAX ? (uint32_t)whole : s->n;
	return 0;
}

void html_times_free(struct html_times *t)
{
	free(t->cells);
	*t = (struct html_times){ 0 };
}

static size_t first_of(const struct html_times *t, uint32_t leaf)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->cells[mid].leaf < leaf)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void html_times_put(const struct html_times *t, uint32_t leaf, uint64_t value, FILE *f)
{
	uint32_t last = 0;

	for (size_t i = first_of(t, leaf); value && i < t->n && t->cells[i].leaf == leaf; i++) {
		html_put_digits(f, t->cells[i].slice - last);
		if (value > 1)
			html_put_digits(f, t->cells[i].count);
		last = t->cells[i].slice;
		value -= t->cells[i].count;
	}
}
