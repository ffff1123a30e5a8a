/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/jit_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "elf_reader.h"
#include "sym/perf_map.h"
#include "test.h"

#define S 1000000000ull

static char path[64];

/* A small writer, after the specification. */
static int begin(uint64_t flags)
{
	struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } h = {
		0x4a695444, 1, sizeof(h), 62, 0, (uint32_t)getpid(), 0, flags,
	};
	int fd;

	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	EXPECT(fd >= 0 && write(fd, &h, sizeof(h)) == sizeof(h));
	return fd;
}

static void put(int fd, uint32_t id, uint64_t time, const void *body, size_t len, const char *name, size_t code)
{
	struct { uint32_t id, size; uint64_t time; } head = { id, (uint32_t)(sizeof(head) + len + (name ? strlen(name) + 1 : 0) + code), time };
	char *zeros = calloc(1, code + 1);
	bool ok = write(fd, &head, sizeof(head)) == sizeof(head) && write(fd, body, len) == (ssize_t)len;

	if (name)
		ok &= write(fd, name, strlen(name) + 1) == (ssize_t)strlen(name) + 1;
	ok &= write(fd, zeros, code) == (ssize_t)code;
	EXPECT(ok);
	free(zeros);
}

static void load(int fd, uint64_t time, uint64_t addr, uint64_t size, const char *name)
{
	struct { uint32_t pid, tid; uint64_t vma, addr, size, index; } b = { 1, 1, addr, addr, size, 0 };

	put(fd, 0, time, &b, sizeof(b), name, size);
}

static void move(int fd, uint64_t time, uint64_t from, uint64_t to, uint64_t size)
{
	struct { uint32_t pid, tid; uint64_t vma, from, to, size, index; } b = { 1, 1, to, from, to, size, 0 };

	put(fd, 1, time, &b, sizeof(b), NULL, 0);
}

static int look(struct jit_dump *d, int fd)
{
	struct stat st;

	return fstat(fd, &st) ? -errno : jit_dump_read(d, fd, &st);
}

static const char *at(struct jit_dump *d, uint64_t addr, uint64_t from, uint64_t to)
{
	const char *s = jit_dump_find(d, addr, from, to);

	return s ? s : "-";
}

TEST(jit_dump_names)
{
	struct jit_dump *d = jit_dump_new();
	int fd = begin(0);

	load(fd, 1 * S, 0x1000, 0x100, "first");
	load(fd, 1 * S, 0x2000, 300000, "larger than what is read at once");
	load(fd, 1 * S, 0x100000, 0x40, "behind it");
	EXPECT_EQ(look(d, fd), 0);
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
	EXPECT_EQ(look(d, fd), 0);
	EXPECT_STR(at(d, 0x200010, 0, 0), "-");
	EXPECT_EQ(ftruncate(fd, lseek(fd, 0, SEEK_CUR)), 0);
	EXPECT_EQ(look(d, fd), 0);
	EXPECT_STR(at(d, 0x200010, 0, 0), "later");
	close(fd);
	unlink(path);
	jit_dump_free(d);
}

TEST(jit_dump_by_time)
{
	struct jit_dump *d = jit_dump_new();
	int fd = begin(0);

	load(fd, 10 * S, 0x1000, 0x100, "one");
	load(fd, 20 * S, 0x1080, 0x100, "two");		/* over a part of it */
	load(fd, 30 * S, 0x1000, 0x200, "three");
	move(fd, 40 * S, 0x1000, 0x9000, 0x200);
	load(fd, 50 * S, 0x9000, 0x10, "four");
	EXPECT_EQ(look(d, fd), 0);
	EXPECT_STR(at(d, 0x1090, 12 * S, 13 * S), "one");
	EXPECT_STR(at(d, 0x1090, 20 * S, 21 * S), "two");
	EXPECT_STR(at(d, 0x1010, 25 * S, 26 * S), "one");
	EXPECT_STR(at(d, 0x1090, 35 * S, 36 * S), "three");
	EXPECT_STR(at(d, 0x1090, 0, 0), "three");
	/* The one that was there for the most of the second. */
	EXPECT_STR(at(d, 0x1090, 30 * S - S / 4, 31 * S - S / 4), "three");
	EXPECT_STR(at(d, 0x1090, 29 * S + S / 4, 30 * S + S / 4), "two");
	EXPECT_STR(at(d, 0x1010, 1 * S, 2 * S), "one");	/* before all of them: the nearest */
	EXPECT_STR(at(d, 0x9008, 45 * S, 46 * S), "three");
	EXPECT_STR(at(d, 0x9008, 55 * S, 56 * S), "four");
	EXPECT_STR(at(d, 0x9018, 55 * S, 56 * S), "three");
	close(fd);
	unlink(path);
	jit_dump_free(d);
}

TEST(jit_dump_own_clock)
{
	struct jit_dump *d = jit_dump_new();
	int fd = begin(1);

	load(fd, 77, 0x1000, 0x100, "one");
	load(fd, 78, 0x1000, 0x100, "two");
	EXPECT_EQ(look(d, fd), 0);
	EXPECT_STR(at(d, 0x1000, 1 * S, 2 * S), "two");
	close(fd);
	unlink(path);
	jit_dump_free(d);
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
		struct jit_dump *d = jit_dump_new();
		uint8_t bad[4096];

		memcpy(bad, good, sizeof(bad));
		for (int k = 0; k < 1 + i % 8; k++)
			bad[rand() % len] = (uint8_t)(rand() % 3 ? rand() : 0xff);
		EXPECT_EQ(pwrite(fd, bad, (size_t)len, 0), len);
		look(d, fd);
		jit_dump_find(d, 0x1000, 0, 0);
		jit_dump_find(d, 0x1000, 1, UINT64_MAX);
		EXPECT(jit_dump_bytes(d) < 1 << 20);
		jit_dump_free(d);
	}
	close(fd);
	unlink(path);
}

/* The front: found by its path, older code under its own name by the second of the sample. */
TEST(jit_dump_of_process)
{
	struct test_paths paths = open_paths(path_child_main);
	struct perf_maps *pm = open_maps(&paths);
	uint32_t pid = (uint32_t)getpid(), early, late;
	int fd = begin(0);
	const char *name;

	load(fd, 100 * S, 0x1000, 0x100, "old");
	early = perf_maps_see(pm, pid, 101 * S);
	EXPECT(early);
	late = perf_maps_see(pm, pid, 105 * S);
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
