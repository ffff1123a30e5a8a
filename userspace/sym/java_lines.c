/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/java_lines.h"

#include "base/bytes.h"

#define ESCAPE	0xff /* two numbers follow */
#define LOW	192  /* a byte below this ends a number */
#define NUM_MAX 5    /* bytes of a number */

/* UNSIGNED5 of a value whose lowest bit is its sign */
static int64_t number(struct bytes *t, uint32_t excluded)
{
	uint32_t val = 0;

	for (uint32_t i = 0; i < NUM_MAX; i++) {
		uint32_t b = bytes_u8(t);

		val += (b - excluded) << 6 * i;
		if (b < LOW)
			break;
	}
	return (int64_t)(val >> 1) ^ -(int64_t)(val & 1);
}

struct place {
	int64_t bci, line;
};

/* Adds the next entry of the table. False: it was the last one. */
static bool next(struct bytes *t, uint32_t excluded, struct place *p)
{
	uint8_t b = bytes_u8(t);

	if (!b || t->err)
		return false;
	if (b == ESCAPE) {
		p->bci += number(t, excluded);
		p->line += number(t, excluded);
	} else {
		p->bci += b >> 3;
		p->line += b & 7;
	}
	return !t->err;
}

size_t java_lines_len(const uint8_t *table, size_t len, uint32_t excluded)
{
	struct bytes t = bytes_of(table, len, false);
	struct place p = { 0 };
	size_t end;

	do {
		end = t.pos;
	} while (next(&t, excluded, &p));
	return end;
}

/* Entries are in the order of the source, so later ones may be about earlier bytecode. */
uint32_t java_line(const uint8_t *table, size_t len, uint32_t excluded, uint32_t bci)
{
	struct bytes t = bytes_of(table, len, false);
	struct place p = { 0 }, best = { -1, 0 };

	while (next(&t, excluded, &p))
		if (p.bci <= bci && p.bci >= best.bci)
			best = p;
	return best.line > 0 && best.line <= UINT32_MAX ? (uint32_t)best.line : 0;
}
