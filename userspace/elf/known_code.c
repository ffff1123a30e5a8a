/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/known_code.h"

static const struct pattern {
	uint8_t bytes[16], len;
	uint8_t rare;	      /* index of the byte that is rarest in other code */
	uint8_t before, size; /* the range starts `before` bytes before the pattern */
} patterns[KNOWN_CODES] = {
	/* 53 bytes from the call to the end in glibc 2.36, and functions are aligned to 16. */
	[KNOWN_CLONE3] = { { 0xb8, 0xb3, 0x01, 0x00, 0x00, 0x0f, 0x05 }, 7, 1, 0, 56 },
	[KNOWN_CLONE_RETURN] = { { 0x74, 0x01, 0xc3, 0x31, 0xed }, 5, 4, 7, 10 },
	[KNOWN_RESTORE_RT] = { { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 },
			       9,
			       1,
			       1,
			       10 },
	/* 26 bytes to its hlt. */
	[KNOWN_START_CONTEXT] = { { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff },
				  10,
				  2,
				  1,
				  27 },
	[KNOWN_MUSL_CLONE] = { { 0x85, 0xc0, 0x75, 0x0f, 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1 },
			       10,
			       5,
			       0,
			       6 },
	[KNOWN_MUSL_THREAD] = { { 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f,
				  0x05 },
				12,
				8,
				0,
				12 },
	[KNOWN_SWAPCONTEXT] = { { 0x48, 0x8b, 0x8a, 0xa8, 0, 0, 0, 0x51 }, 8, 2, 34, 42 },
	[KNOWN_A64_CLONE_RETURN] = { { 0x01, 0, 0, 0xd4, 0x1f, 0, 0, 0xf1 }, 8, 7, 0, 20 },
	[KNOWN_A64_RESTORE_RT] = { { 0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4 }, 8, 1, 4, 12 },
	[KNOWN_A64_MUSL_THREAD] = { { 0xe1, 0x03, 0xc1, 0xa8, 0x20, 0, 0x3f, 0xd6, 0xa8, 0x0b, 0x80,
				      0xd2, 0x01, 0, 0, 0xd4 },
				    16,
				    2,
				    0,
				    16 },
};

/* Bytes that the range must start with, where the pattern alone is not enough. */
static const struct {
	uint8_t bytes[6], len;
} leads[KNOWN_CODES] = {
	[KNOWN_CLONE_RETURN] = { { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x7c }, 6 },
	[KNOWN_SWAPCONTEXT] = { { 0x48, 0x8b, 0xa2, 0xa0, 0, 0 }, 6 },
};

bool known_code_next(struct bytes *text, enum known_code which, uint64_t *ret_start)
{
	const struct pattern *p = &patterns[which];
	uint64_t at;

	while (bytes_find_rare(text, p->bytes, p->len, p->rare)) {
		at = text->pos;
		bytes_skip(text, p->len);
		if (at < p->before ||
		    !bytes_are(text, at - p->before, leads[which].bytes, leads[which].len))
			continue;
		*ret_start = at - p->before;
		return true;
	}
	return false;
}

uint32_t known_code_size(enum known_code which)
{
	return patterns[which].size;
}

uint32_t known_code_before(enum known_code which)
{
	return patterns[which].before;
}
