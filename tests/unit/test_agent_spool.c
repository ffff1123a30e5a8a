/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The spool's promises: order, bounds, damage, and an account that adds up wherever a process was
 * killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/spool.h"
#include "base/clock.h"
#include "files.h"

static struct spool *open_spool(const char *in, uint64_t bytes)
{
	struct spool_opts o = { .dir = in, .max_bytes = bytes, .max_age_ns = 3600000000000ull };
	char err[256] = "";
	struct spool *sp = spool_open(&o, err, sizeof(err));

	EXPECT_STR(err[0] && !sp ? err : "", "");
	return sp;
}

static struct body make_body(uint64_t n, size_t len)
{
	struct body b = { .kind = BODY_OTLP,
			  .time_ns = clock_ns(CLOCK_REALTIME),
			  .samples = n,
			  .data = malloc(len),
			  .len = len };

	memset(b.data, (int)n, len);
	memcpy(b.id, &n, sizeof(n));
	return b;
}

static int add(struct spool *sp, uint64_t n, size_t len)
{
	struct body b = make_body(n, len);

	return spool_add(sp, &b);
}

/* Takes the next one, checks that it is n, and ends it. */
static void expect_next(struct spool *sp, uint64_t n, enum spool_outcome outcome)
{
	struct body b;
	uint64_t seq;
	bool again;
	int err = spool_take(sp, &b, &seq, &again);

	EXPECT_EQ(err, 0);
	if (err)
		return;
	EXPECT_EQ(b.samples, n);
	EXPECT(b.len && b.data[0] == (uint8_t)n && b.data[b.len - 1] == (uint8_t)n);
	EXPECT_EQ(b.kind, BODY_OTLP);
	free(b.data);
	spool_done(sp, seq, outcome);
}

static void expect_balance(struct spool *sp, uint64_t added, uint64_t delivered, uint64_t held)
{
	struct spool_account a;
	uint64_t done = 0, samples = 0;

	spool_account(sp, &a);
	for (int i = 0; i < SPOOL_OUTCOMES; i++) {
		done += a.done[i].entries;
		samples += a.done[i].samples;
	}
	EXPECT_EQ(a.added.entries, done + a.held.entries);
	EXPECT_EQ(a.added.samples, samples + a.held.samples);
	EXPECT_EQ(a.added.entries, added);
	EXPECT_EQ(a.done[SPOOL_DELIVERED].entries, delivered);
	EXPECT_EQ(a.held.entries, held);
}

static void in_order(const char *in)
{
	struct spool *sp = open_spool(in, 1 << 20);
	struct body b;
	uint64_t seq;
	bool again;

	for (uint64_t i = 1; i <= 5; i++)
		EXPECT_EQ(add(sp, i, 100 * i), 0);
	expect_balance(sp, 5, 0, 5);
	expect_next(sp, 1, SPOOL_DELIVERED);
	EXPECT_EQ(spool_take(sp, &b, &seq, &again), 0);
	EXPECT_EQ(b.samples, 2);
	EXPECT(!again);
	free(b.data);
	spool_keep(sp, seq);
	expect_next(sp, 2, SPOOL_REFUSED);
	for (uint64_t i = 3; i <= 5; i++)
		expect_next(sp, i, SPOOL_DELIVERED);
	EXPECT_EQ(spool_take(sp, &b, &seq, &again), -ENOENT);
	expect_balance(sp, 5, 4, 0);
	spool_close(sp);
}

TEST_IN_DIR(spool_is_a_queue_on_disk)
{
	in_order(dir);
}

TEST(spool_is_a_queue_in_memory)
{
	in_order(NULL);
}

TEST_IN_DIR(spool_resumes)
{
	struct spool_account a;
	struct spool *sp;

	sp = open_spool(dir, 1 << 20);
	add(sp, 7, 10);
	add(sp, 8, 10);
	expect_next(sp, 7, SPOOL_DELIVERED);
	spool_close(sp);
	sp = open_spool(dir, 1 << 20);
	expect_balance(sp, 2, 1, 1);
	add(sp, 9, 10);
	expect_next(sp, 8, SPOOL_DELIVERED);
	expect_next(sp, 9, SPOOL_DELIVERED);
	spool_account(sp, &a);
	EXPECT_EQ(a.done[SPOOL_DELIVERED].samples, 24);
	spool_close(sp);
}

TEST_IN_DIR(spool_drops_the_oldest_when_full)
{
	struct spool_account a;
	struct spool *sp;

	sp = open_spool(dir, 64 << 10);
	for (uint64_t i = 1; i <= 10; i++)
		EXPECT_EQ(add(sp, i, 15000), 0);
	spool_account(sp, &a);
	EXPECT_EQ(a.held.entries, 4);
	EXPECT_EQ(a.done[SPOOL_FULL].entries, 6);
	EXPECT_EQ(a.done[SPOOL_FULL].samples, 21);
	EXPECT(a.bytes <= 64 << 10);
	EXPECT_EQ(add(sp, 11, 70000), -ENOSPC);
	expect_next(sp, 7, SPOOL_DELIVERED);
	spool_close(sp);
}

/* What is being sent stays, though it is the oldest. */
TEST_IN_DIR(spool_keeps_what_is_taken)
{
	struct spool *sp;
	struct body b;
	uint64_t seq;
	bool again;

	sp = open_spool(dir, 64 << 10);
	add(sp, 1, 30000);
	EXPECT_EQ(spool_take(sp, &b, &seq, &again), 0);
	free(b.data);
	add(sp, 2, 30000);
	add(sp, 3, 30000);
	spool_done(sp, seq, SPOOL_DELIVERED);
	expect_next(sp, 3, SPOOL_DELIVERED);
	expect_balance(sp, 3, 2, 0);
	spool_close(sp);
}

TEST(spool_drops_what_is_old)
{
	struct spool_opts o = { .max_bytes = 1 << 20, .max_age_ns = 1000000000 };
	struct spool_account a;
	char err[100];
	struct spool *sp = spool_open(&o, err, sizeof(err));
	struct body old = make_body(1, 10), ahead = make_body(3, 10);

	old.time_ns -= 2000000000;
	ahead.time_ns += 900000000000; /* the clock was set back since */
	spool_add(sp, &old);
	add(sp, 2, 10);
	spool_add(sp, &ahead);
	expect_next(sp, 2, SPOOL_DELIVERED);
	expect_next(sp, 3, SPOOL_DELIVERED);
	spool_account(sp, &a);
	EXPECT_EQ(a.done[SPOOL_OLD].entries, 1);
	spool_close(sp);
}

TEST_IN_DIR(spool_is_one_agents)
{
	struct spool_opts o = { .max_bytes = 1 << 20, .max_age_ns = 1 };
	char err[256];
	struct spool *sp;

	sp = open_spool(dir, 1 << 20);
	o.dir = dir;
	EXPECT(!spool_open(&o, err, sizeof(err)));
	EXPECT(strstr(err, "another agent") != NULL);
	spool_close(sp);
}

TEST_IN_DIR(spool_knows_what_was_being_sent)
{
	struct spool *sp;
	struct body b;
	uint64_t seq;
	bool again;

	sp = open_spool(dir, 1 << 20);
	add(sp, 1, 10);
	add(sp, 2, 10);
	spool_take(sp, &b, &seq, &again);
	free(b.data);
	spool_sending(sp, seq);
	spool_close(sp); /* as a crash would leave it */
	sp = open_spool(dir, 1 << 20);
	EXPECT_EQ(spool_take(sp, &b, &seq, &again), 0);
	EXPECT(again);
	free(b.data);
	spool_done(sp, seq, SPOOL_UNSURE);
	EXPECT_EQ(spool_take(sp, &b, &seq, &again), 0);
	EXPECT(!again);
	free(b.data);
	spool_close(sp);
}

static void *add_one(void *sp)
{
	EXPECT_EQ(add(sp, 1, 10), 0);
	return NULL;
}

/* A pipe in the place of the file does not open until it is read: a disk that does not answer. */
TEST_IN_DIR(spool_shows_its_state_meanwhile)
{
	struct spool_opts o = { .max_bytes = 2 << 20, .max_age_ns = 3600000000000ull };
	struct spool *sp = open_spool(dir, 1 << 20);
	struct spool_account a;
	pthread_t writer;
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%016x.tmp", dir, 1);
	EXPECT(!mkfifo(path, 0600));
	EXPECT(!pthread_create(&writer, NULL, add_one, sp));
	usleep(100000);
	spool_account(sp, &a);
	EXPECT_EQ(a.held.entries, 0);
	spool_limits(sp, &o);
	spool_wake(sp);
	spool_wait(sp);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	EXPECT(fd >= 0);
	pthread_join(writer, NULL);
	close(fd);
	spool_account(sp, &a);
	EXPECT_EQ(a.held.entries, 1);
	EXPECT_EQ(a.in_memory, 1); /* a pipe cannot be fsync'ed */
	expect_next(sp, 1, SPOOL_DELIVERED);
	spool_close(sp);
}

/* Lower bounds hold for what is there. */
TEST_IN_DIR(spool_limits_later)
{
	struct spool_opts o = { .max_bytes = 64 << 10, .max_age_ns = 3600000000000ull };
	struct spool *sp = open_spool(dir, 1 << 20);

	for (uint64_t i = 1; i <= 10; i++)
		EXPECT_EQ(add(sp, i, 15000), 0);
	spool_limits(sp, &o);
	expect_next(sp, 7, SPOOL_DELIVERED);
	expect_balance(sp, 10, 1, 3);
	spool_close(sp);
}

/* A process that adds and delivers as fast as it can, and is killed. */
static void busy_child(const char *in)
{
	struct spool *sp = open_spool(in, 256 << 10);

	for (uint64_t n = 1;; n++) {
		struct body b;
		uint64_t seq;
		bool again;

		add(sp, n % 200 + 1, 500);
		if (n % 3 && !spool_take(sp, &b, &seq, &again)) {
			free(b.data);
			spool_sending(sp, seq);
			spool_done(sp, seq, n % 2 ? SPOOL_DELIVERED : SPOOL_REFUSED);
		}
	}
}

TEST_IN_DIR(account_adds_up_after_kill)
{
	struct spool_account a = { 0 };
	struct timespec pause = { 0 };
	struct spool *sp;
	uint64_t done, samples;

	/* On a loaded machine, children are killed before they have delivered anything. */
	for (int round = 0; round < (a.done[SPOOL_DELIVERED].entries ? 20 : 500); round++) {
		pid_t child = fork();

		if (!child)
			busy_child(dir);
		pause.tv_nsec = 20000000 + round % 20 * 1777777;
		nanosleep(&pause, NULL);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		sp = open_spool(dir, 256 << 10);
		done = samples = 0;
		spool_account(sp, &a);
		for (int i = 0; i < SPOOL_OUTCOMES; i++) {
			done += a.done[i].entries;
			samples += a.done[i].samples;
		}
		EXPECT_EQ(a.added.entries, done + a.held.entries);
		EXPECT_EQ(a.added.samples, samples + a.held.samples);
		EXPECT_EQ(a.done[SPOOL_CRASHED].entries, 0);
		EXPECT_EQ(a.done[SPOOL_DAMAGED].entries, 0);
		spool_close(sp);
	}
	EXPECT(a.done[SPOOL_DELIVERED].entries > 0);
}
