/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file comes next: no user waits for all files of another, or for what they cost. */
#include "kern/load_queue.h"

#include "base/num.h"
#include "test.h"

#define SPENDER 1000
#define VICTIM	(SPENDER + 255 * 1024) /* the same modulo 255 and 1024 */
#define OTHER	2000

static enum load_pick ready(void *ctx, const struct load_job *job)
{
	return load_queue_may(ctx, job->need.owner) ? LOAD_READY : LOAD_PUT_OFF;
}

static void push(struct load_queue *q, uint32_t owner, uint64_t size)
{
	static uint32_t pid;
	struct load_job job = { .need = { .owner = owner, .pid = ++pid, .size = size } };

	EXPECT(!load_queue_push(q, &job));
}

/* The owner of the next file; 1: there is none. */
static uint32_t next(struct load_queue *q)
{
	struct load_job job;

	if (!load_queue_next(q, ready, q, &job))
		return 1;
	load_queue_served(q, &job.need);
	return job.need.owner;
}

TEST(load_in_turns)
{
	struct load_queue q = { 0 };

	for (int i = 0; i < 100; i++)
		push(&q, SPENDER, 100);
	EXPECT_EQ(next(&q), SPENDER);
	push(&q, VICTIM, 1000);
	push(&q, VICTIM, 1000);
	push(&q, 0, 10000);
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(next(&q), SPENDER);
	EXPECT_EQ(next(&q), VICTIM);
	load_queue_free(&q);
}

TEST(load_costs)
{
	struct load_queue q = { 0 };

	for (int i = 0; i < 3; i++) {
		push(&q, SPENDER, 100);
		push(&q, 0, 1000);
	}
	push(&q, VICTIM, 2000);
	EXPECT(load_queue_may(&q, SPENDER));
	load_queue_spend(&q, SPENDER, 3600 * NUM_S);
	load_queue_spend(&q, 0, 3600 * NUM_S);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(q.n, 3);
	EXPECT_EQ(q.ready, 0);
	load_queue_free(&q);
}

/* As if that much time had passed. */
static void let_pass(struct load_queue *q, uint64_t ns)
{
	for (size_t i = 0; i < q->owners.n; i++)
		q->of_owner[i].since -= ns;
}

/* Files of users without CPU time are out of the way until their users have some again. */
TEST(load_put_off)
{
	struct load_queue q = { 0 };

	for (int i = 0; i < 10; i++)
		push(&q, SPENDER, 100);
	EXPECT(load_queue_may(&q, SPENDER));
	load_queue_spend(&q, SPENDER, 3600 * NUM_S);
	EXPECT_EQ(q.ready, 10);
	EXPECT_EQ(next(&q), 1);
	EXPECT_EQ(q.ready, 0);
	push(&q, VICTIM, 1000);
	push(&q, SPENDER, 10);
	push(&q, VICTIM, 1000);
	EXPECT_EQ(q.ready, 3);
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), 1);
	EXPECT_EQ(q.ready, 0);
	EXPECT_EQ(q.n, 11);

	let_pass(&q, 5 * NUM_S); /* 100 ms of CPU time: too little for a file */
	load_queue_readmit(&q);
	EXPECT_EQ(q.ready, 0);
	let_pass(&q, 10 * NUM_S);
	load_queue_readmit(&q);
	EXPECT_EQ(q.ready, 11);
	for (int i = 0; i < 11; i++)
		EXPECT_EQ(next(&q), SPENDER);
	EXPECT_EQ(q.n, 0);
	load_queue_free(&q);
}

static bool is_small(void *ctx, const struct load_job *job)
{
	const uint64_t *most = ctx;

	return job->need.size <= *most;
}

/* Jobs that nobody wants are dropped, in the round and out of it; the others keep their places. */
TEST(load_purge)
{
	struct load_queue q = { 0 };
	uint64_t most = 3;

	EXPECT(load_queue_may(&q, SPENDER));
	load_queue_spend(&q, SPENDER, 3600 * NUM_S);
	for (uint64_t size = 1; size <= 6; size++) {
		push(&q, SPENDER, size);
		push(&q, VICTIM, size);
	}
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(q.ready, 5);
	EXPECT_EQ(q.n, 11);
	load_queue_purge(&q, is_small, &most);
	EXPECT_EQ(q.ready, 2);
	EXPECT_EQ(q.n, 5);
	for (size_t i = 0; i < q.n; i++) {
		EXPECT(q.jobs[i].need.size <= most);
		EXPECT_EQ(q.jobs[i].need.owner, i < q.ready ? VICTIM : SPENDER);
	}
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), 1);
	most = 0;
	load_queue_purge(&q, is_small, &most);
	EXPECT_EQ(q.n, 0);
	EXPECT_EQ(next(&q), 1);
	load_queue_free(&q);
}

/* A file for which one user was first waits for the one who is served sooner. */
TEST(load_hand_over)
{
	struct sf_need need = { .module = 7, .owner = VICTIM, .pid = 9 };
	struct load_job job = { .need = { .module = 7, .owner = SPENDER, .pid = 8 } };
	struct load_queue q = { 0 };

	EXPECT(!load_queue_hand_over(&q, &need));
	EXPECT(load_queue_may(&q, SPENDER));
	load_queue_spend(&q, SPENDER, 3600 * NUM_S);
	EXPECT_EQ(load_queue_push(&q, &job), 0);
	EXPECT_EQ(next(&q), 1);
	EXPECT_EQ(q.ready, 0);
	EXPECT(load_queue_hand_over(&q, &need));
	EXPECT_EQ(q.ready, 1);
	/* Not back to a user who has no CPU time */
	EXPECT(!load_queue_hand_over(&q, &job.need));
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(q.n, 0);
	/* Both have CPU time: the one who was served longer ago */
	job.need.owner = OTHER;
	EXPECT_EQ(load_queue_push(&q, &job), 0);
	load_queue_served(&q, &need);
	EXPECT(!load_queue_hand_over(&q, &need));
	load_queue_served(&q, &job.need);
	EXPECT(load_queue_hand_over(&q, &need));
	load_queue_free(&q);
}

/* More users than are remembered. */
TEST(load_many_users)
{
	struct load_queue q = { 0 };

	for (uint32_t i = 0; i < 20000; i++)
		load_queue_spend(&q, 200000000 + i, NUM_S);
	EXPECT(load_queue_may(&q, VICTIM));
	EXPECT(q.owners.n < 10000);
	load_queue_free(&q);
}
