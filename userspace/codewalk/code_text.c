/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of code that is analysed, its instructions and the marks on them. */
#include <string.h>

#include "codewalk/code_fn.h"

struct code_text *code_text_of(const struct code_binary *bin, uint64_t addr)
{
	for (size_t i = 0; addr && i < bin->ntexts; i++)
		if (addr >= bin->texts[i].start && addr < bin->texts[i].end)
			return &bin->texts[i];
	return NULL;
}

void code_decode(const struct code_binary *bin, uint64_t addr, struct code_op *ret)
{
	const struct code_text *t = code_text_of(bin, addr);
	struct bytes at;

	*ret = (struct code_op){ .kind = OP_BAD, .len = 1 };
	if (!t)
		return;
	at = bytes_sub(&t->bytes, addr - t->start, t->end - addr);
	bin->arch->decode(bytes_here(&at), bytes_left(&at), addr, ret);
}

uint8_t *code_mark_of(const struct code_binary *bin, uint64_t addr)
{
	struct code_text *t = code_text_of(bin, addr);

	return t ? &t->marks[addr - t->start] : NULL;
}

void code_unmark(const struct code_binary *bin, struct code_range range, uint8_t marks)
{
	const uint64_t keep = 0x0101010101010101ull * (uint8_t)~marks;
	uint64_t at = range.start, end, word;
	struct code_text *t;

	for (; at < range.end && (t = code_text_of(bin, at)); at = end) {
		end = range.end < t->end ? range.end : t->end;
		for (; end - at >= 8; at += 8) {
			memcpy(&word, &t->marks[at - t->start], 8);
			word &= keep;
			memcpy(&t->marks[at - t->start], &word, 8);
		}
		for (; at < end; at++)
			t->marks[at - t->start] &= (uint8_t)~marks;
	}
}
