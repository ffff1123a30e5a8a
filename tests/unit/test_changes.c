/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/changes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define FUNCTIONS 60

static const struct stacks_meta cpu = {
	.event = "cpu-clock", .unit = "samples", .hz = 1000, .duration_s = 10, .command = "prog"
};

/* A comparison as `diff` makes it */
struct compared {
	struct stackset ss;
	struct verdict_side sides[STACK_SIDES];
	struct changes c;
	struct verdict verdict;
};

static void start(struct compared *t)
{
	*t = (struct compared){ .c = { .nruns = 0 } };
	EXPECT_EQ(stackset_init(&t->ss), 0);
}

static void end(struct compared *t)
{
	changes_free(&t->c);
	stackset_free(&t->ss);
}

/* stack: "main;f;g" */
static void add(struct compared *t, enum stack_side side, const char *stack, uint64_t count)
{
	uint32_t frames[16];
	size_t n = 0;

	for (size_t len; *stack; stack += len + (stack[len] == ';')) {
		len = strcspn(stack, ";");
		EXPECT_EQ(stackset_frame(&t->ss, stack, len, "", STACK_USER, &frames[n++]), 0);
	}
	EXPECT_EQ(stackset_add(&t->ss, "prog", 0, frames, n, side, count), 0);
}

static void end_run(struct compared *t, enum stack_side side, const struct stacks_meta *meta)
{
	uint64_t had = 0;

	for (size_t i = 0; i < t->sides[side].n; i++)
		had += t->sides[side].runs[i].value;
	EXPECT(verdict_add(&t->sides[side], meta, t->ss.totals[side] - had));
	EXPECT_EQ(changes_add_run(&t->c, &t->ss, side), 0);
}

static void judge(struct compared *t, bool share)
{
	struct verdict_unit unit;

	EXPECT_EQ(verdict_make(&t->sides[STACK_BEFORE], &t->sides[STACK_AFTER], VERDICT_PER_DEFAULT,
			       &t->verdict),
		  0);
	unit = t->verdict.unit;
	unit.share = share;
	EXPECT_EQ(changes_make(&t->c, &t->ss, t->sides, &unit), 0);
}

static const struct function_change *of(const struct compared *t, const char *name)
{
	for (size_t i = 0; i < t->c.n; i++)
		if (!strcmp(stackset_frame_name(&t->ss, t->c.list[i].frame), name))
			return &t->c.list[i];
	return NULL;
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-6 * (1 + fabs(b));
}

static double normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += drand48();
	return sum;
}

static uint64_t poisson(double mean)
{
	double at = exp(-mean), sum = at, u = drand48(), ret;
	uint64_t k = 0;

	if (mean > 100) {
		ret = mean + sqrt(mean) * normal();
		return ret > 0 ? (uint64_t)(ret + .5) : 0;
	}
	for (; u > sum && k < 1000; sum += at)
		at *= mean / (double)++k;
	return k;
}

static double mean_of(int function)
{
	return 4000 * pow(0.85, function); /* the last ones have less than a sample */
}

/* Function `changed` takes 2,700 samples more, a tenth of all; -1: none does. */
static void add_run(struct compared *t, enum stack_side side, int changed, double spread)
{
	double whole = 1 + spread * normal();
	char stack[32];

	for (int i = 0; i < FUNCTIONS; i++) {
		double mean = (mean_of(i) + (i == changed ? 2700 : 0)) * whole;

		snprintf(stack, sizeof(stack), "main;f%d", i);
		add(t, side, stack, poisson(mean * (1 + spread * normal())));
	}
	end_run(t, side, &cpu);
}

/* Whether the verdict is right, and the functions whose self time changed are. */
static bool right(size_t runs, int changed, double spread)
{
	struct compared t;
	char name[16];
	size_t real = 0, want = changed < 0 ? 0 : 1;
	bool ret;

	start(&t);
	for (size_t i = 0; i < runs; i++) {
		add_run(&t, STACK_BEFORE, -1, spread);
		add_run(&t, STACK_AFTER, changed, spread);
	}
	judge(&t, false);
	for (size_t i = 0; i < t.c.n; i++)
		real += t.c.list[i].self.real;
	snprintf(name, sizeof(name), "f%d", changed);
	ret = real == want && (t.verdict.word == VERDICT_SLOWER) == want &&
	      (!want || (of(&t, name) == t.c.list && t.c.list->self.real));
	end(&t);
	return ret;
}

/* Of 200 pairs of which half have a change */
static int right_of_200(size_t runs, double spread)
{
	int ret = 0;

	for (int i = 0; i < 200; i++)
		ret += right(runs, i % 2 ? i % 10 : -1, spread);
	printf("# %zu runs a side, spread %g: %d of 200 pairs are judged rightly\n", runs, spread,
	       ret);
	return ret;
}

TEST(changes_are_right_in_95_of_100)
{
	srand48(1);
	EXPECT(right_of_200(1, 0) >= 190);
	EXPECT(right_of_200(1, 0.007) >= 190);
	EXPECT(right_of_200(3, 0.01) >= 190);
	EXPECT(right_of_200(5, 0.02) >= 190);
}

TEST(changes_in_the_unit_of_the_verdict)
{
	struct stacks_meta system = cpu;
	const struct function_change *f;
	struct compared t;

	system.command[0] = 0;
	start(&t);
	add(&t, STACK_BEFORE, "main;a", 3000);
	add(&t, STACK_BEFORE, "main;b", 1000);
	end_run(&t, STACK_BEFORE, &system);
	system.duration_s = 20;
	add(&t, STACK_AFTER, "main;a", 3000);
	add(&t, STACK_AFTER, "main;b", 2000);
	end_run(&t, STACK_AFTER, &system);
	judge(&t, false);
	f = of(&t, "a");
	EXPECT(f == t.c.list && f->self.real && is_near(f->self.before, 0.3) &&
	       is_near(f->self.after, 0.15));
	/* 1.96 * sqrt(3000 + 1/2 + (30)^2, and a quarter of such of the longer run) */
	EXPECT(is_near(f->self.interval,
		       1.96 * sqrt(3000.5e-8 + 0.3 * 0.3e-4 + 3000.5e-8 / 4 + .15 * .15e-4)));
	f = of(&t, "b");
	EXPECT(f && !f->self.real && is_near(f->self.after, 0.1));
	f = of(&t, "main");
	EXPECT(f && !f->self.real && f->total.real && is_near(f->total.after, 0.25));
	free(t.c.list);
	t.c.list = NULL;
	t.c.n = 0;
	judge(&t, true);
	f = of(&t, "b");
	EXPECT(f && f->self.real && is_near(f->self.before, .25) && is_near(f->self.after, .4));
	end(&t);
}

TEST(changes_of_runs_that_differ)
{
	static const uint64_t steady[] = { 1000, 1020, 980 }, wild[] = { 600, 1000, 1400 };
	struct compared t;

	start(&t);
	for (int i = 0; i < 3; i++) {
		add(&t, STACK_BEFORE, "main;steady", steady[i]);
		add(&t, STACK_BEFORE, "main;wild", wild[i]);
		add(&t, STACK_BEFORE, "main;rest", 90000);
		end_run(&t, STACK_BEFORE, &cpu);
		add(&t, STACK_AFTER, "main;steady", steady[i] + 500);
		add(&t, STACK_AFTER, "main;wild", wild[i] + 500);
		add(&t, STACK_AFTER, "main;rest", 90000);
		end_run(&t, STACK_AFTER, &cpu);
	}
	judge(&t, false);
	EXPECT(of(&t, "steady")->self.real);
	EXPECT(is_near(of(&t, "steady")->self.before, 1));
	EXPECT(!of(&t, "wild")->self.real);
	EXPECT(of(&t, "wild")->self.interval > 2 * of(&t, "steady")->self.interval);
	end(&t);
}

TEST(changes_explain)
{
	struct compared t;
	double part;

	start(&t);
	add(&t, STACK_BEFORE, "main;a", 3000);
	add(&t, STACK_BEFORE, "main;b", 3000);
	add(&t, STACK_BEFORE, "main;c", 3000);
	add(&t, STACK_BEFORE, "main;d", 500);
	end_run(&t, STACK_BEFORE, &cpu);
	add(&t, STACK_AFTER, "main;a", 1000);
	add(&t, STACK_AFTER, "main;b", 2200);
	add(&t, STACK_AFTER, "main;c", 2970);
	add(&t, STACK_AFTER, "main;d", 900);
	end_run(&t, STACK_AFTER, &cpu);
	judge(&t, false);
	EXPECT_EQ(changes_explain(&t.c, &part), 2);
	EXPECT(is_near(part, 2800. / 2430));
	end(&t);
	start(&t);
	add(&t, STACK_BEFORE, "main", 3000);
	end_run(&t, STACK_BEFORE, &cpu);
	add(&t, STACK_AFTER, "main", 1000);
	end_run(&t, STACK_AFTER, &cpu);
	judge(&t, false);
	EXPECT(t.c.list->self.real);
	EXPECT_EQ(changes_explain(&t.c, &part), 0);
	end(&t);
}

static bool noted(const struct compared *t, const char *name, const char *want)
{
	const struct function_change *f = of(t, name);
	char note[CHANGE_NOTE_TEXT];
	bool ret = f && !strcmp(change_note_text(&t->ss, f, note), want);

	if (!ret)
		printf("  %s: %s\n", name, f ? note : "no row");
	return ret;
}

/* Compares two sets of stacks, "main;f 12"; NULL ends them. */
static void compare(struct compared *t, const char *const *before, const char *const *after)
{
	start(t);
	for (int side = STACK_BEFORE; side >= STACK_AFTER; side--) {
		for (const char *const *s = side == STACK_BEFORE ? before : after; *s; s++) {
			const char *space = strrchr(*s, ' ');
			char stack[128];

			snprintf(stack, sizeof(stack), "%.*s", (int)(space - *s), *s);
			add(t, (enum stack_side)side, stack, strtoull(space, NULL, 10));
		}
		end_run(t, (enum stack_side)side, &cpu);
	}
	judge(t, false);
}

static size_t real_self(const struct compared *t)
{
	size_t ret = 0;

	for (size_t i = 0; i < t->c.n; i++)
		ret += t->c.list[i].self.real;
	return ret;
}

TEST(changes_renamed)
{
	static const char *const
		before[] = { "main;old 1000", "main;walk;next 3000", "main;walk;next;read 2000",
			     "main;gone 700", "main;other 5000",     NULL },
		*const after[] = { "main;young 1010",		"main;visit;step 2400",
				   "main;visit;step;read 2050", "main;added 2700",
				   "main;other 4990",		NULL };
	struct compared t;

	compare(&t, before, after);
	EXPECT(noted(&t, "young", "renamed from old"));
	EXPECT(noted(&t, "visit", "renamed from walk"));
	/* Its subtree tells that it is the same function, though it takes less time. */
	EXPECT(noted(&t, "step", "renamed from next"));
	EXPECT(of(&t, "step")->self.real && is_near(of(&t, "step")->self.before, 3));
	EXPECT(!of(&t, "old") && !of(&t, "walk") && !of(&t, "next"));
	EXPECT(noted(&t, "gone", "") && noted(&t, "added", ""));
	EXPECT_EQ(real_self(&t), 3);
	end(&t);
}

TEST(changes_inlined)
{
	static const char *const before[] = { "main;host 500",
					      "main;host;small 2000",
					      "main;wrap;deep 3000",
					      "main;wrap 2",
					      "main;gone 900",
					      "main 4000",
					      NULL },
				 *const after[] = { "main;host 2450", "main;deep 3010", "main 4010",
						    NULL };
	struct compared t;

	compare(&t, before, after);
	EXPECT(noted(&t, "small", "inlined into host"));
	EXPECT(noted(&t, "host", "with small"));
	EXPECT(noted(&t, "wrap", "inlined into main"));
	EXPECT(noted(&t, "gone", "") && of(&t, "gone")->self.real);
	EXPECT(!of(&t, "wrap")->total.real && !of(&t, "small")->total.real);
	EXPECT_EQ(real_self(&t), 1);
	end(&t);
	compare(&t, after, before);
	EXPECT(noted(&t, "small", "no longer inlined into host"));
	EXPECT_EQ(real_self(&t), 1);
	end(&t);
}

TEST(changes_moved)
{
	static const char *const before[] = { "main;a;p;f;g 2000", "main;a;p 1000", "main;b 3000",
					      "main;c 1000", NULL },
				 *const after[] = { "main;a;p 1020", "main;b;f;g 1980",
						    "main;b 2990", "main;c 400", NULL };
	struct compared t;

	compare(&t, before, after);
	EXPECT(noted(&t, "f", "moved below b"));
	EXPECT(noted(&t, "g", "") && noted(&t, "c", ""));
	EXPECT(!of(&t, "p")->total.real && !of(&t, "a")->total.real && !of(&t, "b")->total.real);
	EXPECT(of(&t, "c")->self.real);
	EXPECT_EQ(real_self(&t), 1);
	end(&t);
}

/* Numbers that only a made file has */
TEST(changes_of_extremes)
{
	struct stacks_meta tiny = cpu, huge = cpu;
	struct compared t;

	tiny.hz = 1e-300;
	tiny.duration_s = 1e-300;
	huge.hz = 1e300;
	huge.duration_s = 1e300;
	tiny.command[0] = huge.command[0] = 0;
	start(&t);
	add(&t, STACK_BEFORE, "main;a", UINT64_MAX - 5);
	add(&t, STACK_BEFORE, "main;b", 5);
	end_run(&t, STACK_BEFORE, &tiny);
	end_run(&t, STACK_BEFORE, &tiny);
	add(&t, STACK_AFTER, "main;b;b;b", UINT64_MAX);
	end_run(&t, STACK_AFTER, &huge);
	judge(&t, false);
	EXPECT_EQ(t.c.n, 3);
	for (size_t i = 0; i < t.c.n; i++)
		EXPECT(!isnan(t.c.list[i].self.before) && !isnan(t.c.list[i].total.p));
	end(&t);
	start(&t);
	end_run(&t, STACK_BEFORE, &cpu);
	end_run(&t, STACK_AFTER, &cpu);
	judge(&t, false);
	EXPECT_EQ(t.c.n, 0);
	end(&t);
}
