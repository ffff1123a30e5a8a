/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "test.h"

static const struct stacks_meta cpu = {
	.event = "cpu-clock", .unit = "samples", .hz = 1000, .duration_s = 10, .command = "prog"
};

static void add(struct verdict_side *side, const struct stacks_meta *meta, double value)
{
	EXPECT(verdict_add(side, meta, (uint64_t)value));
}

static bool says(const struct verdict_side *before, const struct verdict_side *after,
		 enum verdict_per per, const char *want)
{
	char line[512];
	struct verdict v;
	bool same;

	EXPECT_EQ(verdict_make(before, after, per, &v), 0);
	verdict_text(&v, line, sizeof(line));
	same = !strncmp(line, want, strlen(want));
	if (!same)
		printf("  %s\n", line);
	return same;
}

TEST(verdict_of_one_run_each)
{
	struct verdict_side a = { .n = 0 }, b = { .n = 0 };

	add(&a, &cpu, 14300);
	add(&b, &cpu, 10700);
	/* exp(ln(.74826) -+ 1.96 * sqrt(2e-4 + 1 / 14300 + 1 / 10700)) */
	EXPECT(says(&a, &b, VERDICT_PER_DEFAULT,
		    "faster: 14.3 s -> 10.7 s of CPU time (-25.2 %, 95 % interval -27.9 to "
		    "-22.3 %; "));
	EXPECT(says(&b, &a, VERDICT_PER_DEFAULT, "slower: 10.7 s -> 14.3 s of CPU time (+33.6 %"));
	EXPECT(says(&a, &a, VERDICT_PER_DEFAULT, "no difference: 14.3 s -> 14.3 s of CPU time"));
}

/* Of what is not a command, the value per second counts. */
TEST(verdict_units)
{
	struct stacks_meta system = cpu, folded = { .unit = "samples" },
			   blocked = { .event = "off-cpu", .unit = "microseconds" };
	struct verdict_side a = { .n = 0 }, b = { .n = 0 }, c = { .n = 0 }, d = { .n = 0 },
			    e = { .work = 1000 }, f = { .work = 2000 };
	struct verdict v;

	system.command[0] = 0;
	add(&a, &system, 14300);
	system.duration_s = 20;
	add(&b, &system, 28600);
	EXPECT(says(&a, &b, VERDICT_PER_DEFAULT,
		    "no difference: 1.43 s -> 1.43 s of CPU time per second (+0.0 %"));
	EXPECT(says(&a, &b, VERDICT_PER_RUN, "slower: 14.3 s -> 28.6 s of CPU time (+100.0 %"));
	add(&c, &folded, 200000);
	add(&d, &folded, 100000);
	EXPECT(says(&c, &d, VERDICT_PER_DEFAULT, "faster: 200000 -> 100000 samples (-50.0 %"));
	EXPECT_EQ(verdict_make(&c, &d, VERDICT_PER_SECOND, &v), -EINVAL);
	add(&e, &cpu, 10000);
	add(&f, &cpu, 20000);
	EXPECT(says(&e, &f, VERDICT_PER_WORK,
		    "no difference: 0.01 s -> 0.01 s of CPU time per unit of work"));
	e.n = f.n = 0;
	add(&e, &blocked, 2000000);
	add(&f, &blocked, 2200000);
	EXPECT(says(&e, &f, VERDICT_PER_RUN,
		    "no difference: 2 s -> 2.2 s of blocked time (+10.0 %"));
}

/* What one side alone has is a difference, unless it is a few samples. */
TEST(verdict_of_nothing)
{
	struct verdict_side none = { .n = 0 }, few = { .n = 0 }, many = { .n = 0 };

	add(&none, &cpu, 0);
	add(&few, &cpu, 3);
	add(&many, &cpu, 1000);
	EXPECT(says(&none, &none, VERDICT_PER_RUN, "no difference: there are no samples"));
	EXPECT(says(&none, &few, VERDICT_PER_RUN, "no difference"));
	EXPECT(says(&none, &many, VERDICT_PER_RUN, "slower"));
}

static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += drand48();
	return sum;
}

static void add_runs(struct verdict_side *side, size_t n, double mean, double spread)
{
	for (size_t i = 0; i < n; i++) {
		double value = mean * (1 + spread * normal());

		add(side, &cpu, value + sqrt(value) * normal());
	}
}

/* The share of 2,000 comparisons of n runs on each side that say there is a difference. */
static double found(size_t n, double change, double spread)
{
	int differ = 0;
	struct verdict v;

	for (int i = 0; i < 2000; i++) {
		struct verdict_side a = { .n = 0 }, b = { .n = 0 };

		add_runs(&a, n, 30000, spread);
		add_runs(&b, n, 30000 * (1 + change), spread);
		EXPECT_EQ(verdict_make(&a, &b, VERDICT_PER_RUN, &v), 0);
		differ += v.word != VERDICT_SAME;
	}
	return differ / 2000.;
}

TEST(verdict_is_right_in_95_of_100)
{
	srand48(1);
	EXPECT(found(1, 0, 0.01) < 0.06);
	EXPECT(found(1, 0.07, 0.01) > 0.95);
	EXPECT(found(2, 0, 0.03) < 0.06);
	EXPECT(found(5, 0, 0.03) < 0.06);
	EXPECT(found(5, 0.03, 0.005) > 0.95);
}

TEST(verdict_takes_a_limited_number_of_runs)
{
	struct verdict_side side = { .n = 0 };

	for (int i = 0; i < VERDICT_RUNS; i++)
		add(&side, &cpu, 100);
	EXPECT(!verdict_add(&side, &cpu, 100));
}
