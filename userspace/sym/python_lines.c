/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/python_lines.h"

#include "base/bytes.h"

/* 3.8, 3.9: pairs of bytes of code and of lines to add once these are passed. */
static uint32_t line_38(struct bytes t, int64_t line, uint32_t position)
{
	uint64_t addr = 0;

	while (bytes_left(&t) >= 2) {
		addr += bytes_u8(&t);
		if (addr > 2ull * position)
			break;
		line += bytes_s8(&t);
	}
	return line > 0 ? (uint32_t)line : 0;
}

/* 3.10: pairs of bytes of code and of lines to add before these; -128: no line. */
static uint32_t line_310(struct bytes t, int64_t line, uint32_t position)
{
	uint64_t addr = 0;

	while (bytes_left(&t) >= 2) {
		uint8_t size = bytes_u8(&t);
		int8_t delta = bytes_s8(&t);

		if (delta != -128)
			line += delta;
		addr += size;
		if (addr > 2ull * position)
			return delta != -128 && line > 0 ? (uint32_t)line : 0;
	}
	return 0;
}

static uint64_t varint(struct bytes *t)
{
	uint64_t val = 0;

	for (unsigned int shift = 0; shift < 60; shift += 6) {
		uint8_t b = bytes_u8(t);

		val |= (uint64_t)(b & 0x3f) << shift;
		if (!(b & 0x40))
			break;
	}
	return val;
}

static int64_t signed_varint(struct bytes *t)
{
	uint64_t val = varint(t);

	return val & 1 ? -(int64_t)(val >> 1) : (int64_t)(val >> 1);
}

/* 3.11 on: entries of a code and a number of units, then what the code says. */
static uint32_t line_311(struct bytes t, int64_t line, uint32_t position)
{
	uint64_t addr = 0;

	while (bytes_left(&t)) {
		uint8_t head = bytes_u8(&t);
		uint32_t code = head >> 3 & 15;

		addr += (head & 7u) + 1;
		if (code >= 10 && code <= 12)
			line += code - 10;
		else if (code == 13 || code == 14)
			line += signed_varint(&t);
		if (addr > position)
			return code != 15 && line > 0 && !t.err ? (uint32_t)line : 0;
		if (code < 10)
			bytes_skip(&t, 1);
		else if (code <= 12)
			bytes_skip(&t, 2);
		else if (code == 14)
			(void)varint(&t), (void)varint(&t), (void)varint(&t);
	}
	return 0;
}

uint32_t python_line(const uint8_t *table, size_t len, uint32_t minor, uint32_t first_line,
		     uint32_t position)
{
	struct bytes t = bytes_of(table, len, false);

	if (minor >= 11)
		return line_311(t, first_line, position);
	return minor == 10 ? line_310(t, first_line, position) : line_38(t, first_line, position);
}
