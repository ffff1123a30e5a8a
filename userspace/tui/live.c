/* SPDX-License-Identifier: BSD-2-Clause */
#include "tui/live.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define SLICES	      64 /* slices of 0.5 to 1 s each: more than LIVE_30S */
#define SLICE_NS      NUM_S
/* LIVE_ALL restarts empty beyond this size, so that memory stays bounded. */
#define ALL_MAX_BYTES (96u << 20)

struct slice {
	struct profile *profile;
	uint64_t ns;		/* duration */
	struct live_counters c; /* increments during the slice */
};

struct live {
	struct slice ring[SLICES]; /* ring[(first + i) % SLICES], oldest first */
	unsigned int first, n;
	struct slice all;
	struct profile *window;
	/* The previous all.profile, which may still be shown; NULL: none */
	struct profile *retired;
	struct live_counters last; /* counters at the start of the next slice */
	uint64_t last_ns;
};

struct live *live_new(void)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->all.profile = profile_new();
	l->window = profile_new();
	if (l->all.profile && l->window)
		return l;
	live_free(l);
	return NULL;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	for (unsigned int i = 0; i < SLICES; i++)
		profile_free(l->ring[i].profile);
	profile_free(l->all.profile);
	profile_free(l->window);
	profile_free(l->retired);
	free(l);
}

void live_mark(const struct live *l, const struct modules *ms)
{
	for (unsigned int i = 0; i < SLICES; i++)
		if (l->ring[i].profile)
			profile_mark(l->ring[i].profile, ms);
	profile_mark(l->all.profile, ms);
	profile_mark(l->window, ms);
	if (l->retired)
		profile_mark(l->retired, ms);
}

void live_start(struct live *l, const struct live_counters *now, uint64_t now_ns)
{
	l->last = *now;
	l->last_ns = now_ns;
}

void live_reset(struct live *l)
{
	for (unsigned int i = 0; i < SLICES; i++) {
		if (l->ring[i].profile)
			profile_reset(l->ring[i].profile);
	}
	l->first = l->n = 0;
	profile_reset(l->all.profile);
	l->all.ns = 0;
	l->all.c = (struct live_counters){ 0 };
}

static void add_counters(struct live_counters *to, const struct live_counters *c)
{
	to->taken += c->taken;
	to->cpu_ns += c->cpu_ns;
	to->bpf_ns += c->bpf_ns;
	to->sampled_ns += c->sampled_ns;
	to->lost_ns += c->lost_ns;
	for (int i = 0; i < SF_LOST_MAX; i++)
		to->lost[i] += c->lost[i];
}

static struct live_counters since(const struct live_counters *now, const struct live_counters *then)
{
	struct live_counters c = {
		.taken = now->taken - then->taken,
		.cpu_ns = now->cpu_ns - then->cpu_ns,
		.bpf_ns = now->bpf_ns - then->bpf_ns,
		.sampled_ns = now->sampled_ns - then->sampled_ns,
		.lost_ns = now->lost_ns - then->lost_ns,
	};

	for (int i = 0; i < SF_LOST_MAX; i++)
		c.lost[i] = now->lost[i] - then->lost[i];
	return c;
}

/*
 * The slice for the next ns of samples: the newest one if it stays within a second, else the next
 * one. NULL: out of memory.
 */
static struct slice *slice_for(struct live *l, uint64_t ns)
{
	struct slice *s;

	if (l->n) {
		s = &l->ring[(l->first + l->n - 1) % SLICES];
		if (s->ns + ns <= SLICE_NS)
			return s;
	}
	s = &l->ring[(l->first + l->n) % SLICES];
	if (!s->profile)
		s->profile = profile_new();
	if (!s->profile)
		return NULL;
	profile_reset(s->profile);
	s->ns = 0;
	s->c = (struct live_counters){ 0 };
	if (l->n < SLICES)
		l->n++;
	else
		l->first = (l->first + 1) % SLICES;
	return s;
}

static void add_slice(struct slice *s, const struct profile *p, const struct live_counters *c,
		      uint64_t ns)
{
	profile_merge(s->profile, p);
	add_counters(&s->c, c);
	s->ns += ns;
}

struct profile *live_take(struct live *l, struct profile *p, struct symbolizer *sz,
			  const struct live_counters *now, uint64_t now_ns, bool late)
{
	struct live_counters c = since(now, &l->last);
	uint64_t ns = now_ns - l->last_ns;
	struct slice *s;

	l->last = *now;
	l->last_ns = now_ns;
	/* Resolve names once, here: the merges below copy them. */
	for (size_t i = 0; i < profile_count(p); i++)
		profile_symbols(p, i, sz);
	if (profile_bytes(l->all.profile) > ALL_MAX_BYTES) {
		struct profile *fresh = profile_new();

		if (fresh) {
			if (l->retired) /* the screen shows the older profile */
				profile_free(l->all.profile);
			else
				l->retired = l->all.profile;
			l->all = (struct slice){ .profile = fresh };
		}
	}
	add_slice(&l->all, p, &c, ns);
	s = late ? NULL : slice_for(l, ns);
	if (s && s->ns) {
		add_slice(s, p, &c, ns);
	} else if (s) { /* a new slice: swap instead of copying */
		struct profile *empty = s->profile;

		*s = (struct slice){ p, ns, c };
		return empty;
	}
	profile_reset(p);
	return p;
}

static const uint64_t span_ns[LIVE_SPANS] = {
	[LIVE_5S] = 5 * SLICE_NS,
	[LIVE_30S] = 30 * SLICE_NS,
};

struct profile *live_window(struct live *l, enum live_span span, struct live_sum *ret)
{
	uint64_t ns = 0;

	*ret = (struct live_sum){ 0 };
	profile_free(l->retired);
	l->retired = NULL;
	if (span == LIVE_ALL) {
		ret->seconds = (double)l->all.ns / 1e9;
		ret->c = l->all.c;
		return l->all.profile;
	}
	profile_reset(l->window);
	for (unsigned int i = l->n; i-- > 0;) {
		const struct slice *s = &l->ring[(l->first + i) % SLICES];

		/* Include a slice that is half inside: slice ends jitter by milliseconds. */
		if (ns && ns + s->ns / 2 > span_ns[span])
			break;
		if (profile_merge(l->window, s->profile))
			return NULL;
		add_counters(&ret->c, &s->c);
		ns += s->ns;
	}
	ret->seconds = (double)ns / 1e9;
	return l->window;
}
