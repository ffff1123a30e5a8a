/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void timeline_free(struct timeline *t)
{
	free(t->list);
	*t = (struct timeline){ 0 };
}

void timeline_add(struct timeline *t, uint64_t time_ns, uint32_t cpu, size_t stack)
{
	size_t max = t->max ? t->max : TIMELINE_BYTES / sizeof(*t->list);

	if (t->n >= max || vec_reserve(&t->list, &t->cap, t->n + 1, sizeof(*t->list))) {
		t->dropped++;
		return;
	}
	t->list[t->n++] = (struct timeline_sample){ time_ns, (uint32_t)stack, cpu };
}

uint64_t timeline_begin(const struct timeline *t)
{
	uint64_t begin = t->start_ns;

	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].time_ns < begin)
			begin = t->list[i].time_ns;
	return begin;
}

/* ---- Tracks ---- */

/* The track of a sample as a number. keys: by stack; NULL: the track is that of the CPU. */
static uint64_t key_of(const uint64_t *keys, const struct timeline_sample *s)
{
	return keys ? keys[s->stack] : s->cpu;
}

static int by_track(const void *a, const void *b, void *keys)
{
	const struct timeline_sample *x = a, *y = b;
	uint64_t kx = key_of(keys, x), ky = key_of(keys, y);

	if (kx != ky)
		return kx < ky ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Sorts, then makes a track of each run of samples with one key. */
static int split(struct timeline *t, uint64_t *keys, struct timeline_tracks *ret)
{
	size_t cap = 0;

	*ret = (struct timeline_tracks){ 0 };
	if (t->n)
		qsort_r(t->list, t->n, sizeof(*t->list), by_track, keys);
	for (size_t i = 0; i < t->n; i++) {
		if (i && key_of(keys, &t->list[i]) == key_of(keys, &t->list[i - 1])) {
			ret->list[ret->n - 1].n++;
			continue;
		}
		if (vec_reserve(&ret->list, &cap, ret->n + 1, sizeof(*ret->list))) {
			free(ret->list);
			*ret = (struct timeline_tracks){ 0 };
			return -ENOMEM;
		}
		ret->list[ret->n++] = (struct timeline_track){ .first = i, .n = 1 };
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct timeline_sample *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

void timeline_by_time(struct timeline *t)
{
	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), by_time);
}

int timeline_by_cpu(struct timeline *t, struct timeline_tracks *ret)
{
	int err = split(t, NULL, ret);

	for (size_t i = 0; i < ret->n; i++)
		ret->list[i].tid = t->list[ret->list[i].first].cpu;
	return err;
}

int timeline_by_thread(struct timeline *t, const struct profile *p, struct timeline_tracks *ret)
{
	uint64_t *keys = calloc(profile_count(p) + 1, sizeof(*keys));
	struct profile_stack s;
	int err = -ENOMEM;

	*ret = (struct timeline_tracks){ 0 };
	for (size_t i = 0; keys && i < profile_count(p); i++) {
		profile_stack(p, i, &s);
		keys[i] = (uint64_t)s.pid << 32 | (s.tid == s.pid ? 0 : s.tid);
	}
	if (keys)
		err = split(t, keys, ret);
	free(keys);
	for (size_t i = 0; i < ret->n; i++) {
		struct timeline_track *k = &ret->list[i], *before = i ? k - 1 : NULL;

		profile_stack(p, t->list[k->first + k->n - 1].stack, &s);
		k->pid = s.pid;
		k->tid = s.tid;
		k->comm = s.comm;
		k->process = before && before->pid == k->pid ? before->process : k->comm;
	}
	return err;
}
