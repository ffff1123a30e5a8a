/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/load_queue.h"

#include <string.h>

#include "base/vec.h"

static uint64_t *owner_served(struct load_queue *q, uint32_t owner)
{
	return &q->owner_served[owner ? 1 + owner % (LOAD_OWNERS - 1) : 0];
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
	uint64_t a_last = *owner_served(q, a->owner), b_last = *owner_served(q, b->owner);

	if (a_last != b_last)
		return a_last < b_last;
	a_last = *pid_served(q, a->pid);
	b_last = *pid_served(q, b->pid);
	return a_last == b_last ? a->size < b->size : a_last < b_last;
}

int load_queue_push(struct load_queue *q, const struct load_job *job)
{
	int err = vec_reserve(&q->jobs, &q->cap, q->n + 1, sizeof(*q->jobs));

	if (!err)
		q->jobs[q->n++] = *job;
	return err;
}

bool load_queue_next(struct load_queue *q, load_pick_fn pick, void *ctx, struct load_job *ret)
{
	size_t best = SIZE_MAX;
	bool at_once = false;

	for (size_t i = 0; i < q->n && !at_once; i++) {
		enum load_pick how = pick(ctx, &q->jobs[i]);

		at_once = how == LOAD_AT_ONCE;
		if (at_once ||
		    (how == LOAD_READY &&
		     (best == SIZE_MAX || before(q, &q->jobs[i].need, &q->jobs[best].need))))
			best = i;
	}
	if (best == SIZE_MAX)
		return false;
	*ret = q->jobs[best];
	memmove(q->jobs + best, q->jobs + best + 1, (--q->n - best) * sizeof(*q->jobs));
	return true;
}

void load_queue_served(struct load_queue *q, const struct sf_need *need)
{
	*owner_served(q, need->owner) = *pid_served(q, need->pid) = ++q->served;
}
