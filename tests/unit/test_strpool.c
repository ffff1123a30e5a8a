/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/strpool.h"

#include <stdlib.h>

#include "test.h"

TEST(strpool_interns)
{
	struct strpool *sp = strpool_new();
	const char *first;
	uint32_t id = 9;

	EXPECT_EQ(strpool_intern(sp, "abc", 3, &id), 0);
	EXPECT_EQ(id, 0);
	first = strpool_str(sp, 0);
	EXPECT_EQ(strpool_intern(sp, "", 0, &id), 0);
	EXPECT_EQ(id, 1);
	EXPECT_EQ(strpool_intern(sp, "abcd", 3, &id), 0);
	EXPECT_EQ(id, 0);
	for (int i = 0; i < 20000; i++) {
		char buf[32];
		int n = snprintf(buf, sizeof(buf), "name-%d", i);

		EXPECT_EQ(strpool_intern(sp, buf, (size_t)n, &id), 0);
		EXPECT_EQ(id, i + 2);
	}
	EXPECT_EQ(strpool_intern(sp, "name-12345", 10, &id), 0);
	EXPECT_EQ(id, 12347);
	EXPECT_STR(strpool_str(sp, 12347), "name-12345");
	EXPECT(strpool_str(sp, 0) == first); /* they never move */
	EXPECT_STR(first, "abc");
	EXPECT_STR(strpool_str(sp, 1), "");
	EXPECT_EQ(strpool_count(sp), 20002);
	EXPECT(strpool_bytes(sp) > 20002 * 9);
	strpool_free(sp);
	strpool_free(NULL);
}

TEST(strpool_holds_long_strings)
{
	struct strpool *sp = strpool_new();
	size_t n = 200000;
	char *big = malloc(n + 1);
	uint32_t id;

	memset(big, 'x', n);
	big[n] = 0;
	EXPECT_EQ(strpool_intern(sp, "a", 1, &id), 0);
	EXPECT_EQ(strpool_intern(sp, big, n, &id), 0);
	EXPECT_STR(strpool_str(sp, id), big);
	EXPECT_EQ(strpool_intern(sp, "b", 1, &id), 0);
	EXPECT_STR(strpool_str(sp, id), "b");
	free(big);
	strpool_free(sp);
}
