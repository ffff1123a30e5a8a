/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file comes next: no user waits for all files of another, or for what they cost. */
#include "kern/load_queue.h"

#include "base/num.h"
#include "test.h"

#define SPENDER 1000
#define VICTIM	(SPENDER + 255 * 1024) /* the same modulo 255 and 1024 */

static enum load_pick ready(void *ctx, const struct load_job *job)
{
	return load_queue_may(ctx, job->need.owner) ? LOAD_READY : LOAD_PASS;
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
	push(&q, VICTIM, 1000);
	EXPECT(load_queue_may(&q, SPENDER));
	load_queue_spend(&q, SPENDER, 3600 * NUM_S);
	load_queue_spend(&q, 0, 3600 * NUM_S);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(next(&q), VICTIM);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(next(&q), 0);
	EXPECT_EQ(q.n, 3);
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
