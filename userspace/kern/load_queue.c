/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/load_queue.h"

#include <string.h>

#include "base/vec.h"

static uint64_t *turn_of(struct load_queue *q, uint32_t owner)
{
	return &q->turns[owner ? 1 + owner % (LOAD_OWNERS - 1) : 0];
}

static uint64_t *pid_turn_of(struct load_queue *q, uint32_t pid)
{
	return &q->pid_turns[pid % LOAD_PIDS];
}

/*
 * Users take turns, and so do a user's processes: nobody waits for all the files of somebody else, nor for a file that becomes
 * another one each time that it is rewritten. Of a process's files, the smallest: a short-lived program must not wait
 * for a compiler's libraries, which take a hundred times as long.
 */
static bool before(struct load_queue *q, const struct sf_need *a, const struct sf_need *b)
{
	uint64_t a_turn = *turn_of(q, a->owner), b_turn = *turn_of(q, b->owner);

	if (a_turn != b_turn)
		return a_turn < b_turn;
	a_turn = *pid_turn_of(q, a->pid);
	b_turn = *pid_turn_of(q, b->pid);
	return a_turn == b_turn ? a->size < b->size : a_turn < b_turn;
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
		if (at_once || (how == LOAD_READY && (best == SIZE_MAX || before(q, &q->jobs[i].need, &q->jobs[best].need))))
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
	*turn_of(q, need->owner) = ++q->turn;
	*pid_turn_of(q, need->pid) = q->turn;
}
