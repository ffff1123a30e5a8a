/* SPDX-License-Identifier: BSD-2-Clause */
/* Critical paths through made-up threads. */
#include "out/critical.h"

#include "prof/timeline.h"
#include "prof/wait_notes.h"
#include "test.h"
#include "world.h"

#define US 1000u

struct story {
	struct world w;
	struct timeline t;
	struct profile *wakers;
};

static void begin_story(struct story *s)
{
	make_world(&s->w);
	profile_by_thread(s->w.p);
	s->t = (struct timeline){ .has_blocks = true };
	s->wakers = profile_new();
	s->w.r.timeline = &s->t;
	s->w.r.wakers = s->wakers;
}

static void end_story(struct story *s)
{
	timeline_free(&s->t);
	profile_free(s->wakers);
	free_world(&s->w);
}

/* The stack of thread `tid`, which is its own process and has one frame, at that offset. */
static size_t stack_of(struct profile *p, uint32_t tid, uint8_t state, bool kernel)
{
	struct sf_sample *rec = calloc(1, sizeof(*rec) + 2 * sizeof(uint64_t));
	struct profile_times once = { .count = 1, .weight = 1, .state = state };
	size_t at = 0;

	rec->type = SF_REC_SAMPLE;
	rec->pid = rec->tid = tid;
	rec->stop = SF_STOP_COMPLETE;
	rec->flags = kernel ? KERNEL : USER;
	rec->n_user = !kernel;
	rec->n_kernel = kernel;
	rec->frames[0] = kernel ? KADDR : ROW(1, 0x10u * tid);
	snprintf(rec->comm, sizeof(rec->comm), "t%u", tid);
	EXPECT_EQ(profile_add_times(p, rec, &once, &at), 0);
	free(rec);
	return at;
}

static void runs(struct story *s, uint32_t tid, uint64_t at_us)
{
	timeline_add(&s->t, at_us * US, 0, stack_of(s->w.p, tid, PROFILE_RUNNING, false));
}

/* waker 0: an interrupt; UINT32_MAX: unknown */
static void waits(struct story *s, uint32_t tid, uint64_t from_us, uint64_t to_us, uint32_t waker)
{
	struct timeline_block b = { .start_ns = from_us * US,
				    .woken_ns = to_us * US,
				    .end_ns = to_us * US,
				    .stack = (uint32_t)stack_of(s->w.p, tid, SF_OFF_S, false),
				    .tid = tid };

	if (waker != UINT32_MAX) {
		b.waker = (uint32_t)stack_of(s->wakers, waker, 0, !waker) + 1;
		b.waker_tid = waker;
	}
	timeline_add_block(&s->t, &b);
}

/* The path as folded lines; the caller frees it. */
static char *path_of(struct story *s, uint32_t tid, uint64_t end_us, struct critical_sums *sums)
{
	struct stackset path;
	char *text;

	EXPECT_EQ(stackset_init(&path), 0);
	EXPECT_EQ(critical_path(&s->w.r, tid, 0, end_us * US, &path, sums), 0);
	EXPECT_EQ(path.totals[STACK_AFTER], sums->elapsed_ns / US);
	text = folded_of(&path, false);
	stackset_free(&path);
	return text;
}

TEST(path_through_a_thread_and_an_interrupt)
{
	struct critical_sums sums;
	struct story s;
	char *text;

	begin_story(&s);
	runs(&s, 1, 50);
	runs(&s, 1, 450);
	waits(&s, 1, 100, 400, 2);
	runs(&s, 2, 150);
	waits(&s, 2, 200, 300, 0);
	waits(&s, 1, 500, 600, UINT32_MAX);
	text = path_of(&s, 1, 600, &sums);
	EXPECT_STR(text, "t1;[app+0x10];[blocked: other];[waker unknown] 100\n"
			 "t1;[app+0x10];[blocked: other];[woken by t2];[app+0x20];"
			 "[blocked: other];[interrupt] 100\n"
			 "t1;[app+0x10];[blocked: other];[woken by t2];[app+0x20];[running] 200\n"
			 "t1;[app+0x10];[running] 200\n");
	EXPECT_EQ(sums.elapsed_ns, 600 * US);
	EXPECT_EQ(sums.unknown_ns, 100 * US);
	EXPECT_EQ(sums.interrupt_ns, 100 * US);
	EXPECT_EQ(sums.unsampled_ns, 0);
	free(text);
	end_story(&s);
}

/* A wait for a CPU is none for another thread. A thread that never waited ran all the time. */
TEST(path_to_a_cpu_and_to_an_unknown_thread)
{
	struct critical_sums sums;
	struct story s;
	char *text;

	begin_story(&s);
	runs(&s, 1, 50);
	waits(&s, 1, 100, 200, 9);
	s.t.blocks[0].end_ns = 250 * US;
	text = path_of(&s, 1, 300, &sums);
	EXPECT_STR(text, "t1;[app+0x10];[blocked: other];[woken by t9];[running] 100\n"
			 "t1;[app+0x10];[runnable] 50\n"
			 "t1;[app+0x10];[running] 150\n");
	free(text);
	end_story(&s);
}

/* Two threads that woke each other, by their records: the path ends, and the sum is right. */
TEST(path_in_a_circle)
{
	struct critical_sums sums;
	struct story s;
	char *text;

	begin_story(&s);
	waits(&s, 1, 0, 100, 2);
	waits(&s, 2, 0, 100, 1);
	text = path_of(&s, 1, 100, &sums);
	EXPECT(strstr(text, "[woken by t2];[app+0x20];[blocked: other];[woken by t1]"));
	EXPECT_EQ(sums.elapsed_ns, 100 * US);
	free(text);
	end_story(&s);
}

TEST(path_of_nobody)
{
	struct critical_sums sums;
	struct stackset path;
	struct story s;

	begin_story(&s);
	EXPECT_EQ(stackset_init(&path), 0);
	EXPECT_EQ(critical_path(&s.w.r, 1, 0, 0, &path, &sums), -ENOENT);
	stackset_free(&path);
	end_story(&s);
}
