/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of code that is analysed, its instructions and the marks on them. */
#include "unwind/code_fn.h"

#include <stdlib.h>
#include <string.h>

struct code_text *code_text_of(const struct code_fn *f, uint64_t addr)
{
	for (size_t i = 0; addr && i < f->ntexts; i++)
		if (addr >= f->texts[i].start && addr < f->texts[i].end)
			return &f->texts[i];
	return NULL;
}

void code_decode(const struct code_fn *f, uint64_t addr, struct code_op *ret)
{
	const struct code_text *t = code_text_of(f, addr);
	struct bytes at;

	*ret = (struct code_op){ .kind = OP_BAD, .len = 1 };
	if (!t)
		return;
	at = bytes_sub(&t->blob.view, addr - t->start, t->end - addr);
	f->arch->decode(bytes_here(&at), bytes_left(&at), addr, ret);
}

const struct code_op *code_op_at(const struct code_fn *f, uint64_t addr)
{
	struct code_cached *c = &f->cache[addr & (CODE_CACHE - 1)];

	if (c->addr != addr) {
		code_decode(f, addr, &c->op);
		c->addr = addr;
	}
	return &c->op;
}

uint8_t *code_mark_of(const struct code_fn *f, uint64_t addr)
{
	struct code_text *t = code_text_of(f, addr);

	return t ? &t->marks[addr - t->start] : NULL;
}

void code_unmark(const struct code_fn *f, struct code_range range, uint8_t marks)
{
	const uint64_t keep = 0x0101010101010101ull * (uint8_t)~marks;
	uint64_t at = range.start, end, word;
	struct code_text *t;

	for (; at < range.end && (t = code_text_of(f, at)); at = end) {
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

void code_fn_free(struct code_fn *f)
{
	free(f->leaders);
	free(f->cache);
	slots_free(&f->slots);
	free(f->work);
	free(f->runs);
	free(f->noreturn);
	free(f->dead);
	free(f->tables);
	free(f->joined);
	free(f->last);
	free(f->finals);
	free(f->pending);
	free(f->own);
	free(f->jumps);
	free(f->labels);
	free(f->data_labels);
	free(f->calls);
	slots_free(&f->call_slots);
	free(f->ends);
	free(f->may_end);
	free(f->addressed);
	free(f->tails);
	rowbuf_free(&f->rows);
	for (size_t i = 0; i < f->ndata; i++)
		elf_blob_free(&f->data[i].blob);
}
