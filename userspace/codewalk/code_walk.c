/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of an instruction of a function, and a walk along a leader's instructions. */
#include "base/u64s.h"
#include "codewalk/code_fn.h"

const struct code_op *code_op_at(const struct code_fn *f, uint64_t addr)
{
	struct code_cached *c = &f->room.cache[addr & (CODE_CACHE - 1)];

	if (c->addr != addr) {
		code_decode(f->bin, addr, &c->op);
		c->addr = addr;
	}
	return &c->op;
}

bool code_fn_inside(const struct code_fn *f, uint64_t addr)
{
	for (size_t i = 0; i < f->try.nparts; i++)
		if (code_in_part(f, i, addr))
			return true;
	return false;
}

static bool is_pop(const struct code_fn *f, uint64_t addr)
{
	const struct code_op *op = code_fn_inside(f, addr) ? code_op_at(f, addr) : NULL;

	return op && op->kind == OP_LOAD && op->base == f->arch->sp && op->writeback == op->size;
}

/* An indirect call through a fixed place */
static bool is_import(const struct code_op *op)
{
	return op->base == CODE_NO_REG && op->index == CODE_NO_REG && op->imm;
}

static const struct code_op *with_callee(const struct code_fn *f, const struct code_op *op,
					 struct code_callee callee, struct code_op *refined)
{
	*refined = *op;
	refined->spared = ~callee.writes;
	if (callee.pops == CODE_POPS_UNKNOWN)
		refined->writes |= 1u << f->arch->sp;
	else
		refined->pops = callee.pops;
	return refined;
}

/*
 * Position-independent code reads its address by a call of the next instruction: it is a push. A
 * call of the function that comes next in the file is none. At a program's entry, a pop must
 * follow: musl's _start calls such a function.
 */
static const struct code_op *refine_call(const struct code_fn *f, const struct code_op *op,
					 uint64_t next, struct code_op *refined)
{
	static const struct code_callee unknown = { UINT32_MAX, CODE_POPS_UNKNOWN };

	if (!op->target)
		return f->bin->has_poppers && !is_import(op) ? with_callee(f, op, unknown, refined)
							     : op;
	if (op->target != next || !code_fn_inside(f, next))
		return with_callee(f, op, f->bin->callee_at(f->bin->ctx, op->target), refined);
	if (f->arch->ra != CODE_NO_REG || (f->run.fn.outermost && !is_pop(f, next)))
		return op;
	*refined = (struct code_op){ .kind = OP_STORE,
				     .base = f->arch->sp,
				     .index = CODE_NO_REG,
				     .src2 = CODE_NO_REG,
				     .src3 = CODE_NO_REG,
				     .size = 8,
				     .imm = -8,
				     .writeback = -8 };
	return refined;
}

/* Whether it is a call of error() or its like that does not return. */
static bool error_ends(const struct code_fn *f, const struct code_op *op,
		       const struct code_state *s)
{
	const struct code_val *status = &s->reg[f->arch->argument];

	return f->bin->nmay_end && status->kind == VAL_CONST && (uint32_t)status->off &&
	       (op->target || is_import(op)) &&
	       u64_has(f->bin->may_end, f->bin->nmay_end,
		       op->target ? op->target : (uint64_t)op->imm);
}

const struct code_op *code_fn_refine(const struct code_fn *f, const struct code_op *op,
				     const struct code_state *s, uint64_t next,
				     struct code_op *refined)
{
	if (op->kind == OP_CALL && error_ends(f, op, s)) {
		*refined = *op;
		refined->kind = OP_END;
		return refined;
	}
	if (op->kind == OP_CALL)
		return refine_call(f, op, next, refined);
	if (op->kind != OP_SYSCALL || s->reg[f->arch->syscall].kind != VAL_CONST)
		return op;
	*refined = *op;
	if (code_state_syscall_is(s, f->arch, f->arch->exits))
		refined->kind = OP_END;
	else if (code_state_syscall_is(s, f->arch, f->arch->clones))
		refined->kind = OP_BAD;
	return refined;
}

/* Whether what follows the call is not reached from it. */
bool code_fn_ends_there(const struct code_fn *f, const struct code_op *op, uint64_t addr)
{
	const uint8_t *callee = op->target ? code_mark_of(f->bin, op->target) : NULL;

	return (callee && *callee & MARK_ENDS) ||
	       u64_has(f->room.noreturn, f->run.nnoreturn, addr) ||
	       (f->run.fn.by_finals && op->target &&
		u64_has(f->learnt.finals, f->learnt.nfinals, op->target)) ||
	       (!op->target && is_import(op) &&
		u64_has(f->bin->ends, f->bin->nends, (uint64_t)op->imm));
}

bool code_fn_left_frame(const struct code_fn *f, const struct code_state *s, bool by_jump)
{
	const struct code_val *sp = &s->reg[f->arch->sp];
	struct code_op op;

	if (sp->kind != VAL_STACK || !sp->sym)
		return false;
	code_decode(f->bin, sp->sym, &op);
	if (op.kind == OP_LEA) /* glibc's longjmp() */
		return by_jump && op.dst == f->arch->sp && !op.imm && op.src != f->arch->sp &&
		       op.src != f->arch->fp;
	return op.kind == OP_LOAD && op.dst == f->arch->sp;
}

void code_walk_begin(struct code_walk *w, const struct code_leader *l)
{
	code_state_copy(&w->state, &l->state);
	w->at = w->end = l->addr;
	w->on = true;
}

bool code_walk_next(const struct code_fn *f, struct code_walk *w)
{
	const bool first = w->at == w->end;
	const uint8_t *mark = w->on && code_fn_inside(f, w->end) ? code_mark_of(f->bin, w->end)
								 : NULL;

	if (!mark || !(*mark & MARK_START) || (!first && *mark & MARK_LEADER))
		return false;
	w->at = w->end;
	w->op = code_op_at(f, w->at);
	w->end += w->op->len;
	w->op = code_fn_refine(f, w->op, &w->state, w->end, &w->refined);
	w->on = w->op->kind != OP_RET && w->op->kind != OP_END && w->op->kind != OP_JUMP &&
		w->op->kind != OP_JUMP_REG && w->op->kind != OP_JUMP_TABLE &&
		!(w->op->kind == OP_CALL && code_fn_ends_there(f, w->op, w->at));
	return true;
}

void code_walk_apply(const struct code_fn *f, struct code_walk *w)
{
	code_state_apply(&w->state, f->arch, w->op, w->at);
	if (w->op->kind == OP_BRANCH)
		code_state_branch(&w->state, f->arch, w->op, false);
}
