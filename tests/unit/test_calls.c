/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: histograms of durations, typical and slow ones, and the stacks of both. */
#include "prof/calls.h"

#include <string.h>

#include "prof/wait_notes.h"
#include "test.h"

TEST(calls_histogram)
{
	uint64_t ns = 1;

	for (int i = 0; i < 3000; i++) {
		uint32_t place = call_hist_place(ns);

		EXPECT(place < SF_CALL_HIST);
		EXPECT(call_hist_from(place) <= ns);
		EXPECT(call_hist_from(place + 1) > ns || place == SF_CALL_HIST_MOST);
		ns = ns * 1009 / 1000 + 1;
	}
	EXPECT_EQ(call_hist_place(0), 0);
	EXPECT_EQ(call_hist_place(31), 31);
	EXPECT_EQ(call_hist_place(UINT64_MAX), SF_CALL_HIST_MOST);
	for (uint32_t i = 0; i < SF_CALL_HIST_MOST; i++)
		EXPECT_EQ(call_hist_place(call_hist_from(i)), i);
}

/* ---- Calls ---- */

static struct sf_call_stats all;

/* A call of that length, with a sample in `stack` and a wait of wait_ns in `wait_stack`. */
static void add_call(struct calls *c, uint32_t number, uint64_t ns, uint32_t stack,
		     uint32_t wait_stack, uint64_t wait_ns, uint64_t runnable_ns)
{
	struct sf_call rec = { .type = SF_REC_CALL,
			       .number = number,
			       .start_ns = 1000,
			       .end_ns = 1000 + ns,
			       .pid = 7,
			       .tid = 7,
			       .comm = "unit" };
	struct calls_piece sample = { number, stack, 1001, 1001, 1001 };
	struct calls_piece wait = { number, wait_stack, 1002, 1002 + wait_ns,
				    1002 + wait_ns + runnable_ns };

	calls_piece(c, &sample);
	if (wait_ns + runnable_ns)
		calls_piece(c, &wait);
	calls_end(c, &rec);
	all.begun++;
	all.ended++;
	all.ns += ns;
	all.hist[call_hist_place(ns)]++;
	if (ns > all.max_ns)
		all.max_ns = ns;
}

static size_t add_stack(struct profile *p, uint64_t word, uint8_t state)
{
	union {
		struct sf_sample s;
		uint64_t room[sizeof(struct sf_sample) / 8 + 1];
	} rec = { .s = { .type = SF_REC_SAMPLE, .pid = 7, .tid = 7, .n_user = 1 } };
	struct profile_times t = { .count = 1, .state = state };
	size_t at = 0;

	rec.s.frames[0] = word;
	EXPECT_EQ(profile_add_times(p, &rec.s, &t, &at), 0);
	return at;
}

static uint64_t weight(const struct profile *p, uint8_t group, uint8_t state)
{
	struct profile_stack s;
	uint64_t sum = 0;

	for (size_t i = 0; i < profile_count(p); i++) {
		profile_stack(p, i, &s);
		if (s.group == group && s.state == state)
			sum += s.weight;
	}
	return sum;
}

/* 198 calls of 1 us, two of 1 ms, of which 0.9 ms are a wait and 50 us one for a CPU. */
static struct calls *make(uint64_t over_ns, struct profile *p, struct calls_result *ret)
{
	uint32_t run = (uint32_t)add_stack(p, 1, PROFILE_RUNNING),
		 wait = (uint32_t)add_stack(p, 2, SF_OFF_S);
	struct calls *c = calls_new(over_ns);

	memset(&all, 0, sizeof(all));
	for (uint32_t i = 1; i <= 200; i++) {
		if (i % 100 == 50)
			add_call(c, i, 1000000, run, wait, 900000, 50000);
		else
			add_call(c, i, 1000, run, wait, 0, 0);
		if (i == 70)
			EXPECT_EQ(calls_turn(c, false), 0);
	}
	EXPECT_EQ(calls_turn(c, false), 0);
	EXPECT_EQ(calls_turn(c, true), 0);
	calls_finish(c, &all, ret);
	return c;
}

static void expect_groups(struct calls *c, const struct profile *p, const struct calls_result *r)
{
	struct profile *grouped = profile_new();

	EXPECT_EQ(r->groups[CALLS_TYPICAL].calls, 198);
	EXPECT_EQ(r->groups[CALLS_SLOW].calls, 2);
	EXPECT_EQ(r->groups[CALLS_SLOW].ns, 2000000);
	EXPECT_EQ(r->missing, 0);
	EXPECT_EQ(r->nslowest, CALLS_SLOWEST);
	EXPECT_EQ(r->slowest[0].n, 2);
	EXPECT_EQ(r->slowest[0].call.end_ns - r->slowest[0].call.start_ns, 1000000);
	EXPECT_EQ(calls_profile(c, p, grouped), 0);
	EXPECT_EQ(weight(grouped, CALLS_TYPICAL, PROFILE_RUNNING), 198000);
	EXPECT_EQ(weight(grouped, CALLS_TYPICAL, SF_OFF_S), 0);
	EXPECT_EQ(weight(grouped, CALLS_SLOW, PROFILE_RUNNING), 100000);
	EXPECT_EQ(weight(grouped, CALLS_SLOW, SF_OFF_S), 1800000);
	EXPECT_EQ(weight(grouped, CALLS_SLOW, SF_OFF_R), 100000);
	profile_free(grouped);
}

TEST(calls_over_a_limit)
{
	struct profile *p = profile_new();
	struct calls_result r;
	struct calls *c = make(500000, p, &r);

	EXPECT_EQ(r.over_ns, 500000);
	EXPECT_EQ(calls_keep_over(c, &all), 500000);
	expect_groups(c, p, &r);
	calls_free(c);
	profile_free(p);
}

TEST(calls_slowest_share)
{
	struct profile *p = profile_new();
	struct calls_result r;
	struct calls *c = make(0, p, &r);

	EXPECT(r.over_ns > 900000 && r.over_ns <= 1000000);
	EXPECT(calls_keep_over(c, &all) <= 1000);
	EXPECT(calls_quantile(&all, .5) > 900 && calls_quantile(&all, .5) < 1100);
	EXPECT_EQ(calls_quantile(&all, 1), 1000000);
	expect_groups(c, p, &r);
	calls_free(c);
	profile_free(p);
}

/* No call stands out; a call without an end keeps its pieces, which are then missing. */
TEST(calls_alike_and_open)
{
	struct calls_piece open = { 99, 0, 5, 5, 5 };
	struct calls *c = calls_new(0);
	struct calls_result r;

	memset(&all, 0, sizeof(all));
	for (uint32_t i = 1; i <= 10; i++)
		add_call(c, i, 1000, 0, 0, 0, 0);
	calls_piece(c, &open);
	EXPECT_EQ(calls_turn(c, true), 0);
	calls_finish(c, &all, &r);
	EXPECT_EQ(r.over_ns, UINT64_MAX);
	EXPECT_EQ(r.groups[CALLS_SLOW].calls, 0);
	EXPECT_EQ(r.groups[CALLS_TYPICAL].calls, 10);
	EXPECT_EQ(r.missing, 1);
	EXPECT_EQ(calls_quantile(&(struct sf_call_stats){ 0 }, .5), 0);
	calls_free(c);
}
