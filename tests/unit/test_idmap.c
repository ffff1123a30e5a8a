/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/idmap.h"

#include "base/hash.h"

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
	/* The same words the other way round are another pair */
	EXPECT_EQ(idmap_get(&map, 1, 0, &id), 0);
	EXPECT_EQ(idmap_get(&map, 0, 1, &id), 0);
	EXPECT_EQ(id, 5001);
	idmap_free(&map);
	EXPECT_EQ(idmap_get(&map, 1, 0, &id), 0);
	EXPECT_EQ(id, 0);
	idmap_free(&map);
}

/* Numbers chosen so that all meet in one slot, by one who knows all but the run's key. */
TEST(hash_keyed)
{
	static bool met[4096];
	size_t chosen = 0, slots = 0;

	for (uint64_t i = 0; chosen < 3000; i++) {
		bool *slot = &met[hash_mix(0, i) & 4095];

		if (hash_fold(0, i) & 4095)
			continue;
		chosen++;
		slots += !*slot;
		*slot = true;
	}
	EXPECT(slots > 1500);
	EXPECT(hash_bytes("abcdefgh", 8) != hash_stable("abcdefgh", 8));
}
