/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/kernel_names.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/kernel_word.h"
#include "test.h"

#define AT 0xffffffffc0021000ull
#define MS 1000000ull

/* What the kernel would answer. */
static struct {
	const char *name;
	int asked;
} kernel;

static bool ask(void *ctx, uint64_t addr, char *ret, size_t cap)
{
	(void)ctx;
	(void)addr;
	kernel.asked++;
	if (!kernel.name)
		return false;
	snprintf(ret, cap, "%s", kernel.name);
	return true;
}

static struct kernel_names *fresh(void)
{
	struct kernel_names *kn = kernel_names_new(ask, NULL, "/dev/null");

	kernel.asked = 0;
	kernel.name = NULL;
	EXPECT(kn);
	return kn;
}

static void see(struct kernel_names *kn, uint64_t at, uint64_t ms, bool gone, const char *name)
{
	kernel_names_see(kn, &(struct ksymbol){ at, 0x100, ms * MS, gone, name });
}

/* The name of a sample that arrives at `ms`. */
static const char *named(struct kernel_names *kn, uint64_t at, uint64_t taken_ms, uint64_t ms)
{
	static char name[4][64];
	static int next;
	char *ret = name[next++ % 4];
	uint64_t word = kernel_names_word(kn, at, taken_ms * MS, ms * MS);

	EXPECT_EQ(kernel_word_addr(word), at);
	if (!kernel_word_numbered(word))
		return "(fixed)";
	return kernel_names_get(kn, word, ret, sizeof(name[0])) ? ret : "(none)";
}

TEST(kernel_names_of_one_address_at_three_times)
{
	struct kernel_names *kn = fresh();
	uint64_t word;
	char name[64];

	kernel_names_round(kn, 100 * MS);
	see(kn, AT, 150, false, "alpha");
	EXPECT_STR(named(kn, AT + 0x80, 0, 200), "alpha");
	word = kernel_names_word(kn, AT, 0, 200 * MS);
	kernel_names_round(kn, 200 * MS);
	EXPECT_STR(named(kn, AT, 0, 300), "alpha");
	kernel_names_round(kn, 300 * MS);
	see(kn, AT, 310, true, "alpha");
	see(kn, AT + 0x10, 350, false, "beta");
	/* Either may have been there; the time of the sample tells. */
	EXPECT_STR(named(kn, AT + 0x20, 0, 400), "[replaced code]");
	EXPECT_STR(named(kn, AT + 0x20, 305, 400), "alpha");
	EXPECT_STR(named(kn, AT + 0x20, 390, 400), "beta");
	kernel_names_round(kn, 400 * MS);
	EXPECT_STR(named(kn, AT + 0x20, 0, 500), "beta");
	/* The word from before keeps its name. */
	EXPECT(kernel_names_get(kn, word, name, sizeof(name)));
	EXPECT_STR(name, "alpha");
	kernel_names_free(kn);
}

/* It was there before the run, and is gone when its samples arrive. */
TEST(kernel_names_of_what_is_gone)
{
	struct kernel_names *kn = fresh();

	kernel.name = NULL;
	kernel_names_round(kn, 100 * MS);
	see(kn, AT, 150, true, "alpha");
	EXPECT_STR(named(kn, AT, 0, 200), "alpha");
	kernel_names_round(kn, 200 * MS);
	EXPECT_STR(named(kn, AT, 0, 300), "(none)");
	kernel_names_free(kn);
}

/* The kernel is asked once, and again after a change at that address. */
TEST(kernel_names_that_are_asked_for)
{
	struct kernel_names *kn = fresh();

	kernel.name = "foo [module]";
	EXPECT_STR(named(kn, AT, 0, 100), "foo [module]");
	EXPECT_STR(named(kn, AT, 0, 100), "foo [module]");
	EXPECT_EQ(kernel.asked, 1);
	kernel_names_round(kn, 200 * MS);
	see(kn, AT + 0x1000, 250, false, "alpha");
	EXPECT_STR(named(kn, AT, 0, 300), "foo [module]");
	EXPECT_EQ(kernel.asked, 1);
	kernel_names_round(kn, 300 * MS);
	see(kn, AT, 350, false, "beta");
	see(kn, AT, 360, true, "beta");
	kernel.name = "bar [other]";
	kernel_names_round(kn, 400 * MS);
	EXPECT_STR(named(kn, AT, 0, 500), "bar [other]");
	/* The kernel's own code stays where it is. */
	kernel.name = "schedule";
	EXPECT_STR(named(kn, AT + 0x5000, 0, 500), "(fixed)");
	kernel_names_free(kn);
}

/* Records of several CPUs come in any order. */
TEST(kernel_names_in_the_order_of_their_times)
{
	struct kernel_names *kn = fresh();

	kernel_names_round(kn, 100 * MS);
	see(kn, AT, 180, true, "alpha");
	see(kn, AT, 190, false, "beta");
	see(kn, AT, 120, false, "alpha");
	EXPECT_STR(named(kn, AT, 150, 200), "alpha");
	EXPECT_STR(named(kn, AT, 195, 200), "beta");
	kernel_names_free(kn);
}

TEST(kernel_names_of_modules_that_change)
{
	char path[] = "/tmp/sfbpf-modules-XXXXXX";
	int fd = mkstemp(path);
	struct kernel_names *kn = kernel_names_new(ask, NULL, path);
	static const char line[] = "foo 16384 1 - Live 0xffffffffc0021000\n";

	kernel.name = "foo [foo]";
	kernel_names_round(kn, 100 * MS);
	EXPECT_STR(named(kn, AT, 0, 150), "foo [foo]");
	kernel_names_round(kn, 200 * MS);
	EXPECT_STR(named(kn, AT, 0, 250), "foo [foo]");
	kernel_names_round(kn, 300 * MS);
	EXPECT(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
	kernel.name = "bar [bar]";
	EXPECT_STR(named(kn, AT, 0, 350), "[replaced code]");
	kernel_names_round(kn, 400 * MS);
	EXPECT_STR(named(kn, AT, 0, 450), "bar [bar]");
	close(fd);
	unlink(path);
	kernel_names_free(kn);
}
