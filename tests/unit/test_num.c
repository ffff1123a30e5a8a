/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/num.h"

#include <errno.h>
#include <stdlib.h>

#include "test.h"

#define BAD UINT64_MAX /* -EINVAL expected */

struct num_case {
	const char *text;
	uint64_t want;
};

static void check(const struct num_case *c, int err, uint64_t got)
{
	uint64_t want = c->want == BAD ? 77 : c->want;

	if (err != (c->want == BAD ? -EINVAL : 0) || got != want) {
		printf("  \"%s\": got %d, %" PRIu64 ", want %" PRIu64 "\n", c->text, err, got,
		       c->want);
		test_errors++;
	}
}

TEST(num_u64)
{
	static const struct num_case cases[] = {
		{ "1", 1 },
		{ "100", 100 },
		{ "0099", 99 },
		{ "0", BAD },
		{ "101", BAD },
		{ "", BAD },
		{ "-1", BAD },
		{ "+1", BAD },
		{ " 1", BAD },
		{ "1 ", BAD },
		{ "12abc", BAD },
		{ "0x10", BAD },
		{ "18446744073709551616", BAD },
		{ "1.0", BAD },
		{ "99999999999999999999999", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 77;
		int err = num_u64(cases[i].text, 1, 100, &v);

		check(&cases[i], err, v);
	}
}

TEST(num_duration)
{
	static const struct num_case cases[] = {
		{ "10", 10 * NUM_S },
		{ "10s", 10 * NUM_S },
		{ "0.5", NUM_S / 2 },
		{ "1.5ms", 1500 * NUM_US },
		{ "250us", 250 * NUM_US },
		{ "2m", 120 * NUM_S },
		{ "0", 0 },
		{ "0.000000001", 1 },
		{ "", BAD },
		{ "s", BAD },
		{ "1.", BAD },
		{ ".5", BAD },
		{ "1 s", BAD },
		{ "1sec", BAD },
		{ "-1s", BAD },
		{ "12abc", BAD },
		{ "1h", 3600 * NUM_S },
		{ "1m30s", 90 * NUM_S },
		{ "1d2h3m4s5ms6us", 93784005006000 },
		{ "1m2m", BAD },
		{ "1s2m", BAD },
		{ "1m30", BAD },
		{ "1.0000000001", BAD },
		{ "20000000000", BAD },
		{ "18446744073709551615m", BAD },
		{ "1e3", BAD },
		{ "1S", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 77;
		int err = num_duration(cases[i].text, NUM_S, &v);

		check(&cases[i], err, v);
	}
}

TEST(num_size)
{
	static const struct num_case cases[] = {
		{ "4096", 4096 },
		{ "64k", 65536 },
		{ "10M", 10 << 20 },
		{ "1G", 1 << 30 },
		{ "0", 0 },
		{ "", BAD },
		{ "k", BAD },
		{ "1kk", BAD },
		{ "1kB", BAD },
		{ "1K", 1024 },
		{ "-1k", BAD },
		{ "1.5k", BAD },
		{ "17179869184G", BAD },
		{ "1 k", BAD },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 77;
		int err = num_size(cases[i].text, &v);

		check(&cases[i], err, v);
	}
}

TEST(num_ids)
{
	static const char *const bad[] = { "",	 ",",	"1,",	 ",1",	       "1,,2", "0",
					   "-1", "1;2", "12abc", "2147483648", "1 2" };
	uint32_t *ids = NULL;
	size_t n = 0;

	EXPECT_EQ(num_ids("7,3,3,2147483647,7", &ids, &n), 0);
	EXPECT_EQ(n, 3);
	EXPECT(ids && ids[0] == 3 && ids[1] == 7 && ids[2] == 2147483647);
	free(ids);
	ids = NULL;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		EXPECT_EQ(num_ids(bad[i], &ids, &n), -EINVAL);
		EXPECT(!ids);
	}
}

TEST(num_cpus)
{
	static const char *const bad[] = { "",	   "-",	 "3-", "-3",   "3-1",
					   "8192", "1,", "a",  "0-3x", "0-99999999999" };
	static struct num_cpus c;

	EXPECT_EQ(num_cpus("0-3,5", &c), 0);
	EXPECT_EQ(c.count, 5);
	EXPECT_EQ(c.last, 5);
	EXPECT(num_cpus_has(&c, 3) && !num_cpus_has(&c, 4) && num_cpus_has(&c, 5) &&
	       !num_cpus_has(&c, 100000));
	EXPECT_EQ(num_cpus("8191,62-65\n", &c), 0);
	EXPECT_EQ(c.count, 5);
	EXPECT(num_cpus_has(&c, 63) && num_cpus_has(&c, 64) && num_cpus_has(&c, 8191));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EXPECT_EQ(num_cpus(bad[i], &c), -EINVAL);
	EXPECT_EQ(c.last, 8191); /* untouched by failures */
}
