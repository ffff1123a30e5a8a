/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_accepted.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"

#define ROWS_MAX (8u << 20)

static uint64_t hash_of_fn(const void *ctx, size_t i)
{
	return hash_u64(((const struct code_accepted *)ctx)->fns[i].start);
}

/* The slot of the function with that start, or a free one. */
static uint32_t *slot_of(const struct code_accepted *a, uint64_t start)
{
	size_t at;

	slots_each(&a->by_start, hash_u64(start), at)
		if (a->fns[a->by_start.ids[at] - 1].start == start)
			break;
	return &a->by_start.ids[at];
}

const struct code_accepted_fn *code_accepted_at(const struct code_accepted *a, uint64_t start)
{
	const uint32_t id = a->n ? *slot_of(a, start) : 0;

	return id ? &a->fns[id - 1] : NULL;
}

void code_drop_rows(struct code_accepted *a, const struct code_accepted_fn *fn)
{
	for (size_t i = fn->first; i < fn->first + fn->n; i++)
		a->rows.rows[i].end = a->rows.rows[i].start;
}

void code_reject(struct code_accepted *a, const struct code_accepted_fn *fn)
{
	code_drop_rows(a, fn);
	a->fns[fn - a->fns].callee = (struct code_callee){ UINT32_MAX, CODE_POPS_UNKNOWN };
}

int code_accept(struct code_accepted *a, const struct code_result *r, bool has_poppers,
		uint64_t start, bool certain)
{
	struct code_accepted_fn fn = { .start = start, .certain = certain, .guessed = r->guessed };
	uint32_t *id;
	int err = slots_reserve(&a->by_start, a->n, hash_of_fn, a);

	if (!err)
		err = vec_reserve(&a->fns, &a->cap, a->n + 1, sizeof(*a->fns));
	if (err)
		return err;
	fn.callee.writes = r->writes;
	fn.callee.pops = has_poppers && r->ntails ? CODE_POPS_UNKNOWN : r->pops;
	fn.first = a->rows.n;
	for (size_t i = 0; i < r->nrows && !err; i++)
		err = a->rows.n < ROWS_MAX ? rowbuf_push(&a->rows, &r->rows[i]) : 0;
	fn.n = a->rows.n - fn.first;
	id = slot_of(a, start);
	if (*id)
		code_drop_rows(a, &a->fns[*id - 1]);
	else
		*id = (uint32_t)++a->n;
	a->fns[*id - 1] = fn;
	return err;
}

void code_settle(struct code_accepted *a)
{
	struct rowbuf *b = &a->rows;
	uint64_t bad = 0; /* no row counts below */
	size_t n = 0;

	rowbuf_sort(b);
	for (size_t i = 0; i < b->n; i++) {
		struct row r = b->rows[i];

		if (r.start < bad)
			r.start = bad;
		if (r.start >= r.end)
			continue;
		if (n && r.start < b->rows[n - 1].end) {
			struct row *last = &b->rows[n - 1];
			uint64_t both = last->end < r.end ? last->end : r.end;

			if (row_same_rules(last, &r)) {
				if (r.end > last->end)
					last->end = r.end;
				continue;
			}
			/* The rest of the longer one is lost too, if it is the first. */
			bad = both;
			last->end = r.start;
			r.start = both;
			n -= last->start >= last->end;
			if (r.start >= r.end)
				continue;
		}
		b->rows[n++] = r;
	}
	b->n = n;
}

void code_accepted_free(struct code_accepted *a)
{
	free(a->fns);
	slots_free(&a->by_start);
	rowbuf_free(&a->rows);
}
