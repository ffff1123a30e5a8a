/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/code_scan.h"

/* A byte of a gap at the address? */
static inline bool in_gap(const struct code_fn *f, uint64_t addr)
{
	for (size_t i = 0; i < f->ntexts; i++)
		if (addr - f->texts[i].start < f->texts[i].end - f->texts[i].start)
			return f->texts[i].marks[addr - f->texts[i].start] & MARK_GAP;
	return false;
}

/*
 * Whether any four bytes may be an x86 instruction's distance to a gap. Calls, jumps and addresses
 * relative to the pc all end in one.
 */
static bool x86_refers(const struct code_fn *f, const struct code_range *r)
{
	const struct code_text *t = code_text_of(f, r->start);
	struct bytes code;
	const uint8_t *at;

	if (!t || r->end > t->end)
		return false;
	code = bytes_sub(&t->blob.view, r->start - t->start, r->end - r->start);
	at = bytes_here(&code);
	for (size_t i = 0; i + 4 <= code.len; i++) {
		int32_t by;

		memcpy(&by, at + i, 4);
		if (by && in_gap(f, r->start + i + 4 + (uint64_t)(int64_t)by))
			return true;
	}
	return false;
}

/* Notes the references to gaps of code that is instructions from its first byte on. */
static int references(const struct code_fn *f, const struct code_range *r,
		      int (*note)(void *ctx, uint64_t addr, bool certain), void *ctx)
{
	struct code_op op;
	int err = 0;

	for (uint64_t at = r->start; at < r->end && !err; at += op.len) {
		uint64_t to = 0;

		code_decode(f, at, &op);
		if (op.kind == OP_CALL || op.kind == OP_JUMP || op.kind == OP_BRANCH)
			to = op.target;
		else if (op.kind == OP_CONST)
			to = (uint64_t)op.imm;
		if (to && in_gap(f, to))
			err = note(ctx, to, op.kind == OP_CALL);
	}
	return err;
}

int code_scan(const struct code_fn *f, const struct code_ranges *described,
	      int (*note)(void *ctx, uint64_t addr, bool certain), void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < described->n && !err; i++)
		if (f->arch->align > 1 || x86_refers(f, &described->v[i]))
			err = references(f, &described->v[i], note, ctx);
	return err;
}
