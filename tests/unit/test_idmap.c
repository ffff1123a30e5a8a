/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/idmap.h"

#include "test.h"

TEST(idmap)
{
	struct idmap map = { 0 };
	uint32_t id;

	for (uint32_t round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 5000; i++) {
			EXPECT_EQ(idmap_get(&map, i % 7, i << 40, &id), 0);
			EXPECT_EQ(id, i);
		}
		EXPECT_EQ(map.n, 5000);
	}
	EXPECT_EQ(idmap_get(&map, 1, 0, &id), 0);	/* the same words the other way round are another pair */
	EXPECT_EQ(idmap_get(&map, 0, 1, &id), 0);
	EXPECT_EQ(id, 5001);
	idmap_free(&map);
	EXPECT_EQ(idmap_get(&map, 1, 0, &id), 0);
	EXPECT_EQ(id, 0);
	idmap_free(&map);
}
