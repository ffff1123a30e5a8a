/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/share.h"

#include <stdlib.h>

#include "test.h"

#define NOW 1000000u
#define HOT (NOW - 100)

TEST(share_levels)
{
	uint64_t fits[] = { 1, 2, 3 }, equal[] = { 50, 50 }, small[] = { 100, 10, 200 },
		 one[] = { 7 };

	EXPECT_EQ(share_level(fits, 3, 6), UINT64_MAX);
	EXPECT_EQ(share_level(equal, 2, 60), 30);
	/* Who needs 10 gets it, the others half of the rest */
	EXPECT_EQ(share_level(small, 3, 110), 50);
	EXPECT_EQ(share_level(one, 1, 5), 5);
	EXPECT_EQ(share_level(NULL, 0, 5), UINT64_MAX);
}

/* n items of one owner, last used at first, first + 1, ... */
static size_t add(struct share_item *items, size_t at, size_t n, uint32_t owner, uint64_t size,
		  uint64_t first)
{
	for (size_t i = 0; i < n; i++)
		items[at + i] = (struct share_item){
			.id = (uint32_t)(at + i), .owner = owner, .size = size, .last = first + i
		};
	return at + n;
}

TEST(share_least_recently_used)
{
	struct share_item items[10];
	struct share_request ask = { .owner = 1, .want = 25, .hot_since = HOT };
	size_t n = add(items, 0, 10, 1, 10, 500);

	for (size_t i = 0; i < 5; i++) { /* the order in which they come does not matter */
		struct share_item t = items[i];

		items[i] = items[9 - i];
		items[9 - i] = t;
	}
	EXPECT_EQ(share_choose(items, n, &ask), 3);
	EXPECT_EQ(items[0].id, 0);
	EXPECT_EQ(items[1].id, 1);
	EXPECT_EQ(items[2].id, 2);
}

TEST(share_in_use_stays)
{
	struct share_item items[10];
	struct share_request ask = { .owner = 1, .want = 1000, .hot_since = HOT };
	size_t n = add(items, 0, 4, 1, 10, 500);

	n = add(items, n, 6, 1, 10, NOW - 50);
	EXPECT_EQ(share_choose(items, n, &ask), 4);
	n = add(items, 0, 6, 1, 10, NOW - 50);
	EXPECT_EQ(share_choose(items, n, &ask), 0);
	EXPECT_EQ(share_choose(items, 0, &ask), 0);
}

/* One user has taken nearly everything, all of it in use; what the other holds is old. */
TEST(share_flood)
{
	static struct share_item items[1100];
	struct share_request flood = { .owner = 9, .want = 50, .hot_since = HOT },
			     other = { .owner = 1, .want = 50, .hot_since = HOT };
	size_t n = add(items, 0, 100, 1, 1, 500);
	long chosen;

	n = add(items, n, 1000, 9, 1, NOW - 99);
	EXPECT_EQ(share_choose(items, n, &flood), 0);
	chosen = share_choose(items, n, &other);
	EXPECT_EQ(chosen, 50);
	for (long i = 0; i < chosen; i++)
		EXPECT_EQ(items[i].owner, 9);
	/* Once its own are out of use, the flood gets room by them alone. */
	for (size_t i = 0; i < n; i++)
		if (items[i].owner == 9)
			items[i].last = 5000;
	chosen = share_choose(items, n, &flood);
	EXPECT_EQ(chosen, 50);
	for (long i = 0; i < chosen; i++)
		EXPECT_EQ(items[i].owner, 9);
}

/* The largest holders make room for a new one, down to a common level. */
TEST(share_for_no_user)
{
	static struct share_item items[700];
	struct share_request ask = { .owner = SHARE_NO_USER, .want = 300, .hot_since = HOT };
	uint32_t left[4] = { 0, 100, 200, 400 };
	size_t n = add(items, 0, 100, 1, 1, 1);
	long chosen;

	n = add(items, n, 200, 2, 1, 1000);
	n = add(items, n, 400, 3, 1, NOW - 10);
	chosen = share_choose(items, n, &ask);
	EXPECT_EQ(chosen, 300);
	for (long i = 0; i < chosen; i++)
		left[items[i].owner]--;
	EXPECT_EQ(left[1], 100);
	EXPECT_EQ(left[2], 150);
	EXPECT_EQ(left[3], 150);
}

/* Who is over his share and does not use it gives way to one who is over it, too, only by age. */
TEST(share_two_large_ones)
{
	static struct share_item items[300];
	struct share_request ask = { .owner = 2, .want = 5, .hot_since = HOT };
	size_t n = add(items, 0, 200, 1, 1, NOW - 50), i;
	long chosen;

	n = add(items, n, 100, 2, 1, 500);
	for (i = 0; i < 10; i++)
		items[i].last = 100 + i;
	chosen = share_choose(items, n, &ask);
	EXPECT_EQ(chosen, 5);
	for (long k = 0; k < chosen; k++)
		EXPECT_EQ(items[k].owner, 1);
}
