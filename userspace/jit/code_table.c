/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/code_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/radix.h"
#include "base/vec.h"

#define INDEX_GUESS 40 /* estimated bytes of index for a piece that overlaps no other */
#define MERGE	    4  /* each part has at least this many times the pieces of the next */
#define LEVELS	    23 /* levels of a tree with 2 * CODE_MAX points, and the root */
#define VERSIONS    64 /* pieces considered for one address and time */

_Static_assert(CODE_MAX <= 1u << 2 * (CODE_PARTS - 2), "each part has MERGE times the next one's");
_Static_assert(CODE_MAX <= 1u << (LEVELS - 3), "2 * CODE_MAX leaves have two levels more");

static size_t part_bytes(const struct code_part *p)
{
	size_t nodes = p->npoints ? 2 * (size_t)(p->npoints - 1) : 0;

	return p->npoints * sizeof(*p->points) +
	       (nodes ? nodes + p->ends[nodes - 1] : 0) * sizeof(*p->list);
}

size_t code_table_bytes(const struct code_table *t)
{
	size_t sum = t->n * sizeof(*t->codes) + t->names_len + (t->n - t->indexed) * INDEX_GUESS;

	for (size_t i = 0; i < t->nparts; i++)
		sum += part_bytes(&t->parts[i]);
	return sum;
}

static void free_part(struct code_part *p)
{
	free(p->points);
	free(p->ends);
	free(p->list);
	*p = (struct code_part){ 0 };
}

void code_table_free(struct code_table *t)
{
	for (size_t i = 0; i < t->nparts; i++)
		free_part(&t->parts[i]);
	free(t->codes);
	free(t->names);
	*t = (struct code_table){ 0 };
}

int code_table_add_named(struct code_table *t, struct code c)
{
	if (!c.size || c.size > UINT64_MAX - c.start)
		return 0;
	if (t->n >= CODE_MAX)
		return -ENOSPC;
	if (vec_reserve(&t->codes, &t->cap, t->n + 1, sizeof(*t->codes)))
		return -ENOMEM;
	t->codes[t->n++] = c;
	return 0;
}

int code_table_add(struct code_table *t, struct code c, const char *name, size_t len)
{
	int err;

	if (len > CODE_NAME_MAX)
		len = CODE_NAME_MAX;
	if (t->names_len + len + 1 > UINT32_MAX)
		return -ENOSPC;
	if (vec_reserve(&t->names, &t->names_cap, t->names_len + len + 1, 1))
		return -ENOMEM;
	c.name = (uint32_t)t->names_len;
	err = code_table_add_named(t, c);
	if (err || !c.size || c.size > UINT64_MAX - c.start)
		return err;
	memcpy(t->names + c.name, name, len);
	t->names[c.name + len] = 0;
	t->names_len += len + 1;
	return 0;
}

/* Drops the pieces from n on, which are not indexed, and the names that only they use. */
static void drop_from(struct code_table *t, size_t n)
{
	uint32_t last = 0;

	for (size_t i = 0; i < n; i++)
		if (t->codes[i].name > last)
			last = t->codes[i].name;
	t->n = n;
	t->names_len = n ? last + strlen(t->names + last) + 1 : 0;
}

/* ---- The index ---- */

/* The number of points at or below addr. */
static size_t points_upto(const struct code_part *p, uint64_t addr)
{
	size_t lo = 0, hi = p->npoints;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->points[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int take_points(struct code_part *p, const struct code *codes)
{
	size_t n = 2 * (size_t)p->n, k = 0;

	p->points = malloc(n * sizeof(*p->points));
	if (!p->points)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++) {
		p->points[2 * i] = codes[i].start;
		p->points[2 * i + 1] = codes[i].start + codes[i].size;
	}
	if (radix_sort(p->points, n, sizeof(*p->points)))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!k || p->points[k - 1] != p->points[i])
			p->points[k++] = p->points[i];
	p->npoints = (uint32_t)k;
	return 0;
}

struct aged {
	uint64_t time;
	uint32_t at;	     /* index in codes */
	uint32_t first, end; /* leaves */
};

/* The part's pieces, oldest first, with their leaves. NULL: out of memory. */
static struct aged *by_age(const struct code_part *p, const struct code *codes)
{
	struct aged *a = malloc(p->n * sizeof(*a));

	for (uint32_t i = 0; a && i < p->n; i++) {
		size_t first = points_upto(p, codes[i].start) - 1;
		size_t end = points_upto(p, codes[i].start + codes[i].size) - 1;

		a[i] = (struct aged){ codes[i].time, p->from + i, (uint32_t)first, (uint32_t)end };
	}
	if (a && radix_sort(a, p->n, sizeof(*a))) {
		free(a);
		a = NULL;
	}
	return a;
}

/*
 * Runs the statement for each node of a tree with m leaves; the nodes together cover the leaves
 * [first, end).
 */
#define each_node(node, first, end, m)                                               \
	for (size_t l_ = (first) + (m), r_ = (end) + (m); l_ < r_; l_ /= 2, r_ /= 2) \
		for (size_t step_ = 0; step_ < 2; step_++)                           \
			if ((step_ ? r_ & 1 : l_ & 1) && ((node) = step_ ? --r_ : l_++, 1))

/*
 * ends[] holds first each list's length, then its start. Filling a list advances that to its end.
 */
static int fill_lists(struct code_part *p, const struct aged *a, size_t room)
{
	size_t m = p->npoints - 1, sum = 0, node;

	p->ends = calloc(2 * m, sizeof(*p->ends));
	if (!p->ends)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++)
		each_node(node, a[i].first, a[i].end, m) p->ends[node]++;
	for (size_t i = 0; i < 2 * m; i++) {
		size_t n = p->ends[i];

		p->ends[i] = (uint32_t)sum;
		sum += n;
	}
	if (p->npoints * sizeof(*p->points) + (2 * m + sum) * sizeof(*p->list) > room)
		return -ENOSPC;
	p->list = malloc(sum * sizeof(*p->list));
	if (!p->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++)
		each_node(node, a[i].first, a[i].end, m) p->list[p->ends[node]++] = a[i].at;
	return 0;
}

/*
 * Indexes all pieces from `from` on. 0, -ENOMEM; -ENOSPC: the index would take more than room
 * bytes.
 */
static int build(const struct code_table *t, size_t from, size_t room, struct code_part *ret)
{
	struct code_part p = { .from = (uint32_t)from, .n = (uint32_t)(t->n - from) };
	int err = take_points(&p, t->codes + from);
	struct aged *a = err ? NULL : by_age(&p, t->codes + from);
	uint64_t *fewer;

	if (!err)
		err = a ? fill_lists(&p, a, room) : -ENOMEM;
	free(a);
	if (err) {
		free_part(&p);
		return err;
	}
	fewer = realloc(p.points, p.npoints * sizeof(*p.points));
	if (fewer)
		p.points = fewer;
	*ret = p;
	return 0;
}

int code_table_index(struct code_table *t, size_t most, bool *ret_cut)
{
	struct code_part fresh;
	int err = 0;

	*ret_cut = false;
	while (t->n > t->indexed) {
		size_t keep = t->nparts, from = t->indexed, held;

		for (; keep && t->parts[keep - 1].n < MERGE * (t->n - from); keep--)
			from = t->parts[keep - 1].from;
		held = t->n * sizeof(*t->codes) + t->names_len;
		for (size_t i = 0; i < keep; i++)
			held += part_bytes(&t->parts[i]);
		err = held < most ? build(t, from, most - held, &fresh) : -ENOSPC;
		if (err == -ENOSPC) {
			drop_from(t, t->indexed + (t->n - t->indexed) / 2);
			*ret_cut = true;
			err = 0;
		} else if (err) {
			drop_from(t, t->indexed);
		} else {
			while (t->nparts > keep)
				free_part(&t->parts[--t->nparts]);
			t->parts[t->nparts++] = fresh;
			t->indexed = t->n;
		}
	}
	return err;
}

/* ---- Finding ---- */

/*
 * The pieces that cover an address: the lists of all nodes from its leaves to the roots, without
 * the pieces already considered.
 */
struct cover {
	struct {
		const uint32_t *list;
		uint32_t n;
	} at[CODE_PARTS * LEVELS];
	size_t n;
};

static void find_cover(const struct code_table *t, uint64_t addr, struct cover *ret)
{
	ret->n = 0;
	for (size_t i = 0; i < t->nparts; i++) {
		const struct code_part *p = &t->parts[i];
		size_t leaf = points_upto(p, addr), m = p->npoints - 1;

		if (!leaf || leaf > m)
			continue;
		for (size_t node = leaf - 1 + m; node; node /= 2) {
			uint32_t n = p->ends[node] - p->ends[node - 1];

			if (!n)
				continue;
			ret->at[ret->n].list = p->list + p->ends[node - 1];
			ret->at[ret->n++].n = n;
		}
	}
}

/* The number of pieces in a list that are older than time. */
static uint32_t made_before(const struct code *codes, const uint32_t *list, uint32_t n,
			    uint64_t time)
{
	uint32_t lo = 0;

	while (lo < n) {
		uint32_t mid = lo + (n - lo) / 2;

		if (codes[list[mid]].time < time)
			lo = mid + 1;
		else
			n = mid;
	}
	return lo;
}

static bool newer(const struct code *a, const struct code *b)
{
	return a->time != b->time ? a->time > b->time : a > b;
}

/* Removes the newest piece from the lists and returns it. NULL: none is left. */
static const struct code *next_older(const struct code_table *t, struct cover *c)
{
	const struct code *best = NULL;
	size_t from = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct code *last;

		if (!c->at[i].n)
			continue;
		last = &t->codes[c->at[i].list[c->at[i].n - 1]];
		if (!best || newer(last, best)) {
			best = last;
			from = i;
		}
	}
	if (best)
		c->at[from].n--;
	return best;
}

static const struct code *oldest(const struct code_table *t, const struct cover *c)
{
	const struct code *best = NULL;

	for (size_t i = 0; i < c->n; i++)
		if (!best || newer(best, &t->codes[c->at[i].list[0]]))
			best = &t->codes[c->at[i].list[0]];
	return best;
}

static bool is_indexed(const struct code_table *t, uint64_t start, uint64_t end)
{
	struct cover cover;

	for (size_t i = 0; i < t->nparts; i++)
		if (points_upto(&t->parts[i], start) != points_upto(&t->parts[i], end - 1))
			return true;
	find_cover(t, start, &cover);
	return cover.n;
}

bool code_table_replaces(const struct code_table *t)
{
	const struct code *fresh = t->codes + t->indexed;
	const size_t n = t->n - t->indexed;
	struct {
		uint64_t start, end;
	} *s = malloc((n + 1) * sizeof(*s));
	bool some = !s;

	for (size_t i = 0; i < n && !some; i++) {
		s[i].start = fresh[i].start;
		s[i].end = fresh[i].start + fresh[i].size;
		some = is_indexed(t, s[i].start, s[i].end);
	}
	if (!some && radix_sort(s, n, sizeof(*s)))
		some = true;
	for (size_t i = 1; i < n && !some; i++)
		some = s[i].start < s[i - 1].end;
	free(s);
	return some;
}

static bool is_renamed(const struct code_table *t, const struct code *a, const struct code *b)
{
	return a && a->name != b->name && strcmp(t->names + a->name, t->names + b->name);
}

const char *code_table_find(const struct code_table *t, uint64_t addr, uint64_t from, uint64_t to,
			    bool *ret_several)
{
	const struct code *best = NULL, *c;
	uint64_t end = to, most = 0;
	bool several = false;
	struct cover cover;

	find_cover(t, addr, &cover);
	for (size_t i = 0; i < cover.n && to; i++)
		cover.at[i].n = made_before(t->codes, cover.at[i].list, cover.at[i].n, to);
	for (int i = 0; i < VERSIONS && (c = next_older(t, &cover)); i++) {
		uint64_t since = c->time > from ? c->time : from;

		several |= is_renamed(t, best, c);
		if (!best || end - since > most) {
			best = c;
			most = to ? end - since : 0;
		}
		if (!to || c->time <= from)
			break;
		end = c->time;
	}
	if (!best) {
		best = oldest(t, &cover);
		several = best && t->late && best->time - to >= t->late;
	}
	if (ret_several)
		*ret_several = several;
	return best ? t->names + best->name : NULL;
}
