/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/text_copy.h"

#include <string.h>
#include <unistd.h>

#define BLOCK	 512u	      /* bytes that must be equal to one place of the file */
#define STEP	 (64u << 10)  /* bytes compared at a time */
#define COPY_MAX (256u << 20) /* bytes compared on each side */
#define PAGE	 0x1000u      /* unit of the distance between a file's mappings */
#define FAR	 (2u << 20)   /* that distance with aligned segments */
#define NEAR	 32	      /* pages; the usual distance is at most three segments' alignment */

static const struct sf_copy none = { .start = 1, .end = 1 };

struct side {
	const struct sf_copy_need *need;
	int fd;
	text_copy_read_fn read;
	void *ctx;
	uint64_t delta;
};

/* The file's bytes for the address; false: not all of them exist. */
static bool read_file(const struct side *s, uint64_t addr, void *to, size_t len)
{
	return pread(s->fd, to, len, (off_t)(addr + s->delta)) == (ssize_t)len;
}

static bool is_at(struct side *s, const uint8_t *block, uint64_t addr, size_t len, uint64_t delta)
{
	uint8_t have[BLOCK];

	s->delta = delta;
	return addr + delta <= SF_FRAME_OFFSET_MASK && read_file(s, addr, have, len) &&
	       !memcmp(have, block, len);
}

/* Sets s->delta. false: the block is at none, or at several, of the places that are possible. */
static bool find_delta(struct side *s, const uint8_t *block, uint64_t addr, size_t len)
{
	const uint64_t first = s->need->delta;
	uint64_t found = 0;
	int n = 0;

	for (int i = -NEAR - 1; i <= NEAR + 1; i++) {
		uint64_t by = i < -NEAR	 ? -(uint64_t)FAR
			      : i > NEAR ? FAR
					 : (uint64_t)(int64_t)i * PAGE;

		if (is_at(s, block, addr, len, first + by)) {
			found = first + by;
			n++;
		}
	}
	s->delta = found;
	return n == 1;
}

static uint8_t memory_bytes[STEP], file_bytes[STEP];

/* Reads both sides of [from, from + len). */
static bool read_both(const struct side *s, uint64_t from, size_t len)
{
	return s->read(s->ctx, from, memory_bytes, len) && read_file(s, from, file_bytes, len);
}

/* The first address from `from` on, at most `end`, whose bytes are not equal. */
static uint64_t end_of_equal(const struct side *s, uint64_t from, uint64_t end)
{
	while (from < end) {
		size_t len = end - from < STEP ? end - from : STEP, same = 0;

		/* The end of the file, or memory that cannot be read, may be inside the step. */
		while (len && !read_both(s, from, len))
			len /= 2;
		while (same < len && memory_bytes[same] == file_bytes[same])
			same++;
		from += same;
		if (same < len || !len)
			break;
	}
	return from;
}

/* The lowest address, at least `start`, from which all bytes up to `to` are equal. */
static uint64_t start_of_equal(const struct side *s, uint64_t start, uint64_t to)
{
	while (to > start) {
		size_t len = to - start < STEP ? to - start : STEP, same = 0;

		while (len && !read_both(s, to - len, len))
			len /= 2;
		while (same < len && memory_bytes[len - 1 - same] == file_bytes[len - 1 - same])
			same++;
		to -= same;
		if (same < len || !len)
			break;
	}
	return to;
}

struct sf_copy text_copy_find(const struct sf_copy_need *need, int fd, text_copy_read_fn read,
			      void *ctx)
{
	struct side s = { need, fd, read, ctx, 0 };
	uint64_t start = need->key.start, end = need->key.end, at = need->at, block;
	uint8_t bytes[BLOCK];
	size_t len;

	if (at < start || at >= end)
		return none;
	block = at / BLOCK * BLOCK;
	if (block < start)
		block = start;
	len = end - block < BLOCK ? end - block : BLOCK;
	if (!read(ctx, block, bytes, len) || !find_delta(&s, bytes, block, len))
		return none;
	if (block - start > COPY_MAX)
		start = block - COPY_MAX;
	if (end - block > COPY_MAX)
		end = block + COPY_MAX;
	return (struct sf_copy){ start_of_equal(&s, start, block), end_of_equal(&s, block, end),
				 s.delta };
}
