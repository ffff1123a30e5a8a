/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/jit_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf_reader.h"
#include "jit/perf_map.h"
#include "test.h"

#define S 1000000000ull

static char path[64];

/* A dump as perf_maps has it, without a process. */
struct dump {
	struct jit_files *fs;
	struct jit_file *f;
	struct allowance allowance;
};

static struct dump *dump_new(void)
{
	struct dump *d = calloc(1, sizeof(*d));

	d->fs = jit_files_new();
	d->f = jit_file_get(d->fs, JIT_DUMP, 1, 1, 1);
	allowance_init(&d->allowance);
	return d;
}

static void dump_free(struct dump *d)
{
	jit_file_put(d->fs, d->f);
	jit_files_free(d->fs);
	free(d);
}

/* A small writer, after the specification. */
static int begin(uint64_t flags)
{
	struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} h = {
		0x4a695444, 1, sizeof(h), 62, 0, (uint32_t)getpid(), 0, flags,
	};
	int fd;

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	EXPECT(fd >= 0 && write(fd, &h, sizeof(h)) == sizeof(h));
	return fd;
}

static void put(int fd, uint32_t id, uint64_t time, const void *body, size_t len, const char *name,
		size_t code)
{
	struct {
		uint32_t id, size;
		uint64_t time;
	} head = { id, (uint32_t)(sizeof(head) + len + (name ? strlen(name) + 1 : 0) + code),
		   time };
	char *zeros = calloc(1, code + 1);
	bool ok = write(fd, &head, sizeof(head)) == sizeof(head) &&
		  write(fd, body, len) == (ssize_t)len;

	if (name)
		ok &= write(fd, name, strlen(name) + 1) == (ssize_t)strlen(name) + 1;
	ok &= write(fd, zeros, code) == (ssize_t)code;
	EXPECT(ok);
	free(zeros);
}

static void load(int fd, uint64_t time, uint64_t addr, uint64_t size, const char *name)
{
	struct {
		uint32_t pid, tid;
		uint64_t vma, addr, size, index;
	} b = { 1, 1, addr, addr, size, 0 };

	put(fd, 0, time, &b, sizeof(b), name, size);
}

static void move(int fd, uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	struct {
		uint32_t pid, tid;
		uint64_t vma, from, to, size, index;
	} b = { 1, 1, to, from, to, size, 0 };

	put(fd, 1, time, &b, sizeof(b), NULL, 0);
}

static void look(struct dump *d, int fd)
{
	struct stat st;

	while (!jit_file_due(d->f))
		usleep(100);
	EXPECT(!fstat(fd, &st));
	jit_file_read(d->fs, d->f, fd, (uint64_t)st.st_size, 1, &d->allowance);
}

/* A busy machine may take more time than one reading has. */
static void look_at_all(struct dump *d, int fd)
{
	struct stat st;

	EXPECT(!fstat(fd, &st));
	do
		look(d, fd);
	while (jit_file_wish(d->f).more && jit_file_wish(d->f).from < (uint64_t)st.st_size);
}

static const char *at(struct dump *d, uint64_t addr, uint64_t from, uint64_t to)
{
	const char *s = jit_file_find(d->fs, d->f, addr, (struct jit_span){ from, to },
				      &d->allowance);

	return s ? s : "-";
}

TEST(jit_dump_names)
{
	struct dump *d = dump_new();
	int fd = begin(0);

	load(fd, 1 * S, 0x1000, 0x100, "first");
	load(fd, 1 * S, 0x2000, 300000, "larger than what is read at once");
	load(fd, 1 * S, 0x100000, 0x40, "behind it");
	look(d, fd);
	EXPECT_STR(at(d, 0x1000, 0, 0), "first");
	EXPECT_STR(at(d, 0x10ff, 0, 0), "first");
	EXPECT_STR(at(d, 0x1100, 0, 0), "-");
	EXPECT_STR(at(d, 0xfff, 0, 0), "-");
	EXPECT_STR(at(d, 0x2000 + 299999, 0, 0), "larger than what is read at once");
	EXPECT_STR(at(d, 0x100010, 0, 0), "behind it");
	/* It grows; half a record is read when the rest is there. */
	put(fd, 2, 2 * S, "debug info is passed over", 26, NULL, 0);
	load(fd, 2 * S, 0x200000, 0x40, "later");
	EXPECT_EQ(ftruncate(fd, lseek(fd, 0, SEEK_CUR) - 0x20), 0);
	look(d, fd);
	EXPECT_STR(at(d, 0x200010, 0, 0), "-");
	EXPECT_EQ(ftruncate(fd, lseek(fd, 0, SEEK_CUR)), 0);
	look(d, fd);
	EXPECT_STR(at(d, 0x200010, 0, 0), "later");
	close(fd);
	unlink(path);
	dump_free(d);
}

TEST(jit_dump_by_time)
{
	struct dump *d = dump_new();
	int fd = begin(0);

	load(fd, 10 * S, 0x1000, 0x100, "one");
	load(fd, 20 * S, 0x1080, 0x100, "two"); /* over a part of it */
	load(fd, 30 * S, 0x1000, 0x200, "three");
	move(fd, 40 * S, 0x1000, 0x9000, 0x200);
	load(fd, 50 * S, 0x9000, 0x10, "four");
	look(d, fd);
	EXPECT_STR(at(d, 0x1090, 12 * S, 13 * S), "one");
	EXPECT_STR(at(d, 0x1090, 20 * S, 21 * S), "two");
	EXPECT_STR(at(d, 0x1010, 25 * S, 26 * S), "one");
	EXPECT_STR(at(d, 0x1090, 35 * S, 36 * S), "three");
	EXPECT_STR(at(d, 0x1090, 0, 0), "three");
	/* Both were there in this second. */
	EXPECT_STR(at(d, 0x1090, 30 * S - S / 4, 31 * S - S / 4), JIT_REPLACED);
	EXPECT_STR(at(d, 0x1090, 29 * S + S / 4, 30 * S + S / 4), JIT_REPLACED);
	/* Before all of them; a record may be a little late. */
	EXPECT_STR(at(d, 0x1010, 1 * S, 2 * S), JIT_REPLACED);
	EXPECT_STR(at(d, 0x1010, 8 * S, 9 * S), JIT_REPLACED);
	EXPECT_STR(at(d, 0x1010, 9 * S, 10 * S), "one");
	EXPECT_STR(at(d, 0x9008, 38 * S, 39 * S), JIT_REPLACED);
	EXPECT_STR(at(d, 0x9008, 45 * S, 46 * S), "three");
	EXPECT_STR(at(d, 0x9008, 55 * S, 56 * S), "four");
	EXPECT_STR(at(d, 0x9018, 55 * S, 56 * S), "three");
	close(fd);
	unlink(path);
	dump_free(d);
}

TEST(jit_dump_own_clock)
{
	struct dump *d = dump_new();
	int fd = begin(1);

	load(fd, 77, 0x1000, 0x100, "one");
	load(fd, 78, 0x1000, 0x100, "two");
	look(d, fd);
	EXPECT_STR(at(d, 0x1000, 1 * S, 2 * S), "two");
	close(fd);
	unlink(path);
	dump_free(d);
}

/* Any file at all: no crash, no endless loop, and memory in proportion. */
TEST(jit_dump_damaged)
{
	static uint8_t good[4096];
	int fd = begin(0);
	ssize_t len;

	load(fd, 1 * S, 0x1000, 0x100, "one");
	load(fd, 2 * S, 0x1000, 0x100, "two");
	move(fd, 3 * S, 0x1000, 0x9000, 0x100);
	len = pread(fd, good, sizeof(good), 0);
	srand(1);
	for (int i = 0; i < 3000; i++) {
		struct dump *d = dump_new();
		uint8_t bad[4096];

		memcpy(bad, good, sizeof(bad));
		for (int k = 0; k < 1 + i % 8; k++)
			bad[rand() % len] = (uint8_t)(rand() % 3 ? rand() : 0xff);
		EXPECT_EQ(pwrite(fd, bad, (size_t)len, 0), len);
		look(d, fd);
		at(d, 0x1000, 0, 0);
		at(d, 0x1000, 1, UINT64_MAX);
		EXPECT(jit_files_bytes(d->fs) < 1 << 20);
		dump_free(d);
	}
	close(fd);
	unlink(path);
}

static uint64_t ms_since(uint64_t start)
{
	return (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / NUM_MS;
}

/* Another process's 900 frames in a range that was made 10,000 times. */
TEST(jit_dump_same_range)
{
	struct dump *d = dump_new();
	int fd = begin(0);
	uint64_t start;
	char name[32];

	for (unsigned int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "version %u", i);
		load(fd, 10 * S + i, 0x1000, 0x1000, name);
	}
	look_at_all(d, fd);
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint64_t i = 0; i < 900; i++) {
		EXPECT_STR(at(d, 0x1000 + i, 0, 0), "version 9999");
		EXPECT_STR(at(d, 0x1000 + i, 10 * S, 11 * S), JIT_REPLACED);
		EXPECT_STR(at(d, 0x1000 + i, 9 * S, 10 * S), "version 0");
		EXPECT_STR(at(d, 0x1000 + i, 1 * S, 2 * S), JIT_REPLACED);
	}
	printf("# 3,600 lookups: %" PRIu64 " ms\n", ms_since(start));
	EXPECT(ms_since(start) < 100);
	close(fd);
	unlink(path);
	dump_free(d);
}

/* A move is known by its piece's own number, in whatever order and however often pieces move. */
TEST(jit_dump_moves)
{
	enum { PIECES = 1000, MOVES = 300000 };
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, from, to, len, index;
	} * m;
	struct dump *d = dump_new();
	int fd = begin(0);
	uint64_t start;
	char name[32];

	m = calloc(MOVES, sizeof(*m));
	for (uint64_t i = 0; i < PIECES; i++) {
		struct {
			uint32_t pid, tid;
			uint64_t vma, addr, size, index;
		} b = {
			1, 1, 0, 64 * i, 64, i,
		};

		snprintf(name, sizeof(name), "piece %" PRIu64, i);
		put(fd, 0, 1 * S, &b, sizeof(b), name, 0);
	}
	for (uint64_t i = 0; i < MOVES; i++) {
		m[i].id = 1;
		m[i].size = sizeof(*m);
		m[i].time = 2 * S + i;
		m[i].to = 0x1000000 + 64 * (i / 3); /* three moves to each place */
		m[i].len = 64;
		m[i].index = i % PIECES;
	}
	m[5].index = UINT64_MAX; /* nobody's */
	EXPECT(write(fd, m, MOVES * sizeof(*m)) == (ssize_t)(MOVES * sizeof(*m)));
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	look_at_all(d, fd);
	printf("# 300,000 moves: %" PRIu64 " ms\n", ms_since(start));
	EXPECT(ms_since(start) < 2000);
	for (uint64_t i = 0; i < MOVES; i += 3000) {
		snprintf(name, sizeof(name), "piece %" PRIu64, (i + 2) % PIECES);
		EXPECT_STR(at(d, 0x1000000 + 64 * (i / 3), 0, 0), name);
		snprintf(name, sizeof(name), "piece %" PRIu64, i % PIECES);
		EXPECT_STR(at(d, 0x1000000 + 64 * (i / 3), 1 * S, 2 * S + i + 1), name);
	}
	EXPECT_STR(at(d, 0x1000000 + 64, 0, 0), "piece 4");
	free(m);
	close(fd);
	unlink(path);
	dump_free(d);
}

/* All cover one address, and each has two ends of its own: the most that an index can take. */
TEST(jit_dump_nested)
{
	enum { N = 1000000 };
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, addr, len, index;
		char name[8];
	} * r;
	struct dump *d = dump_new();
	int fd = begin(0), n;
	uint64_t start;
	const char *s;

	r = calloc(N, sizeof(*r));
	for (uint64_t i = 0; i < N; i++) {
		r[i].size = sizeof(*r);
		r[i].time = 10 * S + i * 7919 % N;
		r[i].addr = 0x10000 + i;
		r[i].len = 4 * N - 2 * i;
		r[i].index = i;
		snprintf(r[i].name, sizeof(r[i].name), "%" PRIu64, i);
	}
	EXPECT(write(fd, r, N * sizeof(*r)) == (ssize_t)(N * sizeof(*r)));
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	look_at_all(d, fd);
	printf("# 1,000,000 nested pieces: %" PRIu64 " ms, %zu bytes\n", ms_since(start),
	       jit_files_bytes(d->fs));
	EXPECT(ms_since(start) < 4000);
	EXPECT(jit_files_bytes(d->fs) < JIT_FILE_MAX + (1 << 20));
	EXPECT_EQ(d->allowance.totals.cut, 1);
	/* It begins as it should. */
	EXPECT_STR(at(d, 0x10000, 0, 0), "0");
	EXPECT_STR(at(d, 0x10001, 0, 0), "1");
	start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (n = 0; n < 900 && (s = at(d, 0x10000 + N + (uint64_t)n, 10 * S, 11 * S)); n++)
		EXPECT(*s != '-');
	printf("# 900 lookups: %" PRIu64 " ms\n", ms_since(start));
	EXPECT(ms_since(start) < 200);
	free(r);
	close(fd);
	unlink(path);
	dump_free(d);
}

/* The front: found by its path, older code under its own name by the second of the sample. */
TEST(jit_dump_of_process)
{
	struct test_paths paths = open_paths(path_worker_main);
	struct perf_maps *pm = open_maps(&paths);
	uint32_t pid = (uint32_t)getpid(), early, late;
	int fd = begin(0);
	const char *name;

	load(fd, 100 * S, 0x1000, 0x100, "old");
	early = perf_maps_see(pm, pid, 101 * S, 101 * S);
	EXPECT(early);
	late = perf_maps_see(pm, pid, 105 * S, 105 * S);
	EXPECT(late > early);
	load(fd, 103 * S, 0x1000, 0x100, "new");
	name = perf_maps_find(pm, pid, 0x1010, early);
	EXPECT_STR(name, "old");
	name = perf_maps_find(pm, pid, 0x1010, late);
	EXPECT_STR(name, "new");
	name = perf_maps_find(pm, pid, 0x1010, 0);
	EXPECT_STR(name, "new");
	close(fd);
	unlink(path);
	perf_maps_free(pm);
	close_paths(&paths);
}
