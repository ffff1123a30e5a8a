/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that were renamed, inlined, or moved below another caller: their time was not saved or
 * spent, it has another place. All of this is guessed from who calls whom:
 *
 *   renamed   one function below a caller is gone, another one there is new, and what they call
 *             and do themselves has the same parts
 *   inlined   a function is gone, and its caller took over its own time or what it called
 *   moved     a function takes what it took before, most of it below another caller
 *
 * The work is linear in the number of nodes: for each caller, at most CANDIDATES functions that are
 * gone are compared with as many that are new.
 */
#include "out/moves.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#define CANDIDATES 12
#define PASSES	   4	/* a renamed function below renamed callers needs one for each */
#define LEVELS	   64	/* callers of callers that are looked at */
#define ALIKE	   0.6	/* parts of two functions that must be equal */
#define NEARLY	   0.25 /* a smaller relative difference of times is none */
#define MOST	   0.6	/* this part of a function is below its main caller */
#define FEW	   0.2	/* a smaller part is below the caller that it moved from, or to */
#define SURE	   4	/* times the samples that can show a change: a caller is no chance */
#define NO_CALLER  UINT32_MAX
#define CHANCE	   0.01 /* a larger p is no change */

struct edge {
	double total[STACK_SIDES]; /* raw */
};

struct graph {
	const struct stackset *ss;
	const struct statistics *st;
	struct function_moments *f;
	struct idmap keys; /* edges: caller (frames.n: the stack begins with the callee), callee */
	struct edge *edges;
	size_t cap;
	uint32_t *by_caller, *first; /* edges sorted by caller; the first one of each caller */
	/* Which caller has most of a function, and which part: by side and frame */
	uint32_t *caller[STACK_SIDES];
	double *part[STACK_SIDES];
	uint32_t *now; /* the function that a frame is a part of AFTER: mostly itself */
	struct moments *left, *joined; /* what moved away from below a function, and to it */
};

/* ---- Who calls whom ---- */

static int add_edges(struct graph *g)
{
	const struct stackset *ss = g->ss;
	double(*total)[STACK_SIDES] = calloc(ss->nodes.n, sizeof(*total));
	int err = total ? 0 : -ENOMEM;

	for (size_t l = 0; !err && l < ss->leaves.n; l++)
		for (int side = 0; side < STACK_SIDES; side++)
			total[ss->leaves.keys[l].a][side] += (double)ss->values[l][side];
	for (size_t i = ss->nodes.n - 1; !err && i > 0; i--) {
		uint64_t up = ss->nodes.keys[i].a;
		uint32_t edge;
		size_t had = g->keys.n;

		err = idmap_get(&g->keys, up ? ss->nodes.keys[up].b : ss->frames.n,
				ss->nodes.keys[i].b, &edge);
		if (!err)
			err = vec_reserve(&g->edges, &g->cap, g->keys.n, sizeof(*g->edges));
		if (err)
			break;
		if (edge == had)
			g->edges[edge] = (struct edge){ .total = { 0 } };
		for (int side = 0; side < STACK_SIDES; side++) {
			g->edges[edge].total[side] += total[i][side];
			total[up][side] += total[i][side];
		}
	}
	free(total);
	return err;
}

/* Sorts the edges by caller, by counting. */
static void sort_edges(struct graph *g)
{
	uint32_t at = 0, n;

	for (size_t e = 0; e < g->keys.n; e++)
		g->first[g->keys.keys[e].a]++;
	for (size_t i = 0; i <= g->ss->frames.n + 1; i++) {
		n = g->first[i];
		g->first[i] = at;
		at += n;
	}
	for (size_t e = 0; e < g->keys.n; e++)
		g->by_caller[g->first[g->keys.keys[e].a]++] = (uint32_t)e;
	for (size_t i = g->ss->frames.n + 1; i > 0; i--)
		g->first[i] = g->first[i - 1];
	g->first[0] = 0;
}

static void find_callers(struct graph *g, enum stack_side side)
{
	const size_t n = g->ss->frames.n;
	double *all = g->part[side];
	struct edge *most = calloc(n + 1, sizeof(*most));

	for (size_t i = 0; i <= n; i++)
		g->caller[side][i] = NO_CALLER;
	for (size_t e = 0; most && e < g->keys.n; e++) {
		uint64_t callee = g->keys.keys[e].b;
		double total = g->edges[e].total[side];

		all[callee] += total;
		if (total <= most[callee].total[side])
			continue;
		most[callee].total[side] = total;
		g->caller[side][callee] = (uint32_t)g->keys.keys[e].a;
	}
	for (size_t i = 0; most && i < n; i++)
		all[i] = all[i] > 0 ? most[i].total[side] / all[i] : 0;
	free(most);
}

static int graph_make(struct graph *g)
{
	const size_t n = g->ss->frames.n;
	int err = add_edges(g);

	if (err)
		return err;
	g->by_caller = calloc(g->keys.n + 1, sizeof(*g->by_caller));
	g->first = calloc(n + 3, sizeof(*g->first));
	g->now = calloc(n + 1, sizeof(*g->now));
	g->left = calloc(n + 1, sizeof(*g->left));
	g->joined = calloc(n + 1, sizeof(*g->joined));
	for (int side = 0; side < STACK_SIDES; side++) {
		g->caller[side] = calloc(n + 1, sizeof(*g->caller[side]));
		g->part[side] = calloc(n + 1, sizeof(*g->part[side]));
		if (!g->caller[side] || !g->part[side])
			return -ENOMEM;
	}
	if (!g->by_caller || !g->first || !g->now || !g->left || !g->joined)
		return -ENOMEM;
	for (size_t i = 0; i <= n; i++)
		g->now[i] = (uint32_t)i;
	sort_edges(g);
	find_callers(g, STACK_AFTER);
	find_callers(g, STACK_BEFORE);
	return 0;
}

static void graph_free(struct graph *g)
{
	idmap_free(&g->keys);
	free(g->edges);
	free(g->by_caller);
	free(g->first);
	free(g->now);
	free(g->left);
	free(g->joined);
	for (int side = 0; side < STACK_SIDES; side++) {
		free(g->caller[side]);
		free(g->part[side]);
	}
}

/* ---- What is said of functions ---- */

/* Whether a function with enough samples is on that side only and was not found elsewhere yet. */
static bool only_on(const struct graph *g, size_t i, enum stack_side side)
{
	const struct function_moments *f = &g->f[i];

	return f->note == CHANGE_ONLY && f->total.sum[side] > 0 && !(f->total.sum[!side] > 0) &&
	       f->total.raw >= g->st->least &&
	       stackset_frame_kind(g->ss, (uint32_t)i) != STACK_NOTE;
}

static bool is_near(const struct graph *g, const struct moments *m)
{
	struct change_value v = moments_value(g->st, m);

	return v.p > CHANCE ||
	       (v.before > 0 && v.after > 0 && fabs(log(v.after / v.before)) <= NEARLY);
}

static void say(struct graph *g, uint32_t frame, enum change_note note, uint32_t other)
{
	g->f[frame].note = note;
	g->f[frame].other = other;
}

/* BEFORE's function is AFTER's. */
static void merge(struct graph *g, uint32_t before, uint32_t after)
{
	moments_add(&g->f[after].self, &g->f[before].self);
	moments_add(&g->f[after].total, &g->f[before].total);
	g->f[before].replaced = true;
	g->now[before] = after;
}

/* An inlined function is a frame of its own, of the same name, if --inline was given. */
static void find_marked_inlined(struct graph *g, enum stack_side marked)
{
	for (uint32_t i = 0; i < g->ss->frames.n; i++) {
		const struct idmap_key *key = &g->ss->frames.keys[i];
		uint32_t other, caller;

		if (key->b == STACK_INLINED || !only_on(g, i, !marked) ||
		    !idmap_find(&g->ss->frames, key->a, STACK_INLINED, &other) ||
		    !only_on(g, other, marked))
			continue;
		caller = g->caller[marked][other];
		if (caller >= g->ss->frames.n)
			continue;
		if (marked == STACK_AFTER) {
			merge(g, i, other);
			say(g, other, CHANGE_INLINED, caller);
		} else {
			merge(g, other, i);
			say(g, i, CHANGE_OUTLINED, caller);
		}
	}
}

/* ---- Renamed functions ---- */

struct candidate {
	uint32_t caller, frame;
	bool is_new;
	double raw;
};

static int by_caller(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->is_new != y->is_new)
		return x->is_new ? 1 : -1;
	return x->raw > y->raw ? -1 : x->raw < y->raw ? 1 : x->frame < y->frame ? -1 : 1;
}

static double raw_of(const struct graph *g, uint32_t caller, uint32_t callee, enum stack_side side)
{
	uint32_t edge;

	return idmap_find(&g->keys, caller, callee, &edge) ? g->edges[edge].total[side] : 0;
}

/*
 * Which part of two functions is the same; *ret_calls: as far as it is known functions that they
 * call. Callees that are gone may be the ones that are new under other names.
 */
static double alike(const struct graph *g, uint32_t gone, uint32_t new, double *ret_calls)
{
	const struct function_moments *b = &g->f[gone], *a = &g->f[new];
	double self = fmin(b->self.raw / b->total.raw, a->self.raw / a->total.raw);
	double is_gone = 0, is_new = 0;

	*ret_calls = 0;
	for (uint32_t i = g->first[gone]; i < g->first[gone + 1]; i++) {
		uint32_t edge = g->by_caller[i];
		uint32_t callee = g->now[g->keys.keys[edge].b];
		double part = g->edges[edge].total[STACK_BEFORE] / b->total.raw;

		*ret_calls += fmin(part, raw_of(g, new, callee, STACK_AFTER) / a->total.raw);
		is_gone += only_on(g, callee, STACK_BEFORE) ? part : 0;
	}
	for (uint32_t i = is_gone > 0 ? g->first[new] : g->first[new + 1]; i < g->first[new + 1];
	     i++) {
		uint32_t edge = g->by_caller[i], callee = (uint32_t)g->keys.keys[edge].b;

		if (only_on(g, callee, STACK_AFTER))
			is_new += g->edges[edge].total[STACK_AFTER] / a->total.raw;
	}
	return self + *ret_calls + fmin(is_gone, is_new);
}

/* How well the two fit; 0: not. Functions that call nothing fit if they take as much time. */
static double fits(const struct graph *g, uint32_t gone, uint32_t new)
{
	struct moments both = g->f[gone].total;
	double calls, ret = alike(g, gone, new, &calls);

	moments_add(&both, &g->f[new].total);
	if (ret < ALIKE || (calls < ALIKE / 2 && !is_near(g, &both)) ||
	    stackset_frame_kind(g->ss, gone) != stackset_frame_kind(g->ss, new))
		return 0;
	return ret / (1 + fabs(log(both.sum[STACK_AFTER] / both.sum[STACK_BEFORE])));
}

/* c: functions below one caller, those that are gone first. */
static bool match_below(struct graph *g, const struct candidate *c, size_t n)
{
	size_t ngone = 0, nnew, best_new = 0;
	bool ret = false;

	while (ngone < n && !c[ngone].is_new)
		ngone++;
	nnew = n - ngone < CANDIDATES ? n - ngone : CANDIDATES;
	for (size_t i = 0; i < ngone && i < CANDIDATES; i++) {
		double best = 0;

		for (size_t k = 0; k < nnew; k++) {
			uint32_t new = c[ngone + k].frame;
			double fit = g->f[new].note == CHANGE_ONLY ? fits(g, c[i].frame, new) : 0;

			if (fit > best) {
				best = fit;
				best_new = k;
			}
		}
		if (!(best > 0))
			continue;
		merge(g, c[i].frame, c[ngone + best_new].frame);
		say(g, c[ngone + best_new].frame, CHANGE_RENAMED, c[i].frame);
		ret = true;
	}
	return ret;
}

/* One pass; *ret: whether there was a renamed function. */
static int find_renamed(struct graph *g, bool *ret)
{
	const uint32_t frames = (uint32_t)g->ss->frames.n;
	struct candidate *c = calloc(frames + 1, sizeof(*c));
	size_t n = 0, end;

	*ret = false;
	if (!c)
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		bool is_new = only_on(g, i, STACK_AFTER);
		enum stack_side side = is_new ? STACK_AFTER : STACK_BEFORE;
		uint32_t caller = g->caller[side][i];

		if (caller == NO_CALLER || g->f[i].replaced ||
		    (!is_new && !only_on(g, i, STACK_BEFORE)))
			continue;
		c[n++] = (struct candidate){ .caller = g->now[caller],
					     .frame = i,
					     .is_new = is_new,
					     .raw = g->f[i].total.raw };
	}
	if (n)
		qsort(c, n, sizeof(*c), by_caller);
	for (size_t at = 0; at < n; at = end) {
		for (end = at; end < n && c[end].caller == c[at].caller; end++)
			;
		*ret |= match_below(g, c + at, end - at);
	}
	free(c);
	return 0;
}

/* ---- Inlined functions ---- */

/* The nearest caller of a function on `side` that the other side has, too; NO_CALLER: none */
static uint32_t host_of(const struct graph *g, uint32_t frame, enum stack_side side)
{
	for (int level = 0; level < LEVELS; level++) {
		if (!(g->part[side][frame] >= MOST))
			return NO_CALLER;
		frame = g->now[g->caller[side][frame]];
		if (frame >= g->ss->frames.n)
			return NO_CALLER;
		if (g->f[frame].total.sum[STACK_BEFORE] > 0 &&
		    g->f[frame].total.sum[STACK_AFTER] > 0)
			return frame;
	}
	return NO_CALLER;
}

/* Whether host calls on the other side what the function called. */
static bool calls_moved(const struct graph *g, uint32_t frame, uint32_t host, enum stack_side side)
{
	double moved = 0, all = 0;

	for (uint32_t i = g->first[frame]; i < g->first[frame + 1]; i++) {
		uint32_t edge = g->by_caller[i], callee = (uint32_t)g->keys.keys[edge].b;
		double had = g->edges[edge].total[side];

		all += had;
		moved += fmin(had, fmax(0, raw_of(g, host, callee, !side) -
						   raw_of(g, host, callee, side)));
	}
	return all > 0 && moved >= ALIKE * all && all >= ALIKE * g->f[frame].total.raw;
}

/* Whether the own time of a function went to host's. */
static bool self_moved(const struct graph *g, uint32_t frame, uint32_t host)
{
	struct moments both = g->f[host].self;
	struct change_value alone = moments_value(g->st, &both), v,
			    gone = moments_value(g->st, &g->f[frame].self);
	double size = fabs(gone.after - gone.before);

	if (gone.p > CHANCE || alone.p > CHANCE ||
	    (gone.after > gone.before) == (alone.after > alone.before))
		return false;
	moments_add(&both, &g->f[frame].self);
	v = moments_value(g->st, &both);
	/* Some of it is mostly saved. */
	return v.p > CHANCE || fabs(v.after - v.before) <= size / 2;
}

/* Functions that are only on `side`: inlined AFTER, or no longer. */
static void find_inlined(struct graph *g, enum stack_side side)
{
	for (uint32_t i = 0; i < g->ss->frames.n; i++) {
		uint32_t host = only_on(g, i, side) && !g->f[i].replaced ? host_of(g, i, side)
									 : NO_CALLER;

		if (host == NO_CALLER || !(self_moved(g, i, host) || calls_moved(g, i, host, side)))
			continue;
		say(g, i, side == STACK_BEFORE ? CHANGE_INLINED : CHANGE_OUTLINED, host);
		g->f[i].moved_self = g->f[i].moved_total = true;
		moments_add(&g->f[host].self, &g->f[i].self);
		if (g->f[host].note == CHANGE_ONLY)
			say(g, host, CHANGE_HOST, i);
		if (side == STACK_BEFORE)
			g->now[i] = host;
	}
}

/* ---- Moved functions ---- */

/* Fills ret with a function and its main callers on a side. */
static size_t callers_of(const struct graph *g, uint32_t frame, enum stack_side side,
			 uint32_t ret[LEVELS])
{
	size_t n = 0;

	while (n < LEVELS && frame < g->ss->frames.n) {
		ret[n++] = g->now[frame];
		frame = g->caller[side][frame];
	}
	return n;
}

/* What is below a function no longer adds to it and to its callers, up to a common one. */
static void note_move(struct graph *g, uint32_t frame, uint32_t from, uint32_t to)
{
	uint32_t before[LEVELS], after[LEVELS];
	size_t nbefore = callers_of(g, from, STACK_BEFORE, before),
	       nafter = callers_of(g, to, STACK_AFTER, after);
	struct moments m = g->f[frame].total;

	while (nbefore && nafter && before[nbefore - 1] == after[nafter - 1])
		nbefore--, nafter--;
	m.sum[STACK_BEFORE] = m.around[STACK_BEFORE] = m.counted[STACK_BEFORE] = 0;
	for (size_t i = 0; i < nbefore; i++)
		moments_add(&g->left[before[i]], &m);
	m = g->f[frame].total;
	m.sum[STACK_AFTER] = m.around[STACK_AFTER] = m.counted[STACK_AFTER] = 0;
	for (size_t i = 0; i < nafter; i++)
		moments_add(&g->joined[after[i]], &m);
}

static bool has_moved(const struct graph *g, uint32_t frame, uint32_t *ret_from, uint32_t *ret_to)
{
	const struct function_moments *f = &g->f[frame];
	const uint32_t frames = (uint32_t)g->ss->frames.n;
	uint32_t from = g->caller[STACK_BEFORE][frame], to = g->caller[STACK_AFTER][frame];

	if (f->note != CHANGE_ONLY || f->total.raw < SURE * g->st->least || from >= frames ||
	    to >= frames || g->part[STACK_BEFORE][frame] < MOST ||
	    g->part[STACK_AFTER][frame] < MOST || !is_near(g, &f->total))
		return false;
	*ret_from = from;
	*ret_to = to;
	return g->now[from] != g->now[to] && g->now[from] != frame && to != frame &&
	       raw_of(g, g->now[from], frame, STACK_AFTER) < FEW * f->total.raw &&
	       raw_of(g, to, frame, STACK_BEFORE) < FEW * f->total.raw;
}

static void find_moved(struct graph *g)
{
	uint32_t from, to;

	for (uint32_t i = 0; i < g->ss->frames.n; i++) {
		if (!has_moved(g, i, &from, &to))
			continue;
		say(g, i, CHANGE_MOVED, to);
		note_move(g, i, from, to);
	}
	for (size_t i = 0; i < g->ss->frames.n; i++) {
		struct moments m = g->f[i].total;

		if (!(g->left[i].raw > 0 || g->joined[i].raw > 0))
			continue;
		moments_add(&m, &g->left[i]);
		moments_add(&m, &g->joined[i]);
		g->f[i].moved_total |= is_near(g, &m);
	}
}

int moves_find(const struct stackset *ss, const struct statistics *st, struct function_moments *f)
{
	struct graph g = { .ss = ss, .st = st, .f = f };
	bool more = true;
	int err = graph_make(&g);

	if (!err) {
		find_marked_inlined(&g, STACK_AFTER);
		find_marked_inlined(&g, STACK_BEFORE);
	}
	for (int pass = 0; !err && more && pass < PASSES; pass++)
		err = find_renamed(&g, &more);
	if (!err) {
		find_inlined(&g, STACK_BEFORE);
		find_inlined(&g, STACK_AFTER);
		find_moved(&g);
	}
	graph_free(&g);
	return err;
}
