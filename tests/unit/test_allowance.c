/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose time the naming thread spends: what one user spends is not missing to another. */
#include "worker/allowance.h"

#include "base/clock.h"
#include "base/user_account.h"
#include "test.h"

#define VICTIM 1001

/* Spends all that the user has, as it comes. */
static uint64_t spend_all(struct allowance *p, uint32_t owner)
{
	uint64_t sum = 0, ns;

	while ((ns = allowance_have(p, owner))) {
		allowance_spend(p, owner, ns);
		sum += ns;
	}
	return sum;
}

/* Users whose numbers are the victim's, modulo any small number of entries, spend all they have. */
TEST(allowance_of_each_user)
{
	struct allowance p;
	uint64_t sum = 0;

	allowance_init(&p);
	for (uint32_t k = 1; k <= 16; k++)
		sum += spend_all(&p, VICTIM + k * 255 * 64);
	EXPECT(sum < 8 * NUM_S); /* 3 s for all, 0.25 s for each */
	EXPECT(allowance_have(&p, VICTIM) >= 200 * NUM_MS);
	allowance_spend(&p, VICTIM, 50 * NUM_MS);
	EXPECT(allowance_have(&p, VICTIM) >= 150 * NUM_MS);
	EXPECT(allowance_have(&p, 0) == ALLOWANCE_MOST_NS);
	spend_all(&p, VICTIM);
	EXPECT_EQ(allowance_have(&p, VICTIM), 0);
	EXPECT(allowance_have(&p, VICTIM + 1) >= 200 * NUM_MS);
}

/* However many users spend what they can, the whole is bounded. */
TEST(allowance_of_many_users)
{
	struct allowance p;
	uint64_t sum = 0;

	allowance_init(&p);
	for (uint32_t k = 0; k < 100000; k++)
		sum += spend_all(&p, 200000000 + k);
	EXPECT(sum < 3 * NUM_S + (ALLOWANCE_USERS + 1) * ALLOWANCE_LEAST_NS);
}

/* The end is after ALLOWANCE_END_NS, on a busy machine too; others cannot spend all of it. */
TEST(allowance_at_end)
{
	struct allowance p;
	uint64_t sum = 0;

	allowance_init(&p);
	allowance_end(&p);
	p.busy = ALLOWANCE_BUSY_MAX;
	EXPECT(p.end_ns <= clock_ns(CLOCK_MONOTONIC) + ALLOWANCE_END_NS);
	EXPECT(spend_all(&p, VICTIM) <= ALLOWANCE_END_NS / 4);
	EXPECT_EQ(allowance_have(&p, VICTIM), 0);
	EXPECT(allowance_have(&p, VICTIM + 64) > 0);
	for (uint32_t k = 1; k < 1000; k++)
		sum += spend_all(&p, VICTIM + k * 64);
	EXPECT(sum <= ALLOWANCE_END_NS / 2);
	EXPECT(allowance_have(&p, 0) >= ALLOWANCE_END_NS / 5);
	p.caller = 7;
	EXPECT(allowance_have(&p, 7) >= ALLOWANCE_END_NS / 5);
}

TEST(user_account_ranges)
{
	struct user_range got[3];

	EXPECT_EQ(user_ranges_parse("", got, 3), 0);
	EXPECT_EQ(user_ranges_parse("root:0:65536\n# text\nann:100000:65536\n:1:2\nbob:1\n"
				    "carl:x:y\n1002:165536:10",
				    got, 3),
		  2);
	EXPECT_EQ(got[0].first, 100000);
	EXPECT_EQ(got[0].count, 65536);
	EXPECT_EQ(got[1].first, 165536);
	EXPECT_EQ(user_ranges_parse("a:1:1\nb:2:1\nc:3:1\nd:4:1\n", got, 3), 3);
	EXPECT_EQ(user_account(0), 0);
}
