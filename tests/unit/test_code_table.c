/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/code_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "test.h"

#define N 3000

static struct code pieces[N];
static size_t npieces;

static void add(struct code_table *t, uint64_t start, uint64_t size, uint64_t time)
{
	char name[32];
	int len = snprintf(name, sizeof(name), "%zu", npieces);

	pieces[npieces++] = (struct code){ .start = start, .size = size, .time = time };
	EXPECT_EQ(code_table_add(t, pieces[npieces - 1], name, (size_t)len), 0);
}

static bool covers(size_t i, uint64_t addr)
{
	return addr >= pieces[i].start && addr - pieces[i].start < pieces[i].size;
}

/* The definition: the newest before `before`, of the first `n` of that time. -1: none. */
static int newest(uint64_t addr, uint64_t before)
{
	int best = -1;

	for (size_t i = 0; i < npieces; i++)
		if (covers(i, addr) && pieces[i].time < before &&
		    (best < 0 || pieces[i].time >= pieces[best].time))
			best = (int)i;
	return best;
}

static int by_definition(uint64_t addr, uint64_t from, uint64_t to)
{
	uint64_t end = to, most = 0;
	int best = newest(addr, to ? to : UINT64_MAX), c;

	if (!to)
		return best;
	for (c = best; c >= 0; c = newest(addr, pieces[c].time)) {
		uint64_t since = pieces[c].time > from ? pieces[c].time : from;

		if (end - since > most) {
			most = end - since;
			best = c;
		}
		end = pieces[c].time;
		if (end <= from)
			break;
	}
	for (size_t i = 0; i < npieces && best < 0; i++)
		if (covers(i, addr) && (c < 0 || pieces[i].time < pieces[c].time))
			c = (int)i;
	return best < 0 ? c : best;
}

static void compare(const struct code_table *t, uint64_t addr, uint64_t from, uint64_t to)
{
	const char *got = code_table_find(t, addr, from, to, NULL);

	EXPECT_EQ(got ? atoi(got) : -1, by_definition(addr, from, to));
}

static bool replaces(const struct code_table *t)
{
	for (size_t i = t->indexed; i < t->n; i++)
		for (size_t k = 0; k < i; k++)
			if (t->codes[k].start < t->codes[i].start + t->codes[i].size &&
			    t->codes[i].start < t->codes[k].start + t->codes[k].size)
				return true;
	return false;
}

static uint64_t below(uint64_t n)
{
	return (uint64_t)rand() % n;
}

/* Random pieces that overlap in all ways, in many parts, against the definition. */
TEST(code_table_random)
{
	srand(7);
	for (int round = 0; round < 20; round++) {
		struct code_table t = { 0 };
		uint64_t range = round % 2 ? 200 : 4000, times = round % 3 ? 50 : 5;
		bool cut;

		npieces = 0;
		while (npieces < (size_t)(round + 1) * 50) {
			for (int k = rand() % 40; k >= 0; k--)
				add(&t, below(range), 1 + below(rand() % 3 ? 20 : range),
				    1 + below(times));
			EXPECT_EQ(code_table_replaces(&t), replaces(&t));
			EXPECT_EQ(code_table_index(&t, 1 << 20, &cut), 0);
			EXPECT(!cut);
		}
		for (int k = 0; k < 400; k++) {
			uint64_t from = below(times);

			compare(&t, below(range + 30), 0, 0);
			compare(&t, below(range + 30), from, from + 1 + below(10));
		}
		code_table_free(&t);
	}
}

/* What was there before the first piece is not known, unless the piece's time may be late. */
TEST(code_table_late)
{
	struct code_table t = { .late = 10 };
	bool cut, several;

	npieces = 0;
	add(&t, 0x100, 0x10, 50);
	add(&t, 0x100, 0x10, 90);
	EXPECT_EQ(code_table_index(&t, 1 << 20, &cut), 0);
	EXPECT_STR(code_table_find(&t, 0x108, 30, 40, &several), "0");
	EXPECT(several);
	EXPECT_STR(code_table_find(&t, 0x108, 31, 41, &several), "0");
	EXPECT(!several);
	EXPECT_STR(code_table_find(&t, 0x108, 41, 51, &several), "0");
	EXPECT(!several);
	EXPECT_STR(code_table_find(&t, 0x108, 0, 0, &several), "1");
	EXPECT(!several);
	EXPECT(!code_table_find(&t, 0x110, 30, 40, &several));
	EXPECT(!several);
	t.late = 0;
	EXPECT_STR(code_table_find(&t, 0x108, 30, 40, &several), "0");
	EXPECT(!several);
	code_table_free(&t);
}

/* Edges of the address space, and pieces that are none. */
TEST(code_table_edges)
{
	struct code_table t = { 0 };
	bool cut;

	npieces = 0;
	EXPECT(!code_table_find(&t, 0, 0, 0, NULL));
	EXPECT_EQ(code_table_add(&t, (struct code){ .start = 5, .size = 0 }, "x", 1), 0);
	EXPECT_EQ(code_table_add(&t, (struct code){ .start = UINT64_MAX, .size = 1 }, "x", 1), 0);
	EXPECT_EQ(t.n, 0);
	add(&t, 0, 1, 1);
	add(&t, UINT64_MAX - 1, 1, 1);
	EXPECT_EQ(code_table_index(&t, 1 << 20, &cut), 0);
	compare(&t, 0, 0, 0);
	compare(&t, 1, 0, 0);
	compare(&t, UINT64_MAX - 1, 0, 0);
	compare(&t, UINT64_MAX, 0, 0);
	code_table_free(&t);
}

/* What does not fit leaves the older half, the quarter... of what was added. */
TEST(code_table_limit)
{
	struct code_table t = { 0 };
	size_t before;
	bool cut;

	npieces = 0;
	for (int i = 0; i < 1000; i++)
		add(&t, (uint64_t)i, 3000, 1);
	EXPECT_EQ(code_table_index(&t, 1 << 20, &cut), 0);
	EXPECT(!cut);
	before = code_table_bytes(&t);
	for (int i = 0; i < 2000; i++)
		add(&t, (uint64_t)i, (uint64_t)(6000 - 2 * i), 1);
	EXPECT_EQ(code_table_index(&t, before + before / 2, &cut), 0);
	EXPECT(cut);
	EXPECT(t.n >= 1000 && t.n < 2000 && t.n == t.indexed);
	EXPECT(code_table_bytes(&t) <= before + before / 2);
	npieces = t.n;
	for (uint64_t addr = 0; addr < 4000; addr += 7)
		compare(&t, addr, 0, 0);
	code_table_free(&t);
}

/* Each piece in its own read: the work stays near n log n, and the parts few. */
TEST(code_table_growth)
{
	struct code_table t = { 0 };
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool cut;

	for (uint64_t i = 0; i < 50000; i++) {
		struct code c = { .start = 16 * i, .size = 16 };

		EXPECT_EQ(code_table_add(&t, c, "f", 1), 0);
		EXPECT_EQ(code_table_index(&t, 64 << 20, &cut), 0);
		EXPECT(!cut && t.nparts <= 9);
	}
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	printf("# 50,000 reads of a piece each: %.0f ms\n", (double)start / 1e6);
	EXPECT(start < 20 * NUM_S);
	EXPECT(code_table_find(&t, 16 * 77, 0, 0, NULL));
	code_table_free(&t);
}
