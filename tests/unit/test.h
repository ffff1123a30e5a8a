/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unit tests' own small harness: TEST(name) { ... } registers itself, EXPECT_* prints both
 * values and goes on, SKIP(why) ends the test as skipped; SKIP("") leaves it out without a count,
 * for what scripts/test.sh counts as skipped in one line. Each test file is one program; it prints
 * a line for each test ("ok NAME", "FAIL NAME", "SKIP NAME: why") which scripts/test.sh counts, and
 * exits 1 if any failed.
 */
#ifndef SFBPF_TESTS_UNIT_TEST_H
#define SFBPF_TESTS_UNIT_TEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct test_case {
	const char *name;
	void (*run)(void);
	struct test_case *next;
};

static struct test_case *test_list, **test_tail = &test_list;
static int test_errors;
static const char *test_skipped;

#define TEST(id)                                                      \
	static void test_##id(void);                                  \
	static struct test_case case_##id = { #id, test_##id, NULL }; \
	__attribute__((constructor)) static void register_##id(void)  \
	{                                                             \
		*test_tail = &case_##id;                              \
		test_tail = &case_##id.next;                          \
	}                                                             \
	static void test_##id(void)

#define SKIP(why)                     \
	do {                          \
		test_skipped = (why); \
		return;               \
	} while (0)

#define EXPECT(cond)                                                        \
	do {                                                                \
		if (!(cond)) {                                              \
			printf("  %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			test_errors++;                                      \
		}                                                           \
	} while (0)

#define EXPECT_EQ(got, want)                                                                  \
	do {                                                                                  \
		int64_t g_ = (int64_t)(got), w_ = (int64_t)(want);                            \
		if (g_ != w_) {                                                               \
			printf("  %s:%d: %s: got %" PRId64 " (0x%" PRIx64 "), want %" PRId64  \
			       " (0x%" PRIx64 ")\n",                                          \
			       __FILE__, __LINE__, #got, g_, (uint64_t)g_, w_, (uint64_t)w_); \
			test_errors++;                                                        \
		}                                                                             \
	} while (0)

#define EXPECT_STR(got, want)                                                                      \
	do {                                                                                       \
		const char *g_ = (got), *w_ = (want);                                              \
		if (!g_ || strcmp(g_, w_) != 0) {                                                  \
			printf("  %s:%d: %s: got \"%s\", want \"%s\"\n", __FILE__, __LINE__, #got, \
			       g_ ? g_ : "(null)", w_);                                            \
			test_errors++;                                                             \
		}                                                                                  \
	} while (0)

int main(void)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct test_case *t = test_list; t; t = t->next) {
		test_errors = 0;
		test_skipped = NULL;
		t->run();
		if (test_errors)
			printf("FAIL %s\n", t->name);
		else if (test_skipped && !*test_skipped)
			printf("# left out: %s\n", t->name);
		else if (test_skipped)
			printf("SKIP %s: %s\n", t->name, test_skipped);
		else
			printf("ok %s\n", t->name);
		failed |= test_errors != 0;
	}
	return failed;
}

#endif
