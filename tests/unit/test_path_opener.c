/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths that others arrange: what is opened for us, what is not, and what becomes of questions that
 * nobody answers.
 */
#include "paths/path_opener.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf_reader.h"
#include "files.h"
#include "proc_status.h"
#include "rooted.h"
#include "test.h"
#include "worker/sealed_file.h"

static struct path_answer answer;

static struct path_ask ask_for(uint32_t pid, uint32_t owner, const char *path)
{
	struct path_ask ask;

	path_ask_begin(&ask, PATH_FILE, pid, owner);
	path_ask_add(&ask, "%s", path);
	ask.most = 1 << 20;
	return ask;
}

/* What is at the path, "-": nothing that can be had. */
static const char *text_at(struct path_opener *o, struct path_ask *ask, int root)
{
	static char buf[64];
	int fd = path_open(o, ask, root, &answer);
	ssize_t n = fd < 0 ? -1 : pread(fd, buf, sizeof(buf) - 1, 0);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n < 0 ? "-" : buf;
}

TEST_IN_DIR(path_first_that_is_there)
{
	struct test_paths t = open_paths(path_worker_main);
	struct path_ask ask = ask_for(0, 0, in_dir("none"));

	write_file("one", "first");
	write_file("two", "second");
	EXPECT(run("mkfifo fifo && ln -s one link && ln -s /dev/zero zero"));
	path_ask_add(&ask, "%s", in_dir("fifo"));
	path_ask_add(&ask, "%s", in_dir("zero"));
	EXPECT_STR(text_at(t.o, &ask, -1), "-");
	path_ask_add(&ask, "%s", in_dir("link"));
	path_ask_add(&ask, "%s", in_dir("two"));
	EXPECT_EQ(ask.n, 5);
	EXPECT_STR(text_at(t.o, &ask, -1), "first");
	EXPECT_EQ(answer.place, 3);
	EXPECT_EQ(answer.size, 5);
	EXPECT_EQ(answer.uid, geteuid());
	ask.first = 4;
	EXPECT_STR(text_at(t.o, &ask, -1), "second");
	EXPECT_EQ(answer.place, 4);
	ask.first = 5;
	EXPECT_STR(text_at(t.o, &ask, -1), "-");
	EXPECT_EQ(path_open(NULL, &ask, -1, &answer), -ENOENT);
	close_paths(&t);
}

/* Paths that do not fit are left out, and the others are whole. */
TEST(path_ask_room)
{
	struct path_ask ask;
	char path[PATH_MAX];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = 0;
	path_ask_begin(&ask, PATH_FILE, 0, 0);
	path_ask_add(&ask, "/%s", path);
	EXPECT_EQ(ask.n, 0);
	for (int i = 0; i < 10; i++)
		path_ask_add(&ask, "%s", path);
	EXPECT_EQ(ask.n, 4);
	EXPECT_EQ(ask.len, sizeof(ask.paths));
	EXPECT_EQ(ask.paths[ask.len - 1], 0);
}

/* Below a root, also after its process's end; not out of it. */
TEST_IN_DIR(path_in_other_root)
{
	struct test_paths t = open_paths(path_worker_main);
	struct path_ask ask, root_ask;
	pid_t pid;
	int root;

	EXPECT(run(
		"mkdir root && echo -n theirs > root/file && ln -s $PWD/outside root/absolute && "
		"ln -s ../outside root/up && echo -n ours > outside"));
	pid = start_in_root(false);
	if (!pid) {
		close_paths(&t);
		SKIP("chroot needs root");
	}
	ask = ask_for((uint32_t)pid, 0, "/file");
	EXPECT_STR(text_at(t.o, &ask, -1), "theirs");
	ask = ask_for((uint32_t)pid, 0, "/absolute");
	EXPECT_STR(text_at(t.o, &ask, -1), "-");
	ask = ask_for((uint32_t)pid, 0, "/up");
	EXPECT_STR(text_at(t.o, &ask, -1), "-");
	ask = ask_for((uint32_t)pid, 0, "/file");
	ask.other_root = true;
	EXPECT_STR(text_at(t.o, &ask, -1), "theirs");
	ask = ask_for((uint32_t)getpid(), 0, in_dir("outside"));
	EXPECT_STR(text_at(t.o, &ask, -1), "ours");
	ask.other_root = true;
	EXPECT_STR(text_at(t.o, &ask, -1), "-");
	path_ask_begin(&root_ask, PATH_ROOT, (uint32_t)pid, 0);
	root = path_open(t.o, &root_ask, -1, &answer);
	EXPECT(root >= 0);
	stop_process(pid);
	ask = ask_for((uint32_t)pid, 0, "/file");
	EXPECT_STR(text_at(t.o, &ask, -1), "-");
	EXPECT_STR(text_at(t.o, &ask, root), "theirs");
	close(root);
	close_paths(&t);
}

/*
 * In somebody's overlay: who knows whose layers those are. A copy that nobody can change, all of it
 * or what is new.
 */
TEST_IN_DIR(path_copied)
{
	struct test_paths t = open_paths(path_worker_main);
	struct path_ask ask;
	char buf[16];
	pid_t pid;
	int fd;

	EXPECT(run("mkdir root lower && echo -n 0123456789 > lower/file && touch lower/empty"));
	pid = start_in_root(true);
	if (!pid) {
		close_paths(&t);
		SKIP("no overlay can be mounted");
	}
	ask = ask_for((uint32_t)pid, 0, "/file");
	fd = path_open(t.o, &ask, -1, &answer);
	EXPECT(fd >= 0 && sealed_file_is(fd) && answer.copied);
	EXPECT_EQ(answer.size, 10);
	EXPECT_EQ(pread(fd, buf, sizeof(buf), 0), 10);
	EXPECT(!memcmp(buf, "0123456789", 10));
	EXPECT(pwrite(fd, "x", 1, 0) < 0);
	close(fd);
	ask.most = 9;
	EXPECT_EQ(path_open(t.o, &ask, -1, &answer), -ENOENT);
	ask.part = true;
	EXPECT_STR(text_at(t.o, &ask, -1), "012345678");
	ask.from = 4;
	ask.ino = answer.ino;
	ask.most = 3;
	fd = path_open(t.o, &ask, -1, &answer);
	EXPECT_EQ(answer.size, 7);
	EXPECT(pread(fd, buf, sizeof(buf), 0) == 7 && !memcmp(buf,
							      "\0\0\0\0"
							      "456",
							      7));
	close(fd);
	ask.ino++; /* another file */
	EXPECT_STR(text_at(t.o, &ask, -1), "012");
	ask.ino = answer.ino;
	ask.from = 10;
	fd = path_open(t.o, &ask, -1, &answer);
	EXPECT_EQ(answer.size, 10);
	close(fd);
	ask.from = 11; /* it has become shorter */
	EXPECT_STR(text_at(t.o, &ask, -1), "012");
	ask = ask_for((uint32_t)pid, 0, "/empty");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	stop_process(pid);
	close_paths(&t);
}

/* Neither we nor the child keep a descriptor. */
TEST_IN_DIR(path_no_leak)
{
	struct test_paths t = open_paths(path_worker_main);
	struct path_ask ask = ask_for(0, 0, in_dir("none")), root_ask;
	int before = 0, theirs = 0;
	char of_child[64];
	pid_t child;

	write_file("file", "text");
	path_ask_add(&ask, "%s", in_dir("file"));
	for (int i = 0; i < 1100; i++) {
		int root;

		if (i == 100) {
			child = child_of(fork_server_pid(t.server));
			EXPECT(child > 0);
			snprintf(of_child, sizeof(of_child), "/proc/%d/fd", child);
			before = count_fds("/proc/self/fd");
			usleep(100000);
			theirs = count_fds(of_child);
		}
		ask.part = i & 1;
		EXPECT_STR(text_at(t.o, &ask, -1), "text");
		path_ask_begin(&root_ask, i % 3 ? PATH_ROOT : PATH_DUMP,
			       i % 5 ? (uint32_t)getpid() : 0x7ffffff0, 0);
		root = path_open(t.o, &root_ask, -1, &answer);
		if (root >= 0) {
			EXPECT_STR(text_at(t.o, &ask, root), "text");
			close(root);
		}
	}
	EXPECT_EQ(count_fds("/proc/self/fd"), before);
	/* It closes what it sent after we have it. */
	for (int i = 0; i < 200 && count_fds(of_child) != theirs; i++)
		usleep(10000);
	EXPECT_EQ(count_fds(of_child), theirs);
	printf("# %d descriptors here, %d there, before and after 1000 rounds\n", before - 3,
	       theirs - 2);
	close_paths(&t);
}

/* ---- Children that do not do what they shall ---- */

/* What is wrong with the answer is in the name of the file that is asked for. */
static void liar(int sock, int mem)
{
	static struct path_answer a;
	static struct path_ask ask;
	const char *how = ask.paths;
	int fd;

	while (!fork_receive_most(sock, &ask, offsetof(struct path_ask, paths), sizeof(ask), &fd, 1,
				  0)) {
		bool mute = !strcmp(how, "/mute"), dies = !strcmp(how, "/dies");

		close(fd);
		a = (struct path_answer){ .question = ask.question };
		if (!strcmp(how, "/kind"))
			a.question = PATH_ROOT;
		else if (!strcmp(how, "/error"))
			a.err = 5;
		else if (!strcmp(how, "/later"))
			a.err = -EAGAIN;
		else if (!strcmp(how, "/place"))
			a.place = 1;
		else if (!strcmp(how, "/endless"))
			memset(a.path, 'x', sizeof(a.path));
		while (mute)
			pause();
		if (dies)
			_exit(1);
		if (!strcmp(how, "/bare"))
			fork_send(sock, &a, sizeof(a), NULL, 0, 0);
		else if (!strcmp(how, "/short"))
			fork_send(sock, &a, sizeof(a) - 1, &mem, 1, 0);
		else if (!strcmp(how, "/two"))
			fork_send(sock, &a, sizeof(a), (const int[]){ mem, mem }, 2, 0);
		else
			fork_send(sock, &a, sizeof(a), &mem, 1, 0);
	}
	_exit(0);
}

TEST(path_lies)
{
	static const char *const lies[] = { "/kind",	"/error", "/later", "/place",
					    "/endless", "/bare",  "/short", "/dies" };
	struct test_paths t = open_paths(liar);
	const struct worker_totals *totals = &t.allowance->totals;
	struct path_ask ask = ask_for(0, 0, "/honest");
	int before;

	EXPECT_STR(text_at(t.o, &ask, -1), "");
	before = count_fds("/proc/self/fd");
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		ask = ask_for(0, 0, lies[i]);
		EXPECT_EQ(path_open(t.o, &ask, -1, &answer), -ECHILD);
		EXPECT_EQ(totals->failed, i + 1);
		EXPECT_EQ(totals->died, 2 * (i + 1)); /* it is asked twice */
		ask = ask_for(0, 0, "/honest");
		EXPECT_STR(text_at(t.o, &ask, -1), "");
	}
	ask = ask_for(0, 0, "/two"); /* descriptors: the second one is closed */
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	EXPECT_EQ(count_fds("/proc/self/fd"), before);
	EXPECT_EQ(totals->late, 0);
	close_paths(&t);
}

static uint64_t asked_ms(struct path_opener *o, uint32_t pid, uint32_t owner, bool live, int *ret)
{
	struct path_ask ask = ask_for(pid, owner, "/mute");
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	ask.live = live;
	*ret = path_open(o, &ask, -1, &answer);
	return (clock_ns(CLOCK_MONOTONIC) - start) / NUM_MS;
}

/*
 * One that is not answered costs its process and user, for a while, and not the others; each is
 * counted.
 */
TEST(path_silence)
{
	struct test_paths t = open_paths(liar);
	const struct worker_totals *totals = &t.allowance->totals;
	struct path_ask ask;
	uint64_t ms;
	int err;

	ms = asked_ms(t.o, 7, 1000, true, &err);
	EXPECT_EQ(err, -ETIMEDOUT);
	EXPECT(ms >= 500 && ms < 1500);
	ask = ask_for(7, 1000, "/honest");
	/* The same process is not asked about */
	EXPECT_EQ(path_open(t.o, &ask, -1, &answer), -ETIMEDOUT);
	ask = ask_for(8, 1000, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	ms = asked_ms(t.o, 8, 1000, true, &err);
	EXPECT(err == -ETIMEDOUT && ms < 1500);
	ask = ask_for(9, 1000, "/honest");
	EXPECT_EQ(path_open(t.o, &ask, -1, &answer), -ETIMEDOUT); /* nor the user */
	ask = ask_for(9, 1001, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	ask = ask_for(9, 0, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	EXPECT_EQ(totals->late, 2);
	EXPECT_EQ(totals->failed, 4);
	EXPECT_EQ(totals->died, 0);
	/* More of them than are waited for at all, but for root's. */
	for (uint32_t i = 0; i < 20; i++)
		asked_ms(t.o, 100 + i, 2000 + i, true, &err);
	EXPECT(err == -ETIMEDOUT || err == -EAGAIN);
	ask = ask_for(0, 0, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	close_paths(&t);
}

/*
 * Where others have had their share of the time a user has a little of his own; then they wait, and
 * root does not.
 */
TEST(path_later)
{
	struct test_paths t = open_paths(liar);
	const struct worker_totals *totals = &t.allowance->totals;
	struct path_ask ask;

	t.allowance->left[ALLOWANCE_OTHERS].ns = 0;
	ask = ask_for(9, 1000, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	allowance_spend(t.allowance, 1000, NUM_S);
	EXPECT_EQ(path_open(t.o, &ask, -1, &answer), -EAGAIN);
	ask = ask_for(9, 0, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	allowance_end(t.allowance);
	ask = ask_for(9, 1000, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	EXPECT_EQ(totals->deferred, 1);
	EXPECT_EQ(totals->late + totals->failed, 0);
	close_paths(&t);
}

/* At the end two seconds are for all, however many users do not answer. Root has a part of them. */
TEST(path_silence_at_end)
{
	struct test_paths t = open_paths(liar);
	const struct worker_totals *totals = &t.allowance->totals;
	struct path_ask ask;
	uint64_t sum = 0;
	int err;

	allowance_end(t.allowance);
	for (uint32_t i = 0; i < 100; i++) {
		sum += asked_ms(t.o, 100 + i, 1000 + i, false, &err);
		EXPECT(err == -ETIMEDOUT || err == -EAGAIN);
	}
	EXPECT_EQ(totals->failed + totals->deferred, 100);
	EXPECT(totals->late >= 2 && totals->late <= 8); /* longer ones on a busy machine */
	ask = ask_for(9, 0, "/honest");
	EXPECT_STR(text_at(t.o, &ask, -1), "");
	for (uint32_t i = 0; i < 100; i++) {
		sum += asked_ms(t.o, 300 + i, 0, false, &err);
		EXPECT(err == -ETIMEDOUT || err == -EAGAIN);
	}
	EXPECT(sum < ALLOWANCE_END_NS / NUM_MS + 500);
	printf("# 200 questions without an answer: %d ms\n", (int)sum);
	close_paths(&t);
}
