/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/idmap.h"
#include "base/vec.h"
#include "prof/wait_notes.h"

#define SLOW_SHARE 0.01
#define KEEP_SHARE 0.90 /* calls above this share are kept until it is known which are slow */

/* What calls of a class spent in a stack. */
struct part {
	uint64_t samples, waits, waited_ns, runnable_ns;
};

struct calls {
	uint64_t over_ns; /* 0: not given */
	struct calls_piece *pieces;
	size_t npieces, pieces_cap;
	struct sf_call *ended; /* calls that ended; before `seen`: before the last turn */
	size_t nended, ended_cap, seen;
	struct idmap keys; /* stack, class */
	struct part *parts;
	size_t parts_cap;
	struct calls_sum classes[SF_CALL_HIST];
	struct calls_one slowest[CALLS_SLOWEST + 1];
	size_t nslowest;
	struct sf_call any; /* a call, for the name of CPU time without samples */
	uint64_t missing;
	struct calls_result result;
};

struct calls *calls_new(uint64_t over_ns)
{
	struct calls *c = calloc(1, sizeof(*c));

	if (c)
		c->over_ns = over_ns;
	return c;
}

void calls_free(struct calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nslowest; i++)
		free(c->slowest[i].pieces);
	free(c->pieces);
	free(c->ended);
	idmap_free(&c->keys);
	free(c->parts);
	free(c);
}

void calls_piece(struct calls *c, const struct calls_piece *p)
{
	if (c->npieces >= CALLS_PIECES ||
	    vec_reserve(&c->pieces, &c->pieces_cap, c->npieces + 1, sizeof(*p)))
		c->missing++;
	else
		c->pieces[c->npieces++] = *p;
}

void calls_end(struct calls *c, const struct sf_call *rec)
{
	if (rec->end_ns < rec->start_ns ||
	    vec_reserve(&c->ended, &c->ended_cap, c->nended + 1, sizeof(*rec)))
		c->missing++;
	else
		c->ended[c->nended++] = *rec;
}

/* ---- Ended calls ---- */

static uint32_t class_of(const struct calls *c, uint64_t ns)
{
	return c->over_ns ? ns >= c->over_ns : call_hist_place(ns);
}

/* Keeps the call if it is one of the slowest. */
static int keep_slowest(struct calls *c, const struct sf_call *call, const struct calls_piece *v,
			size_t n)
{
	uint64_t ns = call->end_ns - call->start_ns;
	struct calls_one one = { .call = *call, .n = n };
	size_t at = c->nslowest;

	while (at && c->slowest[at - 1].call.end_ns - c->slowest[at - 1].call.start_ns < ns)
		at--;
	if (at == CALLS_SLOWEST)
		return 0;
	one.pieces = malloc((n + 1) * sizeof(*v));
	if (!one.pieces)
		return -ENOMEM;
	if (n)
		memcpy(one.pieces, v, n * sizeof(*v));
	memmove(&c->slowest[at + 1], &c->slowest[at], (c->nslowest - at) * sizeof(one));
	c->slowest[at] = one;
	if (c->nslowest == CALLS_SLOWEST)
		free(c->slowest[CALLS_SLOWEST].pieces);
	else
		c->nslowest++;
	return 0;
}

static int add_piece(struct calls *c, uint32_t class, const struct calls_piece *p)
{
	struct calls_sum *sum = &c->classes[class];
	size_t before = c->keys.n;
	struct part *part;
	uint32_t id;

	if (vec_reserve(&c->parts, &c->parts_cap, before + 1, sizeof(*c->parts)) ||
	    idmap_get(&c->keys, p->stack, class, &id))
		return -ENOMEM;
	part = &c->parts[id];
	if (id == before)
		*part = (struct part){ 0 };
	if (p->end_ns == p->start_ns) {
		part->samples++;
		sum->samples++;
		return 0;
	}
	part->waits++;
	part->waited_ns += p->woken_ns - p->start_ns;
	part->runnable_ns += p->end_ns - p->woken_ns;
	sum->waited_ns += p->woken_ns - p->start_ns;
	sum->runnable_ns += p->end_ns - p->woken_ns;
	return 0;
}

static int settle(struct calls *c, const struct sf_call *call, const struct calls_piece *v,
		  size_t n)
{
	uint64_t ns = call->end_ns - call->start_ns;
	uint32_t class = class_of(c, ns);
	int err = keep_slowest(c, call, v, n);

	c->any = *call;
	c->classes[class].calls++;
	c->classes[class].ns += ns;
	for (size_t i = 0; i < n && !err; i++)
		err = add_piece(c, class, &v[i]);
	return err;
}

static int by_call(const void *a, const void *b)
{
	const struct calls_piece *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static int by_number(const void *a, const void *b)
{
	const struct sf_call *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

int calls_turn(struct calls *c, bool last)
{
	size_t n = last ? c->nended : c->seen, at = 0, left = 0;
	int err = 0;

	qsort(c->ended, n, sizeof(*c->ended), by_number);
	qsort(c->pieces, c->npieces, sizeof(*c->pieces), by_call);
	for (size_t i = 0; i < n && !err; i++) {
		size_t first;

		while (at < c->npieces && c->pieces[at].number < c->ended[i].number)
			c->pieces[left++] = c->pieces[at++];
		first = at;
		while (at < c->npieces && c->pieces[at].number == c->ended[i].number)
			at++;
		err = settle(c, &c->ended[i], c->pieces + first, at - first);
	}
	while (at < c->npieces)
		c->pieces[left++] = c->pieces[at++];
	c->npieces = left;
	memmove(c->ended, c->ended + n, (c->nended - n) * sizeof(*c->ended));
	c->nended -= n;
	c->seen = c->nended;
	return err;
}

/* ---- All calls ---- */

static uint64_t count_of(const struct sf_call_stats *all)
{
	uint64_t n = 0;

	for (size_t i = 0; i < SF_CALL_HIST; i++)
		n += all->hist[i];
	return n;
}

/* The place of the call that has this share of the calls before it; SF_CALL_HIST: no calls. */
static uint32_t place_at(const struct sf_call_stats *all, double share)
{
	uint64_t n = count_of(all), before = 0;
	double rank = share * (double)n;

	for (uint32_t i = 0; i < SF_CALL_HIST && n; i++) {
		before += all->hist[i];
		if (all->hist[i] && ((double)before > rank || before == n))
			return i;
	}
	return SF_CALL_HIST;
}

uint64_t calls_quantile(const struct sf_call_stats *all, double share)
{
	uint32_t place = place_at(all, share);
	uint64_t from, middle;

	if (place == SF_CALL_HIST)
		return 0;
	from = call_hist_from(place);
	middle = from + (call_hist_from(place + 1) - from) / 2;
	return middle < all->max_ns ? middle : all->max_ns;
}

uint64_t calls_keep_over(const struct calls *c, const struct sf_call_stats *all)
{
	uint32_t place = place_at(all, KEEP_SHARE);

	if (c->over_ns)
		return c->over_ns;
	return place == SF_CALL_HIST ? 0 : call_hist_from(place);
}

/* The first place of slow calls, which are at most 1 %, or one; SF_CALL_HIST: none stands out. */
static uint32_t first_slow(const struct sf_call_stats *all)
{
	uint64_t n = count_of(all), above = 0;
	double most = SLOW_SHARE * (double)n;
	uint32_t first = SF_CALL_HIST;

	for (uint32_t i = SF_CALL_HIST; i-- > 0;) {
		above += all->hist[i];
		if ((double)above > (most > 1 ? most : 1))
			break;
		if (all->hist[i])
			first = i;
	}
	return first;
}

static enum calls_group group_of(const struct calls *c, uint32_t class)
{
	if (c->over_ns)
		return class ? CALLS_SLOW : CALLS_TYPICAL;
	return c->result.over_ns != UINT64_MAX && class >= call_hist_place(c->result.over_ns)
		       ? CALLS_SLOW
		       : CALLS_TYPICAL;
}

void calls_finish(struct calls *c, const struct sf_call_stats *all, struct calls_result *ret)
{
	struct calls_result *r = &c->result;
	struct calls_sum *typical = &r->groups[CALLS_TYPICAL], *slow = &r->groups[CALLS_SLOW];
	uint32_t first = first_slow(all);

	*r = (struct calls_result){ .all = *all,
				    .missing = c->missing + c->npieces,
				    .over_ns = c->over_ns	       ? c->over_ns
					       : first == SF_CALL_HIST ? UINT64_MAX
								       : call_hist_from(first),
				    .slowest = c->slowest,
				    .nslowest = c->nslowest };
	for (uint32_t i = 0; i < SF_CALL_HIST; i++) {
		const struct calls_sum *from = &c->classes[i];
		struct calls_sum *to = &r->groups[group_of(c, i)];

		to->calls += from->calls;
		to->ns += from->ns;
		to->waited_ns += from->waited_ns;
		to->runnable_ns += from->runnable_ns;
		to->samples += from->samples;
	}
	/* The records of all slow calls were kept; of the typical ones, only some. */
	typical->calls = all->ended > slow->calls ? all->ended - slow->calls : 0;
	typical->ns = all->ns > slow->ns ? all->ns - slow->ns : 0;
	*ret = *r;
}

/* ---- Stacks ---- */

static uint64_t cpu_of(const struct calls_sum *s)
{
	uint64_t waits = s->waited_ns + s->runnable_ns;

	return s->ns > waits ? s->ns - waits : 0;
}

/* CPU time of calls in which no sample was taken. */
static int add_unsampled(const struct calls *c, enum calls_group group, struct profile *dst)
{
	struct sf_sample rec = { .type = SF_REC_SAMPLE, .pid = c->any.pid };
	struct profile_times t = { .weight = cpu_of(&c->result.groups[group]),
				   .state = PROFILE_RUNNING,
				   .group = (uint8_t)group };

	memcpy(rec.comm, c->any.comm, SF_COMM);
	return t.weight ? profile_add_times(dst, &rec, &t, NULL) : 0;
}

int calls_profile(const struct calls *c, const struct profile *src, struct profile *dst)
{
	int err = 0;

	for (size_t i = 0; i < c->keys.n && !err; i++) {
		const struct part *p = &c->parts[i];
		size_t stack = c->keys.keys[i].a;
		enum calls_group group = group_of(c, (uint32_t)c->keys.keys[i].b);
		const struct calls_sum *sum = &c->result.groups[group];
		struct profile_times t = { .count = p->samples + p->waits,
					   .group = (uint8_t)group };
		struct profile_stack s;

		profile_stack(src, stack, &s);
		t.state = s.state;
		t.weight = p->samples ? (uint64_t)((double)cpu_of(sum) * (double)p->samples /
						   (double)sum->samples)
				      : p->waited_ns;
		if (t.weight || !p->runnable_ns)
			err = profile_merge_part(dst, src, stack, &t);
		t.weight = p->runnable_ns;
		t.state = SF_OFF_R;
		if (!err && t.weight)
			err = profile_merge_part(dst, src, stack, &t);
	}
	for (enum calls_group g = 0; g < CALLS_GROUPS && !err; g++)
		if (!c->result.groups[g].samples)
			err = add_unsampled(c, g, dst);
	return err;
}
