/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/load_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/user_account.h"
#include "base/vec.h"

/* CPU time of workers for the files of a user other than root: of one CPU, and what is saved */
#define CPU_SHARE    50
#define CPU_NS	     (20 * NUM_S)
#define CPU_LEAST_NS (250 * NUM_MS) /* no file is read with less left */
#define OWNERS_MOST  4096

/* The entry of a user; valid until the next call. */
static struct load_owner *owner_of(struct load_queue *q, uint32_t owner)
{
	static struct load_owner none;
	size_t before;
	uint32_t id;

	if (q->owners.n >= OWNERS_MOST) /* far more than are served at a time */
		idmap_reset(&q->owners);
	before = q->owners.n;
	if (vec_reserve(&q->of_owner, &q->owners_cap, before + 1, sizeof(none)) ||
	    idmap_get(&q->owners, user_account(owner), 0, &id))
		return &none;
	if (id == before)
		q->of_owner[id] = (struct load_owner){ .cpu_ns = CPU_NS };
	return &q->of_owner[id];
}

static uint64_t owner_served(struct load_queue *q, uint32_t owner)
{
	return owner_of(q, owner)->served;
}

bool load_queue_may(struct load_queue *q, uint32_t owner)
{
	struct load_owner *o = owner_of(q, owner);
	uint64_t now = clock_ns(CLOCK_MONOTONIC), more = (now - o->since) / CPU_SHARE;

	o->cpu_ns = more < CPU_NS - o->cpu_ns ? o->cpu_ns + more : CPU_NS;
	o->since = now;
	return !owner || o->cpu_ns >= CPU_LEAST_NS;
}

void load_queue_spend(struct load_queue *q, uint32_t owner, uint64_t cpu_ns)
{
	struct load_owner *o = owner_of(q, owner);

	o->cpu_ns -= cpu_ns < o->cpu_ns ? cpu_ns : o->cpu_ns;
}

static uint64_t *pid_served(struct load_queue *q, uint32_t pid)
{
	return &q->pid_served[pid % LOAD_PIDS];
}

/*
 * Round robin among users, then among a user's processes. A user does not wait for all files of
 * another user, or for a file that is rewritten again and again and counts as a new file each time.
 * Among the files of a process, the smallest comes first: a short-lived program must not wait for a
 * compiler's libraries, which take a hundred times as long.
 */
static bool before(struct load_queue *q, const struct sf_need *a, const struct sf_need *b)
{
	uint64_t a_last = owner_served(q, a->owner), b_last = owner_served(q, b->owner);

	if (a_last != b_last)
		return a_last < b_last;
	a_last = *pid_served(q, a->pid);
	b_last = *pid_served(q, b->pid);
	return a_last == b_last ? a->size < b->size : a_last < b_last;
}

static void swap(struct load_queue *q, size_t a, size_t b)
{
	struct load_job job = q->jobs[a];

	q->jobs[a] = q->jobs[b];
	q->jobs[b] = job;
}

int load_queue_push(struct load_queue *q, const struct load_job *job)
{
	int err = vec_reserve(&q->jobs, &q->cap, q->n + 1, sizeof(*q->jobs));

	if (!err) {
		q->jobs[q->n++] = *job;
		swap(q, q->ready++, q->n - 1);
	}
	return err;
}

bool load_queue_next(struct load_queue *q, load_pick_fn pick, void *ctx, struct load_job *ret)
{
	size_t best = SIZE_MAX, i = 0;
	bool at_once = false;

	while (i < q->ready && !at_once) {
		enum load_pick how = pick(ctx, &q->jobs[i]);

		if (how == LOAD_PUT_OFF) { /* the job that takes its place is next */
			swap(q, i, --q->ready);
			continue;
		}
		at_once = how == LOAD_AT_ONCE;
		if (at_once ||
		    (how == LOAD_READY &&
		     (best == SIZE_MAX || before(q, &q->jobs[i].need, &q->jobs[best].need))))
			best = i;
		i++;
	}
	if (best == SIZE_MAX)
		return false;
	*ret = q->jobs[best];
	memmove(q->jobs + best, q->jobs + best + 1, (--q->ready - best) * sizeof(*q->jobs));
	q->jobs[q->ready] = q->jobs[--q->n]; /* the order of those that are put off is free */
	return true;
}

bool load_queue_hand_over(struct load_queue *q, const struct sf_need *need)
{
	size_t i = 0;

	while (i < q->n && (q->jobs[i].need.module != need->module || q->jobs[i].code))
		i++;
	if (i == q->n || !load_queue_may(q, need->owner) ||
	    (load_queue_may(q, q->jobs[i].need.owner) && !before(q, need, &q->jobs[i].need)))
		return false;
	q->jobs[i].need = *need;
	if (i >= q->ready)
		swap(q, i, q->ready++);
	return true;
}

void load_queue_readmit(struct load_queue *q)
{
	for (size_t i = q->ready; i < q->n; i++)
		if (load_queue_may(q, q->jobs[i].need.owner))
			swap(q, i, q->ready++);
}

void load_queue_purge(struct load_queue *q, bool (*wanted)(void *ctx, const struct load_job *job),
		      void *ctx)
{
	size_t ready = 0, n = 0;

	for (size_t i = 0; i < q->n; i++) {
		if (!wanted(ctx, &q->jobs[i]))
			continue;
		ready += i < q->ready;
		q->jobs[n++] = q->jobs[i];
	}
	q->ready = ready;
	q->n = n;
}

void load_queue_served(struct load_queue *q, const struct sf_need *need)
{
	owner_of(q, need->owner)->served = *pid_served(q, need->pid) = ++q->served;
}

void load_queue_free(struct load_queue *q)
{
	free(q->jobs);
	free(q->of_owner);
	idmap_free(&q->owners);
}
