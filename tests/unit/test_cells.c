/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/cells.h"

#include <stdlib.h>

#include "test.h"

#define N 4096u

TEST(cells_first_fit)
{
	struct cells c;

	EXPECT_EQ(cells_init(&c, 256), 0);
	EXPECT_EQ(cells_take(&c, 1), 0);
	EXPECT_EQ(cells_take(&c, 100), 1);
	EXPECT_EQ(cells_take(&c, 155), 101);
	EXPECT_EQ(c.used, 256);
	EXPECT_EQ(cells_take(&c, 1), CELLS_NONE);
	cells_give(&c, 1, 100);
	EXPECT_EQ(cells_take(&c, 101), CELLS_NONE);
	EXPECT_EQ(cells_take(&c, 64), 1);
	EXPECT_EQ(cells_take(&c, 36), 65);
	EXPECT_EQ(cells_take(&c, 1), CELLS_NONE);
	/* Neighbours that come back one by one are one run. */
	cells_give(&c, 65, 36);
	cells_give(&c, 0, 1);
	cells_give(&c, 1, 64);
	EXPECT_EQ(cells_take(&c, 101), 0);
	cells_fini(&c);
}

TEST(cells_of_everything)
{
	struct cells c;

	EXPECT_EQ(cells_init(&c, N), 0);
	EXPECT_EQ(cells_take(&c, N + 1), CELLS_NONE);
	EXPECT_EQ(cells_take(&c, N), 0);
	EXPECT_EQ(cells_take(&c, 1), CELLS_NONE);
	cells_give(&c, 0, N);
	EXPECT_EQ(c.used, 0);
	EXPECT_EQ(cells_take(&c, N), 0);
	cells_fini(&c);
}

/* Against a plain array: no cell is had twice, none is lost, and what fits is found. */
TEST(cells_random)
{
	static uint8_t owner[N];
	static struct {
		uint32_t start, len;
	} held[N];
	uint32_t n = 0, used = 0, seed = 1;
	struct cells c;

	EXPECT_EQ(cells_init(&c, N), 0);
	for (uint32_t step = 0; step < 200000; step++) {
		seed = seed * 1664525 + 1013904223;
		if (n && seed >> 31) {
			uint32_t i = (seed >> 8) % n;

			cells_give(&c, held[i].start, held[i].len);
			memset(owner + held[i].start, 0, held[i].len);
			used -= held[i].len;
			held[i] = held[--n];
		} else {
			uint32_t len = 1 + (seed >> 8) % (seed & 64 ? 200 : 5),
				 start = cells_take(&c, len), run = 0;

			for (uint32_t i = 0; i < N && run < len; i++)
				run = owner[i] ? 0 : run + 1;
			if ((start == CELLS_NONE) != (run < len)) {
				EXPECT_EQ(start == CELLS_NONE, run < len);
				break;
			}
			if (start == CELLS_NONE)
				continue;
			for (uint32_t i = start; i < start + len; i++)
				EXPECT_EQ(owner[i], 0);
			memset(owner + start, 1, len);
			held[n].start = start;
			held[n++].len = len;
			used += len;
		}
		EXPECT_EQ(c.used, used);
	}
	while (n) {
		n--;
		cells_give(&c, held[n].start, held[n].len);
	}
	EXPECT_EQ(cells_take(&c, N), 0);
	cells_fini(&c);
}
