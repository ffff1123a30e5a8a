/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "kern/offcpu_internal.h"

static size_t record_size(const struct sf_sample *rec)
{
	return sizeof(*rec) + 8ul * ((size_t)rec->n_user + rec->n_kernel);
}

static const struct sf_sample *record_of(const struct off_stack *k)
{
	return (const struct sf_sample *)(k + 1);
}

static struct off_stack *find(const struct off_stacks *t, uint64_t hash)
{
	uint32_t id;

	return idmap_find(&t->ids, hash, 0, &id) ? t->v[id] : NULL;
}

/*
 * The place for the stack of a hash; it contains NULL if the hash is new. Returns NULL if out of
 * memory.
 */
static struct off_stack **place(struct off_stacks *t, uint64_t hash)
{
	size_t n = t->ids.n;
	uint32_t id;

	if (vec_reserve(&t->v, &t->cap, n + 1, sizeof(struct off_stack *)) ||
	    idmap_get(&t->ids, hash, 0, &id))
		return NULL;
	if (id == n)
		t->v[id] = NULL;
	return &t->v[id];
}

static void free_index(struct off_stacks *t)
{
	idmap_free(&t->ids);
	free(t->v);
	*t = (struct off_stacks){ 0 };
}

void offcpu_stacks_free(struct offcpu *off)
{
	for (size_t i = 0; i < off->stacks.ids.n; i++)
		free(off->stacks.v[i]);
	free_index(&off->stacks);
	for (size_t i = 0; off->transient && i < TRANSIENT_PLACES; i++)
		free(off->transient[i].rec);
	free(off->transient);
}

static void keep_transient(struct offcpu *off, const struct sf_sample *rec)
{
	size_t len = record_size(rec);
	struct off_transient *u;

	if (!off->transient)
		off->transient = calloc(TRANSIENT_PLACES, sizeof(*off->transient));
	if (!off->transient)
		return;
	u = &off->transient[rec->tid % TRANSIENT_PLACES];
	if (len > u->cap) {
		free(u->rec);
		u->rec = malloc(len);
		u->cap = u->rec ? len : 0;
	}
	if (!u->rec)
		return;
	memcpy(u->rec, rec, len);
	u->rec->flags &= (uint8_t)~SF_SAMPLE_TRANSIENT;
}

void offcpu_keep(struct offcpu *off, const struct sf_sample *rec)
{
	size_t len = record_size(rec);
	struct off_stack **at;

	if (rec->flags & SF_SAMPLE_TRANSIENT) {
		keep_transient(off, rec);
		return;
	}
	at = place(&off->stacks, rec->hash);
	if (!at)
		return;
	if (!*at && (*at = malloc(sizeof(**at) + len)))
		memcpy(*at + 1, rec, len);
	if (*at)
		(*at)->generation = off->generation;
}

const struct sf_sample *offcpu_stack(const struct offcpu *off, uint64_t hash)
{
	struct off_stack *k = hash ? find(&off->stacks, hash) : NULL;

	return k ? record_of(k) : NULL;
}

void offcpu_mark(const struct offcpu *off, const struct modules *ms)
{
	for (size_t i = 0; i < off->stacks.ids.n; i++) {
		const struct off_stack *k = off->stacks.v[i];

		for (size_t n = 0; k && n < record_of(k)->n_user; n++)
			modules_mark(ms, record_of(k)->frames[n]);
	}
}

const struct sf_sample *offcpu_missing_stack(struct sf_sample *rec, uint64_t hash, uint32_t pid,
					     const char *comm)
{
	*rec = (struct sf_sample){
		.type = SF_REC_STACK,
		.pid = pid,
		.tid = 0, /* not known; a thread with this comm */
		.flags = SF_SAMPLE_USER | SF_SAMPLE_IN_KERNEL,
		.stop = hash == SF_STACK_UNKNOWN ? SF_STOP_ASLEEP : SF_STOP_RING_FULL,
	};
	memcpy(rec->comm, comm, sizeof(rec->comm));
	return rec;
}

const struct sf_sample *offcpu_stack_of(const struct offcpu *off, const struct sf_sample *rec,
					struct sf_sample *none)
{
	const struct sf_sample *stack;

	if (!(rec->flags & SF_SAMPLE_BY_HASH))
		return rec;
	stack = offcpu_stack(off, rec->hash);
	if (!stack && off->transient)
		stack = off->transient[rec->tid % TRANSIENT_PLACES].rec;
	if (stack && stack->hash == rec->hash)
		return stack;
	return offcpu_missing_stack(none, rec->hash, rec->pid, rec->comm);
}

void offcpu_stacks_held(struct offcpu *off, const uint64_t *hashes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct off_stack *k = hashes[i] ? find(&off->stacks, hashes[i]) : NULL;

		if (k)
			k->generation = off->generation;
	}
}

/*
 * A stack that was sent in the last generation and that no thread holds any more may still be used
 * by counts of the current one, so it is kept for one more generation.
 */
static bool stays(const struct offcpu *off, const struct off_stack *k)
{
	return k->generation + 1 >= off->generation;
}

int offcpu_stacks_drop(struct offcpu *off)
{
	int fd = bpf_map__fd(off->skel->maps.off_stacks);
	struct off_stacks old = off->stacks, left = { 0 };

	for (size_t i = 0; i < old.ids.n; i++) {
		struct off_stack **to, *k = old.v[i];

		if (!k || !stays(off, k))
			continue;
		to = place(&left, old.ids.keys[i].a);
		if (!to) {
			free_index(&left);
			return -ENOMEM;
		}
		*to = k;
	}
	for (size_t i = 0; i < old.ids.n; i++) {
		if (!old.v[i] || stays(off, old.v[i]))
			continue;
		bpf_map_delete_elem(fd, &old.ids.keys[i].a);
		free(old.v[i]);
	}
	free_index(&old);
	off->stacks = left;
	off->held = left.ids.n;
	return 0;
}
