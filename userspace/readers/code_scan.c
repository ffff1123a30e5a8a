/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_scan.h"

/* Whether a distance may follow the n bytes: of a call, a jump, or an operand relative to rip. */
static inline bool before_distance(const uint8_t *bytes, size_t n)
{
	const uint8_t last = n ? bytes[n - 1] : 0;

	return (last & 0xfe) == 0xe8 || (last & 0xc7) == 0x05 ||
	       ((last & 0xf0) == 0x80 && n > 1 && bytes[n - 2] == 0x0f);
}

/*
 * The first four bytes that may be an x86 instruction's distance to a gap; the range's end: none.
 * Calls, jumps and addresses relative to the pc all end in one.
 */
static uint64_t x86_reference(const struct code_gapped *g, const struct code_range *r)
{
	const struct code_text *t = code_text_of(&g->bin, r->start);
	struct bytes code;
	const uint8_t *at;

	if (!t || r->end > t->end)
		return r->end;
	code = bytes_sub(&t->bytes, r->start - t->start, r->end - r->start);
	at = bytes_here(&code);
	for (size_t i = 0; i + 4 <= code.len; i++) {
		int32_t by;

		if (!before_distance(at, i))
			continue;
		memcpy(&by, at + i, 4);
		if (by && code_in_gap(g, r->start + i + 4 + (uint64_t)(int64_t)by))
			return r->start + i;
	}
	return r->end;
}

/* Notes the references to gaps of code that is instructions from its first byte on. */
static int references(const struct code_gapped *g, const struct code_range *r,
		      int (*note)(void *ctx, uint64_t addr, bool certain), void *ctx)
{
	struct code_op op;
	int err = 0;

	for (uint64_t at = r->start; at < r->end && !err; at += op.len) {
		uint64_t to = 0;

		code_decode(&g->bin, at, &op);
		if (op.kind == OP_CALL || op.kind == OP_JUMP || op.kind == OP_BRANCH)
			to = op.target;
		else
			to = code_address_of(&g->bin, &op);
		if (to && code_in_gap(g, to))
			err = note(ctx, to, op.kind == OP_CALL);
	}
	return err;
}

/* Notes the references of x86 code. Only functions that may have a reference are decoded. */
static int x86_references(const struct code_gapped *g, struct code_range r, const struct fntab *fns,
			  int (*note)(void *ctx, uint64_t addr, bool certain), void *ctx)
{
	int err = 0;

	while (r.start < r.end && !err) {
		const uint64_t at = x86_reference(g, &r);
		const struct fn *fn = fntab_find(fns, at);
		struct code_range part = r;

		if (at == r.end)
			break;
		if (fn && fn->start >= r.start)
			part.start = fn->start;
		if (fn && fn->end < r.end)
			part.end = fn->end;
		err = references(g, &part, note, ctx);
		r.start = part.end;
	}
	return err;
}

int code_scan(const struct code_gapped *g, const struct code_ranges *described,
	      const struct fntab *fns, int (*note)(void *ctx, uint64_t addr, bool certain),
	      void *ctx)
{
	int err = 0;

	for (size_t i = 0; i < described->n && !err; i++)
		err = g->bin.arch->align > 1 ? references(g, &described->v[i], note, ctx)
					     : x86_references(g, described->v[i], fns, note, ctx);
	return err;
}
