/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a function that was explored (code_fn.c): its code is gone through once more. */
#include <stdlib.h>

#include "codewalk/code_fn.h"

/* Bytes. OCaml aligns labels to 4 bytes, and its tables give that padding the row after it. */
#define PADDING_MIN 4
#define PADDING_MAX 64

static int by_addr(const void *a, const void *b)
{
	const struct code_leader *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int put(struct code_fn *f, uint64_t start, uint64_t end, const struct code_state *s,
	       bool by_fp)
{
	struct row *last = f->room.rows.n ? &f->room.rows.rows[f->room.rows.n - 1] : NULL;
	struct row row = { .ra = { .kind = RULE_UNDEF }, .source = ROW_CODE };

	if (!f->run.fn.outermost && !code_state_row(s, f->arch, by_fp, &row))
		return 0;
	if (!f->run.fn.outermost && row.fp.kind == RULE_NONE) {
		/* It is not known where it is, unless the function changes it for good. */
		if (!f->result.loses_fp && (f->result.returns || f->result.leaps))
			return 0;
		row.fp.kind = RULE_UNDEF;
	}
	row.start = start;
	row.end = end;
	if (last && last->end == start && row_same_rules(last, &row)) {
		last->end = end;
		return 0;
	}
	return rowbuf_push(&f->room.rows, &row);
}

/* Padding between two pieces of the function has the row before it, as in compilers' tables. */
static void pad(struct code_fn *f, uint64_t addr, const struct code_leader *next)
{
	struct row *last = f->room.rows.n ? &f->room.rows.rows[f->room.rows.n - 1] : NULL;
	struct code_op op;

	if (!next || !last || last->end != addr || next->addr - addr < PADDING_MIN ||
	    next->addr - addr > PADDING_MAX)
		return;
	while (addr < next->addr && !(*code_mark_of(f->bin, addr) & (MARK_START | MARK_BODY))) {
		op = *code_op_at(f, addr);
		if (op.kind != OP_NOP)
			return;
		addr += op.len;
	}
	if (addr == next->addr)
		last->end = addr;
}

/* Whether the frame is addressed by fp, or can be by nothing else. */
static bool uses_fp(const struct code_fn *f, const struct code_state *s, const struct code_op *op)
{
	const uint8_t fp = f->arch->fp;

	return code_state_gives_cfa(s, fp) &&
	       (op->base == fp || op->src == fp || op->src2 == fp || op->src3 == fp ||
		!code_state_gives_cfa(s, f->arch->sp));
}

/*
 * Whether sp was taken from fp, fp is loaded next, and sp is moved after that. Tables of a function
 * that uses fp give the CFA by sp then, but by fp if the load moves sp.
 */
static bool moves_sp_later(const struct code_fn *f, const struct code_walk *w)
{
	const uint8_t fp = f->arch->fp;
	struct code_walk next;

	if (w->op->kind != OP_LEA || w->op->dst != f->arch->sp || w->op->src != fp)
		return false;
	next = *w;
	do {
		code_walk_apply(f, &next);
		if (!code_walk_next(f, &next))
			return false;
	} while (next.op->kind != OP_LOAD || (next.op->dst != fp && next.op->dst2 != fp));
	return !next.op->writeback;
}

/* Whether the rule depends on no register but these. */
static bool by_sp_or_fp(const struct code_arch *arch, const struct rule *rule)
{
	return rule->kind == RULE_CFA_MEM || rule->kind == RULE_SAME ||
	       (rule->kind == RULE_REG && (rule->reg == arch->sp || rule->reg == arch->fp));
}

/*
 * Whether the row before the instruction, which is the last one, also holds after it. False does
 * not say that it differs.
 */
static bool keeps_row(const struct code_fn *f, const struct code_walk *w)
{
	const struct code_arch *arch = f->arch;
	const struct row *last = f->room.rows.n ? &f->room.rows.rows[f->room.rows.n - 1] : NULL;
	const struct code_op *op = w->op;
	const uint32_t writes = code_op_writes(op);

	if (op->kind > OP_COMPARE_MEMORY || op->kind == OP_STORE || op->store_size ||
	    op->writeback || op->pops || !last || last->end != w->end ||
	    !by_sp_or_fp(arch, &last->cfa) || !by_sp_or_fp(arch, &last->ra) ||
	    !by_sp_or_fp(arch, &last->fp))
		return false;
	return !(writes >> arch->sp & 1 || writes >> arch->fp & 1 ||
		 (arch->ra == CODE_NO_REG && writes >> X86_RBX & 1));
}

static int rows_of(struct code_fn *f, const struct code_leader *l, const struct code_leader *next)
{
	struct code_walk w;
	bool by_fp = f->try.by_fp, kept = false;
	int err = 0;

	code_walk_begin(&w, l);
	while (!err && code_walk_next(f, &w)) {
		if (kept)
			f->room.rows.rows[f->room.rows.n - 1].end = w.end;
		else
			err = put(f, w.at, w.end, &w.state, by_fp);
		kept = !err && keeps_row(f, &w);
		f->try.uses_fp |= uses_fp(f, &w.state, w.op);
		if (by_fp && moves_sp_later(f, &w))
			by_fp = false; /* sp was written, so the row is not kept */
		code_walk_apply(f, &w);
	}
	if (!err && !w.on && f->result.leaps && !f->run.fn.outermost)
		err = code_leap_rows(f, l, &f->room.rows);
	if (!err && !w.on)
		pad(f, w.end, next);
	return err;
}

static int rows_of_leaders(struct code_fn *f)
{
	int err = 0;

	f->room.rows.n = 0;
	for (size_t i = 0; i < f->try.nleaders && !err; i++)
		err = rows_of(f, &f->room.leaders[i],
			      i + 1 < f->try.nleaders ? &f->room.leaders[i + 1] : NULL);
	return err;
}

int code_fn_make_rows(struct code_fn *f)
{
	int err;

	qsort(f->room.leaders, f->try.nleaders, sizeof(*f->room.leaders), by_addr);
	f->try.by_fp = f->try.uses_fp = false;
	err = rows_of_leaders(f);
	/* Tables of AArch64 use fp in all of a function whose code does. */
	if (err || f->arch->ra == CODE_NO_REG || !f->try.uses_fp)
		return err;
	f->try.by_fp = true;
	return rows_of_leaders(f);
}
