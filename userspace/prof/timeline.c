/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void timeline_free(struct timeline *t)
{
	free(t->list);
	free(t->blocks);
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

void timeline_add_block(struct timeline *t, const struct timeline_block *b)
{
	size_t max = t->max ? t->max : TIMELINE_BLOCK_BYTES / sizeof(*t->blocks);

	if (t->nblocks >= max ||
	    vec_reserve(&t->blocks, &t->blocks_cap, t->nblocks + 1, sizeof(*t->blocks))) {
		t->missing++;
		return;
	}
	t->blocks[t->nblocks++] = *b;
}

void timeline_tracks_free(struct timeline_tracks *t)
{
	free(t->list);
	free(t->marks);
	*t = (struct timeline_tracks){ 0 };
}

uint64_t timeline_begin(const struct timeline *t)
{
	uint64_t begin = t->start_ns;

	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].time_ns < begin)
			begin = t->list[i].time_ns;
	for (size_t i = 0; i < t->nblocks; i++)
		if (t->blocks[i].start_ns < begin)
			begin = t->blocks[i].start_ns;
	return begin;
}

/* ---- Marks ---- */

/* Threads in order: by process, the main thread first. */
static uint64_t thread_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | (tid == pid ? 0 : tid);
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct timeline_mark *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static int make_marks(const struct timeline *t, const struct profile *p,
		      const struct profile *wakers, struct timeline_tracks *ret)
{
	struct timeline_mark *m = malloc((3 * t->nblocks + 1) * sizeof(*m));
	struct profile_stack s;

	ret->marks = m;
	if (!m)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->nblocks; i++) {
		const struct timeline_block *b = &t->blocks[i];
		uint64_t thread;

		profile_stack(p, b->stack, &s);
		thread = thread_key(s.pid, b->tid);
		if (b->woken_ns > b->start_ns)
			*m++ = (struct timeline_mark){ thread, b->start_ns, b->woken_ns, i,
						       TIMELINE_BLOCKED };
		if (b->end_ns > b->woken_ns)
			*m++ = (struct timeline_mark){ thread, b->woken_ns, b->end_ns, i,
						       TIMELINE_RUNNABLE };
		if (!b->waker || !b->waker_tid)
			continue;
		profile_stack(wakers, b->waker - 1, &s);
		*m++ = (struct timeline_mark){ thread_key(s.pid, b->waker_tid), b->woken_ns,
					       b->woken_ns, i, TIMELINE_WAKES };
	}
	ret->nmarks = (size_t)(m - ret->marks);
	qsort(ret->marks, ret->nmarks, sizeof(*m), by_thread_and_time);
	return 0;
}

/* ---- Tracks ---- */

/* The track of a sample as a number. keys: by stack; NULL: the track is that of the CPU. */
static uint64_t key_of(const uint64_t *keys, const struct timeline_sample *s)
{
	return keys ? keys[s->stack] : s->cpu;
}

/* Equal times are ordered, too, so that the order does not depend on an earlier one. */
static int by_time(const void *a, const void *b)
{
	const struct timeline_sample *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int by_track(const void *a, const void *b, void *keys)
{
	const struct timeline_sample *x = a, *y = b;
	uint64_t kx = key_of(keys, x), ky = key_of(keys, y);

	if (kx != ky)
		return kx < ky ? -1 : 1;
	return by_time(x, y);
}

/* Sorts, then makes a track of each key that samples or marks have. */
static int split(struct timeline *t, uint64_t *keys, struct timeline_tracks *ret)
{
	size_t cap = 0, i = 0, m = 0;

	if (t->n)
		qsort_r(t->list, t->n, sizeof(*t->list), by_track, keys);
	while (i < t->n || m < ret->nmarks) {
		uint64_t a = i < t->n ? key_of(keys, &t->list[i]) : UINT64_MAX;
		uint64_t b = m < ret->nmarks ? ret->marks[m].thread : UINT64_MAX;
		uint64_t key = a < b ? a : b;
		struct timeline_track *k;

		if (vec_reserve(&ret->list, &cap, ret->n + 1, sizeof(*ret->list)))
			return -ENOMEM;
		k = &ret->list[ret->n++];
		*k = (struct timeline_track){ .first = i, .first_mark = m };
		while (i < t->n && key_of(keys, &t->list[i]) == key)
			i++;
		while (m < ret->nmarks && ret->marks[m].thread == key)
			m++;
		k->n = i - k->first;
		k->nmarks = m - k->first_mark;
	}
	return 0;
}

void timeline_by_time(struct timeline *t)
{
	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), by_time);
}

int timeline_by_cpu(struct timeline *t, struct timeline_tracks *ret)
{
	int err;

	*ret = (struct timeline_tracks){ 0 };
	err = split(t, NULL, ret);
	for (size_t i = 0; i < ret->n; i++)
		ret->list[i].tid = t->list[ret->list[i].first].cpu;
	return err;
}

/* Whose track it is, by its last sample or mark. */
static void name_track(const struct timeline *t, const struct profile *p,
		       const struct profile *wakers, const struct timeline_tracks *all,
		       struct timeline_track *k)
{
	const struct timeline_sample *last = k->n ? &t->list[k->first + k->n - 1] : NULL;
	const struct timeline_mark *m = k->nmarks ? &all->marks[k->first_mark + k->nmarks - 1]
						  : NULL;
	const struct timeline_block *b = m ? &t->blocks[m->block] : NULL;
	struct profile_stack s;

	if (last && (!m || last->time_ns >= m->end_ns)) {
		profile_stack(p, last->stack, &s);
		k->tid = s.tid;
	} else if (m->kind == TIMELINE_WAKES) {
		profile_stack(wakers, b->waker - 1, &s);
		k->tid = b->waker_tid;
	} else {
		profile_stack(p, b->stack, &s);
		k->tid = b->tid;
	}
	k->pid = s.pid;
	k->comm = s.comm;
}

int timeline_by_thread(struct timeline *t, const struct profile *p, const struct profile *wakers,
		       struct timeline_tracks *ret)
{
	uint64_t *keys = calloc(profile_count(p) + 1, sizeof(*keys));
	struct profile_stack s;
	int err = -ENOMEM;

	*ret = (struct timeline_tracks){ 0 };
	for (size_t i = 0; keys && i < profile_count(p); i++) {
		profile_stack(p, i, &s);
		keys[i] = thread_key(s.pid, s.tid);
	}
	if (keys)
		err = make_marks(t, p, wakers, ret);
	if (!err)
		err = split(t, keys, ret);
	free(keys);
	for (size_t i = 0; i < ret->n && !err; i++) {
		struct timeline_track *k = &ret->list[i], *before = i ? k - 1 : NULL;

		name_track(t, p, wakers, ret, k);
		k->process = before && before->pid == k->pid ? before->process : k->comm;
	}
	return err;
}
