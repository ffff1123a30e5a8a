/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 5,000 processes, 100,000 distinct stacks, a thousand new symbols a second: counted and drawn in
 * what time? CPU time, in ms.
 */
#include <time.h>

#include "screens.h"
#include "tui/view.h"

#define STACKS	  100000
#define PROCESSES 5000
#define SYMBOLS	  20000
#define DEPTH	  40

static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* Symbols from `first` on, in a module without a symbol table: each offset is one. */
static void add_many(struct profile *p, uint32_t nstacks, uint32_t first, uint8_t state)
{
	union {
		struct sf_sample s;
		uint64_t room[sizeof(struct sf_sample) / 8 + DEPTH];
	} rec = { .s = {
			  .type = SF_REC_SAMPLE,
			  .n_user = DEPTH,
			  .flags = SF_SAMPLE_USER,
			  .weight = 1000000,
		  } };
	struct profile_times t = { .count = 1, .weight = 1000000, .state = state };
	uint64_t seed = first + 1;

	for (uint32_t i = 0; i < nstacks; i++) {
		rec.s.pid = i % PROCESSES + 1;
		snprintf(rec.s.comm, sizeof(rec.s.comm), "comm%u", i % PROCESSES / 10);
		for (int k = 0; k < DEPTH; k++) /* the roots have few names, the leaves many */
			rec.s.frames[k] = 1ull << SF_FRAME_KIND_SHIFT |
					  3ull << SF_FRAME_MODULE_SHIFT |
					  (first + next(&seed) % (k < 10 ? SYMBOLS : 50)) * 16;
		EXPECT_EQ(profile_add_times(p, &rec.s, &t, NULL), 0);
	}
}

static double draw_ms(struct fixture *f)
{
	double worst = 0, t;

	for (int i = 0; i < 5; i++) {
		t = cpu_ms();
		draw(f);
		t = cpu_ms() - t;
		worst = t > worst ? t : worst;
	}
	return worst;
}

TEST(drawing_is_fast_however_much_there_is)
{
	struct profile *p = profile_new(), *off = profile_new(), *fresh = profile_new();
	struct live_sum sum = { .seconds = 30 };
	struct fixture f;
	double t;

	set_up(&f, 250, 70);
	add_many(p, STACKS, 0, 0);
	add_many(off, STACKS, 0, SF_OFF_S);
	ui_set_offcpu(&f.ui, off, &sum);
	EXPECT_EQ(ui_refresh(&f.ui, p, &sum), 0);
	for (uint32_t v = 0; v < VIEW_MAX; v++) {
		press(&f, '1' + v);
		t = cpu_ms();
		EXPECT_EQ(ui_refresh(&f.ui, p, &sum), 0);
		t = cpu_ms() - t;
		printf("# %d stacks, %d processes: %-9s counted in %3.0f ms, %zu rows; "
		       "drawn in %.1f ms\n",
		       STACKS, PROCESSES, view_at((enum view)v)->title, t, f.ui.nrows, draw_ms(&f));
		EXPECT(draw_ms(&f) < 20 * 5); /* sanitizers, busy machines */
	}
	/* What a second brings: 200 stacks, 1,000 names that were not there before. */
	t = cpu_ms();
	for (uint32_t i = 0; i < 10; i++) {
		add_many(fresh, 200, SYMBOLS + 1000 * i, 0);
		EXPECT_EQ(profile_resolve(fresh, f.symbols), 0);
		EXPECT_EQ(profile_merge(p, fresh), 0);
		profile_reset(fresh);
	}
	printf("# a second's 200 stacks with new symbols: named and merged in %.1f ms\n",
	       (cpu_ms() - t) / 10);
	profile_free(p);
	f.ui.off.window = NULL;
	profile_free(off);
	profile_free(fresh);
	tear_down(&f);
}
