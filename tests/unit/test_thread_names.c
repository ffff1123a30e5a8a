/* SPDX-License-Identifier: BSD-2-Clause */
/* Common names of threads: which ones get one, in stacks by name as well. */
#include <string.h>

#include "prof/common_threads.h"
#include "prof/stackset.h"
#include "prof/thread_names.h"
#include "test.h"

static const char *common(const struct thread_names *t, uint32_t pid, const char *name)
{
	static char buf[THREAD_NAME_MAX];

	return thread_names_common(t, pid, name, buf) ? buf : name;
}

TEST(names)
{
	static const char *const pool[] = { "pool-1-thread-1", "pool-1-thread-17",
					    "pool-2-thread-3" };
	struct thread_names t = { 0 };

	for (int turn = 0; turn < 2; turn++) /* a name counts once */
		for (size_t i = 0; i < 2; i++)
			EXPECT_EQ(thread_names_add(&t, 7, pool[i]), 0);
	EXPECT_STR(common(&t, 7, pool[0]), pool[0]);
	EXPECT_EQ(thread_names_add(&t, 7, pool[2]), 0);
	EXPECT_EQ(thread_names_add(&t, 8, "pool-9-thread-9"), 0);
	for (size_t i = 0; i < 3; i++)
		EXPECT_STR(common(&t, 7, pool[i]), "pool-N-thread-N");
	/* Another process, a name that was not added, one without a number, no process */
	EXPECT_STR(common(&t, 8, "pool-9-thread-9"), "pool-9-thread-9");
	EXPECT_STR(common(&t, 7, "pool-3-thread-4"), "pool-3-thread-4");
	EXPECT_EQ(thread_names_add(&t, 7, "pool"), 0);
	EXPECT_STR(common(&t, 7, "pool"), "pool");
	EXPECT_EQ(thread_names_add(&t, 0, pool[0]), 0);
	EXPECT_STR(common(&t, 0, pool[0]), pool[0]);
	thread_names_free(&t);
}

static void add(struct stackset *ss, const char *root, uint32_t pid, const char *thread,
		const char *leaf, enum stack_side side, uint64_t value)
{
	uint32_t path[2], n = 0;

	if (thread)
		EXPECT_EQ(stackset_frame(ss, thread, strlen(thread), "", STACK_NOTE, &path[n++]),
			  0);
	EXPECT_EQ(stackset_frame(ss, leaf, strlen(leaf), "", STACK_USER, &path[n++]), 0);
	EXPECT_EQ(stackset_add(ss, root, pid, path, n, side, value), 0);
}

/* The value of a leaf; 0: there is none. first: the name of its first frame */
static uint64_t value_of(const struct stackset *ss, const char *root, const char *first,
			 enum stack_side side)
{
	uint64_t sum = 0;

	for (size_t l = 0; l < ss->leaves.n; l++) {
		const struct idmap_key *leaf = &ss->leaves.keys[l],
				       *node = &ss->nodes.keys[leaf->a];

		while (node->a != STACK_ROOT)
			node = &ss->nodes.keys[node->a];
		if (!strcmp(strpool_str(ss->strings, (uint32_t)ss->groups.keys[leaf->b].a), root) &&
		    !strcmp(stackset_frame_name(ss, (uint32_t)node->b), first))
			sum += ss->values[l][side];
	}
	return sum;
}

TEST(stacks_by_thread)
{
	struct stackset ss;

	EXPECT_EQ(stackset_init(&ss), 0);
	ss.choice.by = STACK_BY_THREAD;
	add(&ss, "w1", 5, NULL, "f", STACK_AFTER, 1);
	add(&ss, "w2", 5, NULL, "f", STACK_AFTER, 2);
	add(&ss, "w3", 5, NULL, "f", STACK_BEFORE, 4);
	add(&ss, "w3", 6, NULL, "f", STACK_AFTER, 8);  /* alone in its process */
	add(&ss, "w3", 0, NULL, "f", STACK_AFTER, 16); /* of an unknown one */
	EXPECT_EQ(stackset_common_threads(&ss), 0);
	EXPECT_EQ(value_of(&ss, "wN", "f", STACK_AFTER), 3);
	EXPECT_EQ(value_of(&ss, "wN", "f", STACK_BEFORE), 4);
	EXPECT_EQ(value_of(&ss, "w3", "f", STACK_AFTER), 24);
	EXPECT_EQ(ss.leaves.n, 3);
	EXPECT_EQ(ss.totals[STACK_AFTER], 27);
	EXPECT_EQ(ss.totals[STACK_BEFORE], 4);
	stackset_free(&ss);
}

TEST(stacks_by_process)
{
	struct stackset ss;

	EXPECT_EQ(stackset_init(&ss), 0);
	ss.choice.by = STACK_BY_PROCESS;
	add(&ss, "p1", 5, NULL, "f", STACK_AFTER, 1); /* its main thread */
	for (int i = 1; i <= 3; i++) {
		char name[16];

		snprintf(name, sizeof(name), "w%d", i);
		add(&ss, "p1", 5, name, "f", STACK_AFTER, 10);
	}
	add(&ss, "p2", 6, NULL, "f", STACK_AFTER, 1);
	add(&ss, "p3", 7, NULL, "f", STACK_AFTER, 1);
	EXPECT_EQ(stackset_common_threads(&ss), 0);
	EXPECT_EQ(value_of(&ss, "p1", "wN", STACK_AFTER), 30);
	EXPECT_EQ(value_of(&ss, "p1", "f", STACK_AFTER), 1);
	EXPECT_EQ(value_of(&ss, "p2", "f", STACK_AFTER), 1);
	stackset_free(&ss);
}
