/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where functions end whose symbols have no size. The next symbol is no proof: functions without a
 * symbol may lie before it. The code tells: its ways are followed from the first byte to the last
 * one that they reach. Where an indirect jump hides some of them, the function ends where its
 * unwind table says, or, without one, at that jump.
 */
#include <errno.h>

#include "codewalk/code_op.h"
#include "readers/row_stream.h"
#include "symtab/symtab_builder.h"

#define WINDOW	    4096
#define INSTRUCTION 16	       /* bytes, at most */
#define SCAN_MOST   (8u << 20) /* bytes of code read for all symbols of a file */
#define PAD_ALIGN   16

/* The code at off, at least one instruction unless the file ends. */
static int code_at(struct extents *x, uint64_t off, struct bytes *ret)
{
	uint64_t left = x->img->size - off, at = off - x->from;

	if (off >= x->img->size)
		return -ERANGE;
	if (off < x->from || at > x->code.view.len ||
	    (x->code.view.len - at < INSTRUCTION && x->code.view.len - at < left)) {
		int err;

		elf_blob_free(&x->code);
		err = elf_image_read(x->img, off, left < WINDOW ? left : WINDOW, &x->code);
		if (err)
			return err;
		x->from = off;
		at = 0;
	}
	*ret = bytes_sub(&x->code.view, at, x->code.view.len - at);
	return 0;
}

struct scan {
	uint64_t start, limit;
	uint64_t reach; /* ways that were seen lead to the byte before this one */
	/*
	 * A jump from before `doubt` led forward: across a loop's body to its condition, or to
	 * another function. The former if the condition jumps back.
	 */
	uint64_t doubt;
	bool unsure; /* there may be more of it */
};

static void follow(struct scan *s, const struct code_op *op, uint64_t next)
{
	const uint64_t to = op->target;

	if (op->kind == OP_BRANCH && s->doubt && next > s->doubt && to > s->start && to < next)
		s->doubt = 0;
	if (to < next || to >= s->limit || to < s->reach)
		return;
	if (op->kind == OP_JUMP && to > next && next >= s->reach && !s->doubt)
		s->doubt = next;
	s->reach = to + 1;
}

/* Whether control cannot go on after the instruction. */
static bool is_last(struct scan *s, const struct code_op *op)
{
	s->unsure |= op->kind == OP_JUMP_REG || op->kind == OP_JUMP_TABLE ||
		     (op->kind == OP_JUMP && !op->target);
	return op->kind == OP_RET || op->kind == OP_END || op->kind == OP_JUMP ||
	       op->kind == OP_JUMP_REG || op->kind == OP_JUMP_TABLE;
}

/* The end of the function. 0 or -ENOMEM. */
static int scan_code(struct extents *x, uint64_t off, struct scan *s, uint64_t *ret)
{
	uint64_t at = s->start, called = 0;
	int err = 0;

	while (at < s->limit) {
		struct bytes code;
		struct code_op op;

		err = code_at(x, off + (at - s->start), &code);
		if (err == -ENOMEM)
			return err;
		if (err) { /* a segment may claim more than the file has */
			s->unsure = true;
			break;
		}
		x->arch->decode(bytes_here(&code), bytes_left(&code), at, &op);
		if (op.kind == OP_BAD || x->scanned > SCAN_MOST) {
			s->unsure = true;
			break;
		}
		x->scanned += op.len;
		/* A call that does not return, and padding up to the next function */
		if (op.kind == OP_NOP && called && at >= s->reach) {
			if ((at + op.len) % PAD_ALIGN == 0) {
				at = called;
				s->unsure = true;
				break;
			}
		} else {
			called = op.kind == OP_CALL ? at + op.len : 0;
		}
		at += op.len;
		follow(s, &op, at);
		if (is_last(s, &op) && at >= s->reach)
			break;
	}
	s->unsure |= s->doubt != 0;
	*ret = s->doubt ? s->doubt : at < s->limit ? at : s->limit;
	return 0;
}

static const struct fn *next_fn(const struct fntab *t, uint64_t addr)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->fns[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n ? &t->fns[lo] : NULL;
}

/* Cuts s->limit where another function starts. *ret_own: that of the table ends there. */
static void limit_by_tables(const struct unwind_file *f, struct scan *s, bool *ret_own)
{
	const struct fn *fn = unwind_file_fn_at(f, s->start), *next[] = {
		f->has_eh ? next_fn(&f->eh.fns, s->start) : NULL,
		f->has_sframe ? next_fn(&f->sframe.fns, s->start) : NULL,
	};

	if (fn && fn->end < s->limit)
		s->limit = fn->end;
	for (int i = 0; i < 2; i++)
		if (next[i] && next[i]->start < s->limit)
			s->limit = next[i]->start;
	*ret_own = fn && fn->start == s->start;
}

void extents_open(struct extents *x, struct builder *b)
{
	*x = (struct extents){ .b = b, .img = b->img };
	if (!x->img->be)
		x->arch = x->img->machine == EM_X86_64	  ? code_arch_x86()
			  : x->img->machine == EM_AARCH64 ? &code_arch_arm64
							  : NULL;
}

void extents_close(struct extents *x)
{
	elf_blob_free(&x->code);
}

int extents_find(struct extents *x, uint64_t off, uint64_t most, uint64_t *ret)
{
	const struct unwind_file *f = builder_tables(x->b, false);
	struct scan s = { .unsure = false };
	bool own = false;
	uint64_t end;
	int err = 0;

	if (!builder_code_address(x->b, off, &s.start) || most > UINT64_MAX - s.start)
		return -ENOENT;
	s.reach = s.start;
	s.limit = s.start + most;
	if (f)
		limit_by_tables(f, &s, &own);
	end = s.limit;
	if (x->arch)
		err = scan_code(x, off, &s, &end);
	if (!err && s.unsure && !f && (f = builder_tables(x->b, true)))
		limit_by_tables(f, &s, &own);
	if (s.unsure && own)
		end = s.limit;
	if (end > s.limit)
		end = s.limit;
	*ret = end > s.start ? end - s.start : 1;
	return err;
}
