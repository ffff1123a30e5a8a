/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is a copy of a file's code, in part, elsewhere, or not at all. */
#include "files/text_copy.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#define PAGE  0x1000u
#define BYTES (100u * PAGE)
#define BASE  0x7f0000000000ull

static uint8_t file_bytes[BYTES], memory[BYTES];
static size_t readable = BYTES; /* of the memory */

static bool read_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	if (addr < BASE || addr - BASE > readable || len > readable - (addr - BASE))
		return false;
	memcpy(to, memory + (addr - BASE), len);
	return true;
}

static int file_with_code(void)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	srandom(1);
	for (size_t i = 0; i < BYTES; i++)
		file_bytes[i] = (uint8_t)(random() >> 8);
	if (fd < 0 || write(fd, file_bytes, BYTES) != BYTES)
		abort();
	readable = BYTES;
	return fd;
}

/* Asks about the address BASE + at, with a neighbour of the file at that offset. */
static struct sf_copy find(int fd, uint64_t at, uint64_t near_delta)
{
	const struct sf_copy_need need = {
		.key = { .start = BASE, .end = BASE + 20 * PAGE },
		.at = BASE + at,
		.delta = near_delta - BASE,
	};

	return text_copy_find(&need, fd, read_memory, NULL);
}

static void expect(struct sf_copy c, uint64_t start, uint64_t end, uint64_t offset)
{
	EXPECT_EQ(c.start - BASE, start);
	EXPECT_EQ(c.end - BASE, end);
	EXPECT_EQ(c.delta, offset - BASE);
}

TEST(whole_copy)
{
	int fd = file_with_code();

	memcpy(memory, file_bytes + 7 * PAGE, 20 * PAGE);
	expect(find(fd, 5 * PAGE + 123, 7 * PAGE), 0, 20 * PAGE, 7 * PAGE);
	expect(find(fd, 0, 7 * PAGE), 0, 20 * PAGE, 7 * PAGE);
	expect(find(fd, 20 * PAGE - 1, 7 * PAGE), 0, 20 * PAGE, 7 * PAGE);
	/* The neighbour's distance is that of another segment. */
	expect(find(fd, 5 * PAGE, 8 * PAGE), 0, 20 * PAGE, 7 * PAGE);
	expect(find(fd, 5 * PAGE, 4 * PAGE), 0, 20 * PAGE, 7 * PAGE);
	close(fd);
}

TEST(part_of_it)
{
	int fd = file_with_code();

	memcpy(memory, file_bytes + 7 * PAGE, 20 * PAGE);
	memory[3 * PAGE + 17] ^= 1;
	memory[9 * PAGE + 5] ^= 1;
	expect(find(fd, 5 * PAGE, 7 * PAGE), 3 * PAGE + 18, 9 * PAGE + 5, 7 * PAGE);
	readable = 8 * PAGE;
	expect(find(fd, 5 * PAGE, 7 * PAGE), 3 * PAGE + 18, 8 * PAGE, 7 * PAGE);
	close(fd);
}

TEST(ends_with_the_file)
{
	int fd = file_with_code();

	memcpy(memory, file_bytes + 90 * PAGE, 10 * PAGE);
	memset(memory + 10 * PAGE, 0, 10 * PAGE);
	expect(find(fd, 2 * PAGE, 90 * PAGE), 0, 10 * PAGE, 90 * PAGE);
	close(fd);
}

/* Equal to no place, or to two of them, or not where a mapping of the file could be. */
TEST(no_copy)
{
	int fd = file_with_code();
	struct sf_copy c;

	memcpy(memory, file_bytes + 7 * PAGE, 20 * PAGE);
	memory[5 * PAGE + 200] ^= 1;
	c = find(fd, 5 * PAGE, 7 * PAGE);
	EXPECT_EQ(c.start, c.end);
	c = find(fd, 6 * PAGE, 70 * PAGE);
	EXPECT_EQ(c.start, c.end);
	c = find(fd, 30 * PAGE, 7 * PAGE);
	EXPECT_EQ(c.start, c.end);
	readable = 0;
	c = find(fd, 6 * PAGE, 7 * PAGE);
	EXPECT_EQ(c.start, c.end);
	memset(memory, 0x90, BYTES);
	readable = BYTES;
	EXPECT_EQ(pwrite(fd, memory, BYTES, 0), BYTES);
	c = find(fd, 6 * PAGE, 7 * PAGE);
	EXPECT_EQ(c.start, c.end);
	close(fd);
}
