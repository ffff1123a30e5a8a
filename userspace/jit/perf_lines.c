/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/perf_lines.h"

#include <string.h>

static bool next_hex(struct bytes *line, uint64_t *ret)
{
	unsigned int digits = 0;
	uint64_t v = 0;

	for (;; digits++) {
		uint8_t c = bytes_u8(line), low = c | 32;

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			v = v << 4 | (uint64_t)(low - 'a' + 10);
		else if (low == 'x' && digits == 1 && !v)
			digits = UINT32_MAX; /* "0x", which some writers add */
		else
			break;
	}
	*ret = v;
	return digits && digits <= 16;
}

static int take_line(struct code_table *t, struct bytes line, uint64_t time)
{
	struct code c = { .time = time };
	struct bytes at = line;
	const char *name;
	size_t len;

	if (!next_hex(&at, &c.start) || !next_hex(&at, &c.size))
		return 0;
	len = bytes_left(&at);
	name = (const char *)bytes_take(&at, len);
	len = name ? strnlen(name, len) : 0;
	return len ? code_table_add(t, c, name, len) : 0;
}

ssize_t perf_lines_take(struct code_table *t, struct bytes text, uint64_t time)
{
	struct bytes end = text;

	while (bytes_find(&end, "\n", 1)) {
		int err = take_line(t, bytes_sub(&text, text.pos, end.pos - text.pos), time);

		if (err)
			return err;
		bytes_skip(&end, 1);
		bytes_seek(&text, end.pos);
	}
	return (ssize_t)text.pos;
}
