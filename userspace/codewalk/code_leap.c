/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that jumps to another frame: longjmp(), setcontext(), the end of LLVM's unwinder, switches
 * of coroutines. It loads registers from a buffer, sp among them, and jumps to an address from
 * there. While it does, fp and then sp are those of the frame that it goes to. The row says where
 * the rest is: in the buffer, in a register, or on the stack that sp will point to.
 *
 * Such code runs straight on to its jump. Where the rest cannot be told, the caller is lost.
 */
#include <string.h>

#include "codewalk/code_fn.h"

#define STEPS_MAX 64 /* instructions up to the jump */

enum { FROM_UNKNOWN, FROM_BUFFER, FROM_STACK };

/* A value of the frame to jump to. From step `made` on, it is in `reg`. */
struct source {
	uint8_t from, base, reg;
	size_t made;
	int64_t off; /* offset from base as it is at `made`; or from what sp is loaded with */
};

struct leap {
	const struct code_arch *arch;
	size_t n;
	uint64_t fresh; /* the address of the step after which it is not known where sp is */
	uint64_t at[STEPS_MAX + 1]; /* addresses of the steps; the end */
	struct code_op op[STEPS_MAX];
	int64_t height[STEPS_MAX]; /* sp before each step, above what it was loaded with */
	struct source reg[CODE_REGS];
	/* What becomes of sp, and the step that sets it */
	struct source sp;
	size_t sp_set;
	int64_t end; /* sp after the jump, above what it was loaded with */
	struct source ra, fp;
	struct source pushed; /* stored on the stack to jump to; `made`: from that step on */
	struct source before; /* what was pushed, where it was until then */
	size_t fp_set;	      /* n: fp is not set */
};

/* The last instructions of the leader's code. */
static void collect(const struct code_fn *f, const struct code_leader *l, struct leap *leap)
{
	struct code_walk w;
	const struct code_val *sp = &w.state.reg[f->arch->sp];

	code_walk_begin(&w, l);
	while (code_walk_next(f, &w)) {
		if (leap->n == STEPS_MAX) {
			leap->n--;
			memmove(leap->at, leap->at + 1, leap->n * sizeof(leap->at[0]));
			memmove(leap->op, leap->op + 1, leap->n * sizeof(leap->op[0]));
		}
		leap->at[leap->n] = w.at;
		leap->op[leap->n++] = *w.op;
		leap->at[leap->n] = w.end;
		code_walk_apply(f, &w);
		if (sp->kind == VAL_STACK && sp->sym == w.at)
			leap->fresh = w.at;
	}
}

static bool is_word_load(const struct code_op *op)
{
	return op->kind == OP_LOAD && op->size == 8 && op->index == CODE_NO_REG &&
	       op->base != CODE_NO_REG;
}

static bool sets_sp(const struct leap *leap, const struct code_op *op)
{
	const uint8_t sp = leap->arch->sp;

	return (is_word_load(op) && op->dst == sp && op->base != sp) ||
	       (op->kind == OP_LEA && op->dst == sp && op->src != sp && !op->imm &&
		op->src != leap->arch->fp);
}

/* What the step puts into its k-th register. */
static struct source loaded(const struct leap *leap, size_t i, unsigned int k)
{
	const struct code_op *op = &leap->op[i];
	const uint8_t reg = k ? op->dst2 : op->dst;
	struct source s = { .reg = reg, .made = i };

	if (op->kind == OP_LEA && !op->imm && op->src < CODE_REGS) {
		s = leap->reg[op->src];
		if (reg != leap->arch->sp && reg != leap->arch->fp) { /* src may change */
			s.reg = reg;
			s.made = i;
		}
		return s;
	}
	if (!is_word_load(op))
		return s;
	s.base = op->base;
	s.off = op->imm + 8 * (int64_t)k;
	s.from = FROM_BUFFER;
	if (op->base == leap->arch->sp) {
		s.from = i > leap->sp_set ? FROM_STACK : FROM_UNKNOWN;
		s.off += leap->height[i];
	}
	return s;
}

static bool is_push(const struct leap *leap, const struct code_op *op)
{
	return op->kind == OP_STORE && op->base == leap->arch->sp && op->size == 8 &&
	       op->index == CODE_NO_REG && op->src2 < CODE_REGS && op->src3 == CODE_NO_REG;
}

/* The step's effect. False: it calls, or changes sp in another way. */
static bool take(struct leap *leap, size_t i)
{
	const struct code_op *op = &leap->op[i];
	const uint8_t sp = leap->arch->sp, fp = leap->arch->fp;
	const uint32_t writes = code_op_writes(op);
	struct source to[2] = { loaded(leap, i, 0), loaded(leap, i, 1) };
	int64_t up = op->base == sp ? op->writeback : 0;

	if (op->kind == OP_CALL || op->kind == OP_SYSCALL || op->kind == OP_LEAVE ||
	    op->kind == OP_ENTER)
		return false;
	if (op->kind == OP_OTHER)
		up += op->pops;
	if (i > leap->sp_set && writes >> sp & 1) {
		if (op->kind != OP_LEA || op->src != sp)
			return false;
		up = op->imm;
	}
	if (i > leap->sp_set && is_push(leap, op)) {
		leap->before = leap->reg[op->src2];
		leap->before.reg = op->src2;
		leap->pushed = (struct source){ .from = FROM_STACK,
						.made = i,
						.off = leap->height[i] + op->imm };
	}
	if (i == leap->sp_set)
		leap->sp = to[0];
	for (uint8_t r = 0; r < CODE_REGS; r++)
		if (writes >> r & 1)
			leap->reg[r] = (struct source){ .reg = r, .made = i };
	if (op->dst < CODE_REGS)
		leap->reg[op->dst] = to[0];
	if (op->dst2 < CODE_REGS)
		leap->reg[op->dst2] = to[1];
	if (writes >> fp & 1) { /* fp becomes that of its own frame, or of the other one */
		leap->fp = leap->reg[fp];
		leap->fp_set = leap->fp.reg == sp ? leap->n : i;
	}
	if (i + 1 < leap->n)
		leap->height[i + 1] = i > leap->sp_set ? leap->height[i] + up : 0;
	return true;
}

/* Sets where the address of the jump is, at the last step. False: it is no such jump. */
static bool take_jump(struct leap *leap)
{
	const size_t last = leap->n - 1;
	const struct code_op *op = &leap->op[last];

	leap->end = leap->height[last];
	if (op->kind == OP_RET && leap->arch->ra_bytes) {
		leap->end += leap->arch->ra_bytes;
		leap->ra = (struct source){ .from = FROM_STACK, .off = leap->height[last] };
		return !op->pops;
	}
	if (op->kind == OP_JUMP_REG || op->kind == OP_RET) {
		leap->ra = leap->reg[op->kind == OP_RET ? leap->arch->ra : op->src];
		return true;
	}
	if (op->kind != OP_JUMP_TABLE || op->index != CODE_NO_REG || op->base == CODE_NO_REG)
		return false;
	leap->ra = (struct source){
		.from = FROM_BUFFER, .base = op->base, .made = last, .off = op->imm
	};
	return op->base != leap->arch->sp;
}

/*
 * Whether the step may store to the buffer at reg. What saves the caller's registers elsewhere does
 * not: a coroutine has a buffer of its own.
 */
static bool may_store(const struct leap *leap, const struct code_op *op, uint8_t reg)
{
	if (op->kind != OP_STORE)
		return op->store_size && op->base != leap->arch->sp;
	return op->base != leap->arch->sp &&
	       (op->base == reg || op->index != CODE_NO_REG || op->src2 >= CODE_REGS ||
		!(leap->arch->callee_saved >> op->src2 & 1));
}

/* Whether the register and memory are the same at both steps. */
static bool unchanged(const struct leap *leap, uint8_t reg, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct code_op *op = &leap->op[i];

		if (code_op_writes(op) >> reg & 1 || (op->writeback && op->base == reg) ||
		    may_store(leap, op, reg))
			return false;
	}
	return true;
}

/* Where the value is at step i. */
static struct rule rule_of(const struct leap *leap, const struct source *s, size_t i)
{
	struct rule none = { .kind = RULE_NONE };
	const int64_t off = s->off - (s->from == FROM_STACK ? leap->end : 0);

	if (s->from == FROM_STACK)
		return (struct rule){ .kind = RULE_CFA_MEM, .off = (int32_t)off };
	if (i > s->made)
		return (struct rule){ .kind = RULE_REG, .reg = s->reg };
	if (s->from != FROM_BUFFER || off != (int32_t)off || !unchanged(leap, s->base, i, s->made))
		return none;
	return (struct rule){ .kind = RULE_REG_MEM, .reg = s->base, .off = (int32_t)off };
}

static struct row row_at(const struct leap *leap, size_t i)
{
	const bool by_push = leap->ra.from == FROM_STACK && leap->pushed.from == FROM_STACK &&
			     leap->pushed.off == leap->ra.off && i <= leap->pushed.made;
	struct row row = {
		.source = ROW_CODE,
		.flags = ROW_SIGNAL, /* the address need not follow a call */
		.cfa = { .kind = RULE_REG, .reg = leap->arch->sp },
		.ra = rule_of(leap, by_push ? &leap->before : &leap->ra, i),
		.fp = { .kind = RULE_SAME },
		.start = leap->at[i],
		.end = leap->at[i + 1],
	};

	if (i <= leap->fp_set && leap->fp_set < leap->n)
		row.fp = rule_of(leap, &leap->fp, i);
	if (i <= leap->sp_set)
		row.cfa = rule_of(leap, &leap->sp, i);
	if (row.cfa.kind == RULE_REG_MEM)
		row.cfa_off2 = (int32_t)leap->end;
	else
		row.cfa.off = (int32_t)(leap->end - (i > leap->sp_set ? leap->height[i] : 0));
	if ((row.cfa.kind != RULE_REG && row.cfa.kind != RULE_REG_MEM) ||
	    row.ra.kind == RULE_NONE || row.fp.kind == RULE_NONE)
		row.flags |= ROW_LOST;
	return row;
}

/* Puts the row behind those that end where it starts, in the place of others. */
static int put(struct rowbuf *rows, const struct row *row)
{
	struct row *last;

	while (rows->n && rows->rows[rows->n - 1].start >= row->start)
		rows->n--;
	last = rows->n ? &rows->rows[rows->n - 1] : NULL;
	if (last && last->end > row->start)
		last->end = row->start;
	if (last && last->end == row->start && row_same_rules(last, row)) {
		last->end = row->end;
		return 0;
	}
	return rowbuf_push(rows, row);
}

/* Whether the code sets sp, and then jumps away. */
static bool find(struct leap *leap)
{
	size_t i;

	leap->sp_set = leap->fp_set = leap->n;
	for (i = 0; i < leap->n; i++)
		if (leap->at[i] == leap->fresh && sets_sp(leap, &leap->op[i]))
			leap->sp_set = i;
	if (leap->sp_set == leap->n)
		return false;
	for (i = 0; i < leap->n; i++)
		if (i + 1 < leap->n ? !take(leap, i) && i >= leap->sp_set : !take_jump(leap))
			return false;
	/* A function with arrays on its stack sets sp alone. */
	return leap->op[leap->sp_set].kind == OP_LOAD || leap->fp_set < leap->n;
}

int code_leap_rows(struct code_fn *f, const struct code_leader *l, struct rowbuf *rows)
{
	struct leap leap = { .arch = f->arch };
	int err = 0;

	for (uint8_t r = 0; r < CODE_REGS; r++)
		leap.reg[r].reg = r;

	collect(f, l, &leap);
	if (!find(&leap))
		return 0;
	for (size_t i = 0; i < leap.n && !err; i++) {
		const struct row row = row_at(&leap, i);

		if (i <= leap.sp_set && i <= leap.fp_set)
			continue;
		f->result.goes_away |= !(row.flags & ROW_LOST);
		err = put(rows, &row);
	}
	return err;
}
