/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checked cursor over foreign bytes.
 *
 * ELF files, DWARF and SFrame sections, and files under /proc may be hostile. No code outside this
 * header dereferences such bytes. A reader holds a `struct bytes`. Every read is checked against
 * its end. The first read that does not fit sets the sticky `err`, and all reads from then on yield
 * 0. So a reader may decode a whole record and check `err` once.
 *
 * Offsets and lengths are in bytes, relative to the start of the view.
 */
#ifndef SFBPF_BASE_BYTES_H
#define SFBPF_BASE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *base; /* first byte of the view; NULL only if len is 0 */
	size_t len;	     /* bytes in the view */
	size_t pos;	     /* next byte to read, <= len */
	bool be;	     /* multi-byte values are big-endian */
	bool err;	     /* a read or seek left the view; sticky */
};

static inline struct bytes bytes_of(const void *base, size_t len, bool be)
{
	return (struct bytes){ .base = base, .len = base ? len : 0, .be = be };
}

static inline size_t bytes_left(const struct bytes *b)
{
	return b->err ? 0 : b->len - b->pos;
}

/* Whether n bytes are left; if not, err is set. */
static inline bool bytes_have(struct bytes *b, size_t n)
{
	bool have = !b->err && n <= b->len - b->pos;

	b->err = !have;
	return have;
}

/* The next n bytes, or NULL with err set if fewer are left. Advances. */
static inline const uint8_t *bytes_take(struct bytes *b, size_t n)
{
	const uint8_t *at;

	if (!bytes_have(b, n))
		return NULL;
	at = b->base + b->pos;
	b->pos += n;
	return at;
}

/*
 * The next 8 bytes as a little-endian number; bytes past the end are 0. Does not advance: the
 * caller checks by calling bytes_skip() over the bytes that it used.
 */
static inline uint64_t bytes_peek64le(const struct bytes *b)
{
	size_t left = bytes_left(b);
	uint64_t v, tail = 0;

	if (left >= 8) {
		memcpy(&v, b->base + b->pos, 8);
		return le64toh(v);
	}
	for (size_t i = 0; i < left; i++)
		tail |= (uint64_t)b->base[b->pos + i] << 8 * i;
	return tail;
}

/* The number of bytes from here to the first control character, c or d, or to the end. */
static inline size_t bytes_text_until(const struct bytes *b, char c, char d)
{
	size_t n = 0, left = bytes_left(b);
	const uint8_t *at = b->base + b->pos;

	while (n < left && at[n] >= 0x20 && at[n] != (uint8_t)c && at[n] != (uint8_t)d)
		n++;
	return n;
}

/* The bytes_left() bytes at the position, for libraries. */
static inline const uint8_t *bytes_here(const struct bytes *b)
{
	return b->base + b->pos;
}

/* Whether the view has n bytes at off. */
static inline bool bytes_are(const struct bytes *b, uint64_t off, const void *want, size_t n)
{
	return off <= b->len && n <= b->len - off && !memcmp(b->base + off, want, n);
}

static inline void bytes_skip(struct bytes *b, size_t n)
{
	bytes_take(b, n);
}

/* Absolute position within the view; pos == len is legal. */
static inline void bytes_seek(struct bytes *b, uint64_t pos)
{
	if (pos > b->len)
		b->err = true;
	else if (!b->err)
		b->pos = pos;
}

/*
 * A view of [off, off+len) of b, independent of its position. Out of range: an empty view with err
 * set.
 */
static inline struct bytes bytes_sub(const struct bytes *b, uint64_t off, uint64_t len)
{
	struct bytes sub = { .be = b->be };

	if (b->err || off > b->len || len > b->len - off) {
		sub.err = true;
		return sub;
	}
	/* An empty view may have no base. */
	sub.base = len ? b->base + off : b->base;
	sub.len = len;
	return sub;
}

static inline uint8_t bytes_u8(struct bytes *b)
{
	return bytes_have(b, 1) ? b->base[b->pos++] : 0;
}

static inline uint16_t bytes_u16(struct bytes *b)
{
	uint16_t v;

	if (!bytes_have(b, 2))
		return 0;
	memcpy(&v, b->base + b->pos, 2);
	b->pos += 2;
	return b->be ? be16toh(v) : le16toh(v);
}

static inline uint32_t bytes_u32(struct bytes *b)
{
	uint32_t v;

	if (!bytes_have(b, 4))
		return 0;
	memcpy(&v, b->base + b->pos, 4);
	b->pos += 4;
	return b->be ? be32toh(v) : le32toh(v);
}

static inline uint64_t bytes_u64(struct bytes *b)
{
	uint64_t v;

	if (!bytes_have(b, 8))
		return 0;
	memcpy(&v, b->base + b->pos, 8);
	b->pos += 8;
	return b->be ? be64toh(v) : le64toh(v);
}

static inline int8_t bytes_s8(struct bytes *b)
{
	return (int8_t)bytes_u8(b);
}
static inline int16_t bytes_s16(struct bytes *b)
{
	return (int16_t)bytes_u16(b);
}
static inline int32_t bytes_s32(struct bytes *b)
{
	return (int32_t)bytes_u32(b);
}
static inline int64_t bytes_s64(struct bytes *b)
{
	return (int64_t)bytes_u64(b);
}

/*
 * DWARF ULEB128 (DWARF 5, 7.6). More than 64 bits of value: err. Redundant leading zeros are legal.
 */
static inline uint64_t bytes_uleb(struct bytes *b)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	if (!b->err && b->pos < b->len && b->base[b->pos] < 0x80)
		return b->base[b->pos++]; /* most numbers */
	for (;;) {
		const uint8_t *p = bytes_take(b, 1);
		uint8_t low;

		if (!p)
			return 0;
		low = *p & 0x7f;
		if (shift < 64) {
			if (shift == 63 && low > 1)
				b->err = true;
			value |= (uint64_t)low << shift;
		} else if (low) {
			b->err = true;
		}
		if (!(*p & 0x80))
			return b->err ? 0 : value;
		shift += 7;
	}
}

/* DWARF SLEB128 (DWARF 5, 7.6). Bits past the 64th must repeat the sign. */
static inline int64_t bytes_sleb(struct bytes *b)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (;;) {
		const uint8_t *p = bytes_take(b, 1);
		uint8_t low;

		if (!p)
			return 0;
		low = *p & 0x7f;
		if (shift < 64)
			value |= (uint64_t)low << shift;
		else if (low != (value >> 63 ? 0x7f : 0))
			b->err = true;
		shift += 7;
		if (*p & 0x80)
			continue;
		if (shift < 64 && (low & 0x40))
			value |= ~(uint64_t)0 << shift;
		return b->err ? 0 : (int64_t)value;
	}
}

/* Moves to the next occurrence of needle. false: none; the position stays. */
static inline bool bytes_find(struct bytes *b, const void *needle, size_t n)
{
	const uint8_t *at = bytes_left(b) ? (const uint8_t *)memmem(b->base + b->pos, bytes_left(b),
								    needle, n)
					  : NULL;

	if (at)
		b->pos = (size_t)(at - b->base);
	return at != NULL;
}

/*
 * Finds bytes as bytes_find does, if needle[rare] is rare in them: searches for that byte at the
 * speed of memchr (memmem takes a nanosecond for one or two bytes).
 */
static inline bool bytes_find_rare(struct bytes *b, const uint8_t *needle, size_t n, size_t rare)
{
	const uint8_t *at, *end;

	if (bytes_left(b) < n)
		return false;
	at = b->base + b->pos + rare;
	end = b->base + b->len - (n - 1 - rare);
	while (at < end && (at = (const uint8_t *)memchr(at, needle[rare], (size_t)(end - at)))) {
		if (*(at - rare) == *needle && !memcmp(at - rare, needle, n)) {
			b->pos = (size_t)(at - rare - b->base);
			return true;
		}
		at++;
	}
	return false;
}

/*
 * A NUL-terminated string at the position, or NULL with err set if no NUL follows. Advances past
 * the NUL.
 */
static inline const char *bytes_str(struct bytes *b)
{
	const uint8_t *p = b->base ? b->base + b->pos : NULL;
	const uint8_t *nul = bytes_left(b) ? memchr(p, 0, bytes_left(b)) : NULL;

	if (!nul) {
		b->err = true;
		return NULL;
	}
	b->pos += (size_t)(nul - p) + 1;
	return (const char *)p;
}

#endif
