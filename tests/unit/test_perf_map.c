/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/perf_map.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/user_account.h"
#include "elf_reader.h"
#include "jit/map_ages.h"
#include "samples.h"
#include "sym/symbolizer.h"
#include "test.h"

static char path[64];

/* A process of its own for each test: what is known of one is kept. */
static pid_t start(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void end(pid_t pid, struct perf_maps *pm, struct test_paths *paths)
{
	stop(pid);
	unlink(path);
	perf_maps_free(pm);
	close_paths(paths);
}

static void append(const char *text)
{
	FILE *f = fopen(path, "a");

	EXPECT(f);
	if (!f)
		return;
	fputs(text, f);
	fclose(f);
}

static const char *name(struct perf_maps *pm, pid_t pid, uint64_t addr)
{
	const char *s = perf_maps_find(pm, (uint32_t)pid, addr, 0);

	return s ? s : "-";
}

static void wait_to_look_again(void)
{
	usleep(250000);
}

TEST(perf_map_lines)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid = start();

	append("7f0000001000 100 first function\n"
	       "0x7f0000001100 0x10 with prefixes\n"
	       "nonsense\n\n 5 5 x\n7f 0 empty\n7f\nffffffffffffffff 10 wraps\n"
	       "7f0000001108 4 newer inside\n"
	       "7f0000001200 80 old\n7f0000001240 80 new\n7f0000001240 40 newest\n"
	       "7f0000001300 10 half a li");
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "first function");
	EXPECT_STR(name(pm, pid, 0x7f00000010ff), "first function");
	EXPECT_STR(name(pm, pid, 0x7f0000001100), "with prefixes");
	EXPECT_STR(name(pm, pid, 0x7f0000001108), "newer inside");
	EXPECT_STR(name(pm, pid, 0x7f000000110c), "with prefixes");
	EXPECT_STR(name(pm, pid, 0x7f0000001110), "-");
	EXPECT_STR(name(pm, pid, 0x7f0000001200), "old");
	EXPECT_STR(name(pm, pid, 0x7f0000001240), "newest");
	EXPECT_STR(name(pm, pid, 0x7f0000001290), "new");
	EXPECT_STR(name(pm, pid, 0x7f00000012c0), "-");
	EXPECT_STR(name(pm, pid, 0x7f0000001300), "-");
	EXPECT_STR(name(pm, pid, 0), "-");
	append("ne\n7f0000001000 100 again\n");
	/* Not asked at every call */
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "first function");
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "again");
	EXPECT_STR(name(pm, pid, 0x7f0000001300), "half a line");
	EXPECT_STR(name(pm, pid, 0x7f0000001240), "newest");
	unlink(path);
	append("7f0000001000 100 another file\n");
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x7f0000001000), "another file");
	EXPECT_STR(name(pm, pid, 0x7f0000001240), "-");
	append("7f0000002000 100 written at the end\n");
	stop(pid);
	wait_to_look_again();
	/* dead, but was seen */
	EXPECT_STR(name(pm, pid, 0x7f0000002000), "written at the end");
	unlink(path);
	perf_maps_free(pm);
	close_paths(&paths);
}

static const char *name_then(struct perf_maps *pm, pid_t pid, uint32_t epoch)
{
	const char *s = perf_maps_find(pm, (uint32_t)pid, 0x1010, epoch);

	return s ? s : "-";
}

/* A sample that is taken now */
static uint32_t see(struct perf_maps *pm, pid_t pid)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return perf_maps_see(pm, (uint32_t)pid, now, now);
}

/* Samples of code whose memory is used again have the name of what was there. */
TEST(perf_map_replaced)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	uint32_t early, first, unsure, second, third;
	pid_t pid = start();

	early = see(pm, pid);
	append("1000 100 zero\n1000 100 one\n");
	wait_to_look_again();
	see(pm, pid);
	first = see(pm, pid);
	EXPECT_EQ(see(pm, pid), first);
	append("2000 100 elsewhere\n");
	usleep(30000);
	EXPECT_EQ(see(pm, pid), first);
	append("1000 80 two\n");
	usleep(30000);
	unsure = perf_maps_see(pm, (uint32_t)pid, clock_ns(CLOCK_MONOTONIC) - 10000000,
			       clock_ns(CLOCK_MONOTONIC) - 10000000);
	EXPECT(unsure != first);
	usleep(30000);
	second = see(pm, pid);
	EXPECT(second != unsure && second != first);
	append("1000 100 three\n1000 100 two\n");
	usleep(30000);
	see(pm, pid);
	third = see(pm, pid);
	EXPECT_STR(name_then(pm, pid, early), JIT_REPLACED);
	EXPECT_STR(name_then(pm, pid, first), "one");
	EXPECT_STR(name_then(pm, pid, unsure), JIT_REPLACED);
	EXPECT_STR(name_then(pm, pid, second), "two");
	EXPECT_STR(name_then(pm, pid, third - 1), JIT_REPLACED); /* two, three, two */
	EXPECT_STR(name_then(pm, pid, third), "two");
	EXPECT_STR(name_then(pm, pid, 0), "two");
	end(pid, pm, &paths);
}

/* What was read before a file was written anew is not known any more. */
TEST(perf_map_written_anew)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid = start();
	uint32_t old, fresh;

	append("1000 100 one, with a long name\n");
	old = see(pm, pid);
	EXPECT_EQ(truncate(path, 0), 0);
	append("1000 80 two\n1000 90 2\n");
	usleep(30000);
	see(pm, pid);
	fresh = see(pm, pid);
	EXPECT_STR(name_then(pm, pid, old), JIT_REPLACED);
	EXPECT_STR(name_then(pm, pid, fresh), "2");
	unlink(path);
	append("1000 100 three\n1000 100 four\n");
	wait_to_look_again();
	EXPECT_STR(name_then(pm, pid, 0), "four");
	EXPECT_STR(name_then(pm, pid, fresh), JIT_REPLACED);
	EXPECT_STR(name_then(pm, pid, see(pm, pid)), "four");
	end(pid, pm, &paths);
}

/* Many changes: epochs are used again, and mean the latest generation. */
TEST(map_ages_many)
{
	struct map_ages a = { 0 };
	uint64_t from, to;
	uint32_t epoch;

	map_ages_read(&a, false, true, 10, 11);
	for (uint64_t i = 1; i < 5000; i++) {
		EXPECT_EQ(map_ages_next(&a), 2 * i);
		map_ages_read(&a, false, true, 20 * i - 10, 20 * i - 9);
		map_ages_read(&a, true, true, 20 * i, 20 * i + 5);
		epoch = map_ages_epoch(&a, 20 * i + 5, 20 * i + 5, false);
		EXPECT(map_ages_span(&a, epoch, &from, &to));
		EXPECT(from == 2 * i && to == 2 * i + 1);
		epoch = map_ages_epoch(&a, 20 * i + 4, 20 * i + 4, false);
		EXPECT(map_ages_span(&a, epoch, &from, &to));
		EXPECT(from == 2 * i - 2 && to == 2 * i + 1);
		epoch = map_ages_epoch(&a, 20 * i - 15, 20 * i - 15, false);
		EXPECT(map_ages_span(&a, epoch, &from, &to));
		EXPECT(from == 2 * i - 2 && to == 2 * i - 1);
	}
	/* Lines that cannot be read now */
	epoch = map_ages_epoch(&a, 200000, 200000, true);
	EXPECT(!map_ages_span(&a, epoch, &from, &to));
	map_ages_read(&a, false, false, 200000, 200001);
	EXPECT(!map_ages_span(&a, epoch, &from, &to));
	map_ages_read(&a, false, true, 200010, 200011);
	EXPECT(map_ages_span(&a, epoch, &from, &to));
	EXPECT(from == 9998 && to == 10001);
	EXPECT(map_ages_span(&a, 0, &from, &to));
	EXPECT(!from && !to);
}

TEST(perf_map_not_its_own)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid;

	if (geteuid() != 0) {
		perf_maps_free(pm);
		close_paths(&paths);
		SKIP("needs root to give files away");
	}
	pid = start();
	append("1000 100 foreign\n");
	EXPECT_EQ(chown(path, 65534, 65534), 0);
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	unlink(path);
	EXPECT_EQ(mkfifo(path, 0600), 0);
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	unlink(path);
	EXPECT_EQ(symlink("/dev/zero", path), 0);
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	unlink(path);
	append("1000 100 own\n");
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x1000), "own");
	stop(pid);
	unlink(path);
	EXPECT_STR(name(pm, 0x7ffffff0, 0x1000), "-"); /* no such process */
	perf_maps_free(pm);
	close_paths(&paths);
}

/* Sets the time of the file's last write, by the clock of the day. */
static void set_written(const char *file, int64_t ns_from_now, bool whole)
{
	int64_t at = (int64_t)clock_ns(CLOCK_REALTIME) + ns_from_now;
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT },
				  { at / (int64_t)NUM_S, whole ? 0 : at % (int64_t)NUM_S } };

	EXPECT_EQ(utimensat(AT_FDCWD, file, ts, 0), 0);
}

/* A map or a dump of an earlier process with the same PID. */
TEST(perf_map_left_over)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid = start();
	char dump[64];
	FILE *f;

	snprintf(dump, sizeof(dump), "/tmp/jit-%d.dump", pid);
	f = fopen(dump, "w");
	EXPECT(f);
	if (f)
		fclose(f);
	append("1000 100 old\n");
	set_written(path, -(int64_t)(NUM_S / 4), false);
	set_written(dump, -(int64_t)(10 * NUM_S), false);
	EXPECT_EQ(see(pm, pid), MAP_AGES_NO_FILE); /* a dump would have seconds */
	EXPECT_STR(name(pm, pid, 0x1000), "-");
	/* A process that goes on with it */
	append("2000 100 new\n");
	wait_to_look_again();
	EXPECT_STR(name(pm, pid, 0x2000), "new");
	end(pid, pm, &paths);
	/* As soon as it begins, and where times are whole seconds */
	for (int i = 0; i < 2; i++) {
		paths = open_paths(path_worker_main);
		pm = open_maps(&paths);
		pid = start();
		append("1000 100 own\n");
		if (i)
			set_written(path, 0, true);
		EXPECT_STR(name(pm, pid, 0x1000), "own");
		end(pid, pm, &paths);
	}
	unlink(dump);
}

TEST(perf_map_names)
{
	struct modules *ms = modules_new();
	struct symbolizer *sz = symbolizer_new(ms);
	struct test_paths paths = open_paths(path_worker_main);
	uint64_t frame = JIT(0x1010);
	pid_t pid = start();
	bool is_final;
	uint32_t id;

	symbolizer_set_reader(sz, NULL, paths.o);
	symbolizer_see(sz, &frame, 1, (uint32_t)pid, 1, 1);
	id = symbolizer_user(sz, frame, (uint32_t)pid, &is_final);
	EXPECT_STR(symbolizer_name(sz, id), "[unknown]_[j]");
	EXPECT(!is_final);
	append("1000 100 JS:*f\x1b[31m;\xff\n");
	wait_to_look_again();
	id = symbolizer_user(sz, frame, (uint32_t)pid, &is_final);
	EXPECT_STR(symbolizer_name(sz, id), "JS:*f.[31m;\xef\xbf\xbd_[j]");
	EXPECT_STR(symbolizer_module(sz, id), "[jit]");
	EXPECT(is_final);
	stop(pid);
	unlink(path);
	symbolizer_free(sz);
	close_paths(&paths);
	modules_free(ms);
}

/* More processes than are kept, and a file larger than is read at once. */
TEST(perf_map_many)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	pid_t pid = start();
	FILE *f = fopen(path, "w");

	for (unsigned int i = 0; f && i < 200000; i++)
		fprintf(f, "%x 10 function number %u\n", 0x100000 + i * 16, i);
	if (f)
		fclose(f);
	EXPECT_STR(name(pm, pid, 0x100000 + 199999 * 16 + 15), "function number 199999");
	EXPECT_STR(name(pm, pid, 0x100000 + 77 * 16), "function number 77");
	for (pid_t other = 1; other < 1000; other++)
		if (other != pid) /* numbers of processes begin anew */
			perf_maps_find(pm, (uint32_t)other, 0x1000, 0);
	EXPECT(perf_maps_bytes(pm) < 1 << 20);
	/* On a busy machine the others may have used up the time for reading. */
	allowance_init(paths.allowance);
	EXPECT_STR(name(pm, pid, 0x100000), "function number 0");
	end(pid, pm, &paths);
}

/* One file under eight processes' names is read once. */
TEST(perf_map_one_copy)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	char names[8][sizeof(path)];
	pid_t pids[8];
	size_t one = 0;
	FILE *f;

	for (int i = 0; i < 8; i++) {
		pids[i] = start();
		memcpy(names[i], path, sizeof(path));
		/* A file from before the process began is not its own. */
		if (i)
			EXPECT(!link(names[0], path) && !utimensat(AT_FDCWD, path, NULL, 0));
		f = i ? NULL : fopen(path, "w");
		for (unsigned int k = 0; f && k < 100000; k++)
			fprintf(f, "%x 10 function number %u\n", 0x100000 + k * 16, k);
		if (f)
			fclose(f);
		EXPECT_STR(name(pm, pids[i], 0x100000 + 77 * 16), "function number 77");
		one = i ? one : perf_maps_bytes(pm);
	}
	EXPECT(one > 5 << 20 && perf_maps_bytes(pm) < one + (1 << 20));
	for (int i = 0; i < 8; i++) {
		stop(pids[i]);
		unlink(names[i]);
	}
	perf_maps_free(pm);
	close_paths(&paths);
}

/* ---- The budget ---- */

/* After it was read, a file rests ten times as long. Long names take memory, and little reading. */
#define LINES	   16000
#define NAME_BYTES 240
#define FILE_BYTES (LINES * (sizeof("10000000 10 \n") - 1 + NAME_BYTES))

static int big_file(void)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	FILE *f = fdopen(dup(fd), "w");

	for (unsigned int i = 0; f && i < LINES; i++)
		fprintf(f, "%08x 10 %0*u\n", 0x10000000 + i * 32, NAME_BYTES, i);
	if (f)
		fclose(f);
	return fd;
}

static struct worker_totals totals;

static struct jit_file *read_as(struct jit_files *fs, int fd, uint64_t ino, uint32_t uid)
{
	struct jit_file *f = jit_file_get(fs, JIT_MAP, 1, ino, uid);
	struct allowance allowance;
	struct stat st;

	fstat(fd, &st);
	/* A busy machine may take more time than one reading has. */
	do {
		while (!jit_file_due(f))
			usleep(100);
		allowance_init(&allowance);
		jit_file_read(fs, f, fd, (uint64_t)st.st_size, 1, &allowance);
		worker_totals_add(&totals, &allowance.totals);
	} while (jit_file_wish(f).more && jit_file_wish(f).from < (uint64_t)st.st_size);
	return f;
}

static bool has(struct jit_files *fs, struct jit_file *f, unsigned int line)
{
	struct allowance allowance;
	bool found;

	allowance_init(&allowance);
	found = jit_file_find(fs, f, 0x10000000 + line * 32, (struct jit_span){ 0 }, &allowance);
	worker_totals_add(&totals, &allowance.totals);
	return found;
}

/* A file that is larger than one may be is read from its beginning. */
TEST(jit_files_one_limit)
{
	struct jit_files *fs = jit_files_new();
	int fd = memfd_create("map", MFD_CLOEXEC);
	FILE *w = fdopen(dup(fd), "w");
	struct jit_file *f;

	totals = (struct worker_totals){ 0 };
	for (unsigned int i = 0; w && i < 700000; i++)
		fprintf(w, "%08x 10 n\n", 0x10000000 + i * 32);
	if (w)
		fclose(w);
	f = read_as(fs, fd, 1, 1000);
	EXPECT(jit_files_bytes(fs) > JIT_FILE_MAX / 2);
	EXPECT(jit_files_bytes(fs) < JIT_FILE_MAX + (1 << 20));
	EXPECT(has(fs, f, 0) && has(fs, f, 100000) && !has(fs, f, 699999));
	EXPECT_EQ(totals.cut, 1);
	EXPECT(!jit_file_wish(f).more);
	jit_files_free(fs);
	close(fd);
}

/* A user's many files take what is free, and give back what is above his share. */
TEST(jit_files_shares)
{
	struct jit_files *fs = jit_files_new();
	struct jit_file *own, *small, *first, *late;
	int fd = big_file();

	totals = (struct worker_totals){ 0 };
	own = read_as(fs, fd, 100, 1);
	small = read_as(fs, fd, 101, 2);
	EXPECT(has(fs, own, 5) && has(fs, small, 5));
	first = read_as(fs, fd, 1, 1000);
	EXPECT(has(fs, first, LINES - 1));
	for (uint64_t ino = 2; ino < 24; ino++) {
		struct jit_file *f = read_as(fs, fd, ino, 1000);

		EXPECT(jit_files_bytes(fs) < JIT_FILES_MAX + (4 << 20));
		EXPECT(has(fs, f, 5)); /* his newest is there, for his oldest */
	}
	EXPECT(!has(fs, first, 5));
	EXPECT(totals.deferred > 0);
	EXPECT(has(fs, own, LINES - 1) && has(fs, small, LINES - 1));
	/* One who comes when all is taken gets his share. */
	late = read_as(fs, fd, 200, 3);
	EXPECT(has(fs, late, LINES - 1));
	EXPECT(has(fs, own, LINES - 1) && has(fs, small, LINES - 1));
	jit_files_free(fs);
	close(fd);
}

/* All ids of a range of subordinate ids have one share. */
TEST(jit_files_one_account)
{
	struct jit_files *fs = jit_files_new();
	struct jit_file *own;
	int fd = big_file();

	user_ranges_use("anybody:100000:65536\n");
	own = read_as(fs, fd, 100, 1);
	for (uint32_t i = 1; i < 24; i++)
		read_as(fs, fd, i, 100000 + i);
	EXPECT(has(fs, own, LINES - 1));
	jit_files_free(fs);
	close(fd);
}

/* Without an allowance nothing is read; later it is. */
TEST(jit_files_no_time)
{
	struct jit_files *fs = jit_files_new();
	struct jit_file *f = jit_file_get(fs, JIT_MAP, 1, 1, 1000);
	struct allowance allowance;
	int fd = big_file();

	allowance_init(&allowance);
	allowance_spend(&allowance, 1000, 100 * NUM_S);
	jit_file_read(fs, f, fd, FILE_BYTES, 1, &allowance);
	EXPECT_EQ(allowance.totals.deferred, 1);
	EXPECT(!has(fs, f, 5) && !jit_file_due(f));
	allowance_init(&allowance);
	wait_to_look_again();
	EXPECT(jit_file_due(f));
	jit_file_read(fs, f, fd, FILE_BYTES, 1, &allowance);
	EXPECT(has(fs, f, 5));
	EXPECT(!jit_file_due(f)); /* not before some time that reading took has passed */
	jit_files_free(fs);
	close(fd);
}
