/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/module.h"

#include <stdlib.h>

#include "test.h"

#define FRAME(id) \
	(SF_FRAME_ROW << SF_FRAME_KIND_SHIFT | (uint64_t)(id) << SF_FRAME_MODULE_SHIFT | 0x10)

TEST(modules_ids)
{
	struct modules *ms = modules_new();
	struct module *a = modules_get(ms, 5), *b = modules_get(ms, 5 + SF_MAX_MODULES);

	EXPECT(a && b && a != b);
	EXPECT(modules_get(ms, 5) == a);
	EXPECT(modules_find(ms, 5) == a);
	EXPECT(modules_find(ms, 5 + SF_MAX_MODULES) == b);
	EXPECT(!modules_find(ms, 5 + 2 * SF_MAX_MODULES));
	EXPECT(!modules_find(ms, 6));
	EXPECT(!modules_get(ms, (uint32_t)SF_FRAME_MODULE_MASK + 1));
	EXPECT(modules_get(ms, (uint32_t)SF_FRAME_MODULE_MASK) != NULL);
	EXPECT_EQ(modules_count(ms), 3);
	EXPECT(modules_at(ms, 0) == a && modules_at(ms, 1) == b && !modules_at(ms, 3));
	modules_free(ms);
}

TEST(modules_retire)
{
	struct modules *ms = modules_new();
	uint64_t retired;

	modules_get(ms, 1);
	modules_get(ms, 2);
	modules_get(ms, 3);
	modules_mark(ms, FRAME(2));
	modules_get(ms, 3)->state = FILE_PUBLISHED;
	modules_lost(ms, 3, EVENT_EVICTED); /* its tables alone */
	EXPECT_EQ(modules_find(ms, 3)->state, FILE_EVICTED);
	modules_lost(ms, 1, EVENT_ID_REUSED);
	modules_lost(ms, 2, EVENT_ID_REUSED);
	modules_lost(ms, 2, EVENT_ID_REUSED); /* once is enough */
	retired = modules_retired(ms);
	EXPECT_EQ(retired, 2);
	EXPECT_EQ(modules_sweep(ms), 2); /* their samples may still be on the way */
	EXPECT(modules_find(ms, 1) != NULL);
	modules_drained(ms, retired);
	modules_get(ms, 1 + SF_MAX_MODULES);
	EXPECT_EQ(modules_sweep(ms), 1);
	EXPECT(!modules_find(ms, 1));
	EXPECT(modules_find(ms, 1 + SF_MAX_MODULES) != NULL);
	EXPECT(modules_find(ms, 2) != NULL && modules_find(ms, 3) != NULL);
	modules_unmark(ms);
	modules_find(ms, 2)->has_symbols = true;
	EXPECT_EQ(modules_sweep(ms), 1);
	modules_find(ms, 2)->has_symbols = false;
	EXPECT_EQ(modules_sweep(ms), 0);
	EXPECT(!modules_find(ms, 2));
	EXPECT(modules_next_retired(ms, NULL) == NULL);
	modules_free(ms);
}

/*
 * A million files one after the other, each of them seen and forgotten: no more than a few are
 * known at a time.
 */
TEST(modules_churn)
{
	struct modules *ms = modules_new();

	for (uint32_t id = 1; id < 1000000; id++) {
		if (!modules_get(ms, id)) {
			EXPECT(false);
			break;
		}
		modules_mark(ms, FRAME(id));
		modules_lost(ms, id, EVENT_ID_REUSED);
		modules_drained(ms, modules_retired(ms));
		if (id % 1000 == 0) {
			EXPECT_EQ(modules_sweep(ms), 1000);
			modules_unmark(ms);
			EXPECT_EQ(modules_sweep(ms), 0);
		}
	}
	EXPECT_EQ(modules_count(ms), 1000);
	modules_free(ms);
}
