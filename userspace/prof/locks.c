/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "prof/thread_look.h"

#define NAME_MOST 1024

static int lock_at(struct locks *l, uint32_t pid, const struct sf_off_lock *lock, uint32_t *ret)
{
	size_t before = l->lock_ids.n;

	if (vec_reserve(&l->list, &l->list_cap, before + 1, sizeof(*l->list)) ||
	    idmap_get(&l->lock_ids, lock->addr, pid, ret))
		return -ENOMEM;
	if (*ret == before)
		l->list[*ret] = (struct lock){ .pid = pid, .kind = lock->kind, .addr = lock->addr };
	return 0;
}

static int owner_of(struct locks *l, uint32_t pid, const struct sf_off_lock *lock, uint32_t *ret)
{
	size_t before = l->owner_ids.n;

	*ret = 0;
	if (lock->how == SF_OWNER_UNKNOWN)
		return 0;
	if (lock->how == SF_OWNER_WAKER || lock->how == SF_OWNER_KERNEL)
		pid = 0;
	if (vec_reserve(&l->owners, &l->owners_cap, before + 1, sizeof(*l->owners)) ||
	    idmap_get(&l->owner_ids, pid, lock->owner, ret))
		return -ENOMEM;
	if (*ret == before)
		l->owners[*ret] = (struct lock_owner){ .pid = pid, .tid = lock->owner };
	return 0;
}

void locks_add(struct locks *l, uint32_t pid, uint32_t stack, const struct sf_off_lock *lock,
	       const struct lock_sums *sums)
{
	uint32_t at, owner, id;
	size_t before = l->wait_ids.n;
	struct lock_wait *w;

	if (lock->kind != SF_LOCK_FUTEX)
		pid = 0;
	if (before >= LOCKS_MOST || lock_at(l, pid, lock, &at) || owner_of(l, pid, lock, &owner) ||
	    vec_reserve(&l->waits, &l->waits_cap, before + 1, sizeof(*l->waits)) ||
	    idmap_get(&l->wait_ids, (uint64_t)at << 32 | stack, (uint64_t)owner << 8 | lock->how,
		      &id)) {
		l->left_out += sums->count;
		return;
	}
	w = &l->waits[id];
	if (id == before)
		*w = (struct lock_wait){
			.lock = at, .stack = stack, .owner = owner, .how = lock->how
		};
	lock_sums_add(&w->sums, sums);
}

/* An unanswered question about one lock does not keep the others waiting. */
static void look_at(struct lock *k, locks_name_fn name_of, void *ctx)
{
	char name[NAME_MOST];
	int err = name_of(ctx, k, name, sizeof(name));

	k->looked = err != -EAGAIN;
	k->name = err ? NULL : strdup(name);
}

void locks_look(struct locks *l, locks_name_fn name_of, void *ctx, uint64_t most_ns)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + most_ns;

	for (; l->owners_seen < l->owner_ids.n && clock_ns(CLOCK_MONOTONIC) < end;
	     l->owners_seen++) {
		struct lock_owner *o = &l->owners[l->owners_seen];

		o->id = thread_look(o->pid, o->tid, o->comm);
	}
	for (size_t i = l->first_open; i < l->lock_ids.n && clock_ns(CLOCK_MONOTONIC) < end; i++)
		if (!l->list[i].looked)
			look_at(&l->list[i], name_of, ctx);
	while (l->first_open < l->lock_ids.n && l->list[l->first_open].looked)
		l->first_open++;
}

void locks_free(struct locks *l)
{
	for (size_t i = 0; i < l->lock_ids.n; i++)
		free(l->list[i].name);
	free(l->list);
	free(l->owners);
	free(l->waits);
	idmap_free(&l->lock_ids);
	idmap_free(&l->owner_ids);
	idmap_free(&l->wait_ids);
	*l = (struct locks){ .left_out = 0 };
}
