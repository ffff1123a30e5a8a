/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/code_fn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/u64s.h"
#include "base/vec.h"
#include "unwind/code_ends.h"
#include "unwind/code_fn_internal.h"
#include "unwind/code_jump.h"
#include "unwind/code_labels.h"

#define TRIES	    48 /* analyses of one function, each with one more call known not to return */
#define VISITS	    8  /* instructions looked at in each byte of a function, on average */
#define VISITS_MORE 4096
#define LEADERS_MAX 65536
#define OWN_MAX	    256
/* Entries at the start of a table that no index reaches: it may be the log2 of a width from 4 on */
#define UNUSED_MAX  4

/* Beyond 0 and -errno */
enum { AGAIN = 1, REJECT = 2 };

bool code_fn_inside(const struct code_fn *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nparts; i++)
		if (addr >= f->parts[i].start && addr < f->parts[i].end)
			return true;
	return false;
}

static int push_u64(uint64_t **list, size_t *n, size_t *cap, uint64_t v)
{
	int err = vec_reserve(list, cap, *n + 1, sizeof(**list));

	if (!err)
		(*list)[(*n)++] = v;
	return err;
}

static bool listed(const uint64_t *list, size_t n, uint64_t v)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

/* ---- Leaders ---- */

static uint64_t hash_of_leader(const void *ctx, size_t i)
{
	return hash_u64(((const struct code_fn *)ctx)->leaders[i].addr);
}

static struct code_leader *leader_at(const struct code_fn *f, uint64_t addr)
{
	size_t at;

	if (!f->slots.n)
		return NULL;
	slots_each(&f->slots, hash_u64(addr), at)
		if (f->leaders[f->slots.ids[at] - 1].addr == addr)
			return &f->leaders[f->slots.ids[at] - 1];
	return NULL;
}

static int enqueue(struct code_fn *f, struct code_leader *l)
{
	int err = l->queued ? 0
			    : vec_reserve(&f->work, &f->work_cap, f->nwork + 1, sizeof(*f->work));

	if (err || l->queued)
		return err;
	l->queued = true;
	f->work[f->nwork++] = (uint32_t)(l - f->leaders);
	return 0;
}

/* Code was followed across addr before it was a leader: follows it again up to there. */
static int split(struct code_fn *f, uint64_t addr)
{
	const struct code_text *t = code_text_of(f, addr);
	struct code_leader *l;

	while (addr > t->start && (t->marks[addr - t->start - 1] & (MARK_START | MARK_BODY))) {
		addr--;
		if (t->marks[addr - t->start] & MARK_LEADER) {
			l = leader_at(f, addr);
			return l ? enqueue(f, l) : 0;
		}
	}
	return 0;
}

static int new_leader(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call)
{
	uint8_t *mark = code_mark_of(f, addr);
	bool passed = *mark & MARK_START;
	size_t at;
	int err;

	if (*mark & MARK_BODY || f->nleaders >= LEADERS_MAX)
		return REJECT;
	err = slots_reserve(&f->slots, f->nleaders, hash_of_leader, f);
	if (!err)
		err = vec_reserve(&f->leaders, &f->leaders_cap, f->nleaders + 1,
				  sizeof(*f->leaders));
	if (err)
		return err;
	slots_each(&f->slots, hash_u64(addr), at)
		;
	f->leaders[f->nleaders] = (struct code_leader){ .addr = addr,
							.from_call = call,
							.passed = passed,
							.is_after = f->in_after,
							.pushed = f->pushed };
	f->leaders[f->nleaders].state = *s;
	f->leaders[f->nleaders].state.cmp_reg = CODE_NO_REG;
	f->slots.ids[at] = (uint32_t)++f->nleaders;
	*mark |= MARK_LEADER;
	err = enqueue(f, &f->leaders[f->nleaders - 1]);
	return err || !passed ? err : split(f, addr);
}

/* What follows the call makes no sense, so it does not return. */
static int no_return(struct code_fn *f, uint64_t call)
{
	int err;

	if (!call || listed(f->noreturn, f->nnoreturn, call))
		return REJECT;
	err = push_u64(&f->noreturn, &f->nnoreturn, &f->noreturn_cap, call);
	return err ? err : AGAIN;
}

/*
 * Whether there is a row although two ways lead here with different heights of the stack: by a
 * frame pointer, a word in memory, or the bound of a loop that touches pages. A frame pointer that
 * only happens to point into the frame does not explain the heights.
 */
static bool height_may_differ(const struct code_fn *f, const struct code_state *s)
{
	const int64_t frame = 2 * f->arch->ra_bytes;
	struct row row;

	return code_state_row(s, f->arch, false, &row) &&
	       (!frame || row.cfa.kind != RULE_REG || row.cfa.reg != f->arch->fp ||
		row.cfa.off == frame);
}

static bool height_of(const struct code_fn *f, const struct code_state *s, int64_t *ret)
{
	*ret = s->reg[f->arch->sp].off;
	return s->reg[f->arch->sp].kind == VAL_STACK && !s->reg[f->arch->sp].sym;
}

/*
 * The call that explains why two heights of the stack meet at the leader: arguments were pushed for
 * it, nothing has removed them, and they are the difference. So it does not return. 0: there is
 * none.
 */
static uint64_t pushed_for(const struct code_fn *f, const struct code_leader *l,
			   const struct code_state *s)
{
	int64_t here, there;

	if (!height_of(f, s, &here) || !height_of(f, &l->state, &there))
		return 0;
	if (f->pushed.call && here + f->pushed.bytes == there)
		return f->pushed.call;
	return l->pushed.call && there + l->pushed.bytes == here ? l->pushed.call : 0;
}

/* The state reaches the leader. call: directly after that call, as its return; 0: otherwise. */
static int edge(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call)
{
	struct code_leader *l = leader_at(f, addr);
	uint64_t pushed;
	enum code_merge how;

	/* What follows such a call does not change what is known of the other code. */
	if (f->in_after && (l ? !l->is_after : *code_mark_of(f, addr) & MARK_START))
		return l && code_state_conflict(&l->state, s, f->arch) ? REJECT : 0;
	if (!l)
		return new_leader(f, addr, s, call);
	if (call && !l->passed && !l->from_call && !f->outermost &&
	    code_state_conflict(&l->state, s, f->arch))
		/* The call does not return, and nothing was concluded from it. */
		return push_u64(&f->noreturn, &f->nnoreturn, &f->noreturn_cap, call);
	pushed = pushed_for(f, l, s);
	how = code_state_merge(&l->state, s, f->arch);
	if (how == MERGE_CONFLICT && !f->outermost && (call || l->from_call))
		return no_return(f, call ? call : l->from_call);
	if (how == MERGE_CONFLICT && !f->outermost && !height_may_differ(f, &l->state))
		return no_return(f, pushed);
	l->from_call = 0;
	if (!f->pushed.call)
		l->pushed = (struct code_pushed){ 0 };
	return how == MERGE_SAME ? 0 : enqueue(f, l);
}

static int jump_to(struct code_fn *f, uint64_t target, const struct code_state *s)
{
	struct code_range part;

	if (code_fn_inside(f, target))
		return edge(f, target, s, 0);
	if (f->outermost || code_state_is_entry(s, f->arch)) {
		f->leaps = true;
		f->tail_loses |= !code_state_restored(s, f->arch);
		return f->outermost ? 0 : push_u64(&f->tails, &f->ntails, &f->tails_cap, target);
	}
	/* A part of this function that the compiler placed elsewhere. */
	if (f->nparts == CODE_PARTS || !code_text_of(f, target) ||
	    !f->part_of(f->ctx, target, &part) || target < part.start || target >= part.end)
		return REJECT;
	f->parts[f->nparts++] = part;
	f->left += (part.end - part.start) * VISITS;
	return edge(f, target, s, 0);
}

/* ---- Instructions ---- */

/* Marks the instruction's bytes. False: it overlaps another one. */
static bool mark(struct code_fn *f, uint64_t addr, unsigned int len)
{
	const struct code_text *t = code_text_of(f, addr);
	uint8_t *m = t->marks + (addr - t->start);

	if (*m & MARK_BODY || len > t->end - addr)
		return false;
	if (*m & MARK_START)
		return true;
	*m |= MARK_START;
	for (unsigned int i = 1; i < len; i++) {
		if (m[i] & (MARK_START | MARK_LEADER))
			return false;
		m[i] |= MARK_BODY;
	}
	return true;
}

static int jump_table(struct code_fn *f, const struct code_val *v, const struct code_state *s)
{
	const bool open = !v->n && v->size < 8;
	unsigned int to = 0; /* targets so far */
	uint64_t target;
	int err = open ? code_labels_load_data(f) : 0, more;

	if (err)
		return err;
	if (!listed(f->tables, f->ntables, (uint64_t)v->off)) {
		err = push_u64(&f->tables, &f->ntables, &f->tables_cap, (uint64_t)v->off);
		/* Another table may have been read too far. */
		return err ? err : f->ntables > 1 ? AGAIN : jump_table(f, v, s);
	}
	for (unsigned int i = 0; !err && (!v->n || i < v->n); i++) {
		/* Tables do not overlap each other or other data. */
		uint64_t at = (uint64_t)v->off + (uint64_t)i * v->size;

		if (to &&
		    (listed(f->tables, f->ntables, at) || (open && code_is_data_label(f, at))))
			return 0;
		more = code_jump_entry(f, v, i, &target);
		if (more < 0)
			return more;
		if (!i && target == v->sym) /* an entry of 0: the index is never 0 */
			continue;
		if (!v->n && !to && !code_fn_inside(f, target) && i < UNUSED_MAX)
			continue;
		if (!more || (!v->n && !code_fn_inside(f, target)))
			return to && !v->n ? 0 : REJECT;
		/* Into an instruction: the end of the table was missed. */
		if (to && !v->n && *code_mark_of(f, target) & MARK_BODY)
			return 0;
		to++;
		err = jump_to(f, target, s);
	}
	return err;
}

/* A word of the file, as in a PLT: before it is bound, a jump through it leads back to the stub. */
static int back_to_stub(struct code_fn *f, uint64_t slot, const struct code_state *s)
{
	const struct code_val word = { .kind = VAL_TARGET, .size = 8, .off = (int64_t)slot };
	uint64_t target;
	int known = code_jump_entry(f, &word, 0, &target);

	return known > 0 && code_fn_inside(f, target) ? edge(f, target, s, 0)
	       : known < 0			      ? known
						      : 0;
}

static int note_own(struct code_fn *f, const struct code_op *op)
{
	for (size_t i = 0; i < f->nown; i++)
		if (f->own[i].reg == op->dst && f->own[i].addr == (uint64_t)op->imm)
			return 0;
	if (f->nown == OWN_MAX)
		return 0;
	if (vec_reserve(&f->own, &f->own_cap, f->nown + 1, sizeof(*f->own)))
		return -ENOMEM;
	f->own[f->nown++] = (struct code_own){ (uint64_t)op->imm, op->dst };
	f->own_late |= f->own_jumps >> op->dst & 1;
	return 0;
}

/*
 * To all labels, as a computed goto: to those that the function loads into the register, or else,
 * if it is not a jump to another function, to those within it.
 */
static int jump_to_labels(struct code_fn *f, const struct code_op *op, const struct code_state *s)
{
	bool found = false;
	int err = 0;

	for (size_t i = 0; i < f->nown && op->kind == OP_JUMP_REG && !err; i++)
		if (f->own[i].reg == op->src) {
			found = true;
			err = jump_to(f, f->own[i].addr, s);
		}
	if (found) {
		f->own_jumps |= 1u << op->src;
		return err;
	}
	if (code_state_is_entry(s, f->arch))
		return 0;
	if (!f->sized)
		return REJECT;
	err = code_labels_load(f);
	for (size_t i = 0; i < f->nparts && !err; i++)
		for (size_t k = u64_first_from(f->labels, f->nlabels, f->parts[i].start + 1);
		     k < f->nlabels && f->labels[k] < f->parts[i].end && !err; k++) {
			found = true;
			err = edge(f, f->labels[k], s, 0);
		}
	return err || found ? err : REJECT;
}

static int jump_indirect(struct code_fn *f, const struct code_op *op, struct code_state *s,
			 uint64_t addr)
{
	const bool by_slot = op->kind == OP_JUMP_TABLE && op->base == CODE_NO_REG &&
			     op->index == CODE_NO_REG;
	struct code_val v = code_state_jump(s, op);
	int err = code_jump_known(f, addr, &v);

	if (!err)
		err = v.kind == VAL_TARGET ? jump_table(f, &v, s) : REJECT;
	if (v.kind == VAL_TARGET && (err != REJECT || v.size < 8))
		return err;
	if (op->kind == OP_JUMP_REG && s->reg[op->src].kind == VAL_CONST)
		return jump_to(f, (uint64_t)s->reg[op->src].off, s);
	f->leaps = true;
	f->loses |= !code_state_restored(s, f->arch);
	if (by_slot && (f->outermost || code_state_is_entry(s, f->arch)))
		return back_to_stub(f, (uint64_t)op->imm, s);
	if (f->outermost || (by_slot && code_jump_to_resolver(f, (uint64_t)op->imm)))
		return 0;
	return jump_to_labels(f, op, s);
}

static int note(struct code_fn *f, const struct code_op *op)
{
	if (op->kind == OP_CALL && op->target)
		return push_u64(&f->calls, &f->ncalls, &f->calls_cap, op->target);
	if (op->kind != OP_CONST || !code_text_of(f, (uint64_t)op->imm))
		return 0;
	if (note_own(f, op))
		return -ENOMEM;
	return push_u64(&f->addressed, &f->naddressed, &f->addressed_cap, (uint64_t)op->imm);
}

static bool is_pop(const struct code_fn *f, uint64_t addr)
{
	const struct code_op *op = code_fn_inside(f, addr) ? code_op_at(f, addr) : NULL;

	return op && op->kind == OP_LOAD && op->base == f->arch->sp && op->writeback == op->size;
}

/*
 * Position-independent code reads its address by a call of the next instruction: it is a push. At a
 * program's entry, a pop must follow: musl's _start calls the function that comes next in the file.
 */
void code_fn_call_as_push(const struct code_fn *f, struct code_op *op, uint64_t next)
{
	if (op->kind != OP_CALL || op->target != next || f->arch->ra != CODE_NO_REG ||
	    (f->outermost && !is_pop(f, next)))
		return;
	*op = (struct code_op){ .kind = OP_STORE,
				.base = f->arch->sp,
				.index = CODE_NO_REG,
				.src2 = CODE_NO_REG,
				.src3 = CODE_NO_REG,
				.size = 8,
				.imm = -8,
				.writeback = -8 };
}

/* Whether what follows the call is not reached from it. */
bool code_fn_ends_there(const struct code_fn *f, const struct code_op *op, uint64_t addr)
{
	const uint8_t *callee = op->target ? code_mark_of(f, op->target) : NULL;

	return (callee && *callee & MARK_ENDS) || listed(f->noreturn, f->nnoreturn, addr) ||
	       (!op->target && op->base == CODE_NO_REG && op->index == CODE_NO_REG &&
		code_ends_at(f, (uint64_t)op->imm));
}

/* The ways out of an instruction that was applied. *on: whether the next one is reached. */
static int leave_op(struct code_fn *f, const struct code_op *op, struct code_state *s,
		    uint64_t addr, bool *on)
{
	struct code_state taken;
	int err;

	*on = false;
	switch (op->kind) {
	case OP_RET:
		f->returns = true;
		f->loses |= !code_state_restored(s, f->arch);
		return code_state_may_return(s, f->arch) ? 0 : REJECT;
	case OP_END:
		return 0;
	case OP_JUMP:
		return op->target ? jump_to(f, op->target, s) : jump_indirect(f, op, s, addr);
	case OP_JUMP_REG:
	case OP_JUMP_TABLE:
		return jump_indirect(f, op, s, addr);
	case OP_CALL:
		*on = !code_fn_ends_there(f, op, addr);
		return 0;
	case OP_BRANCH:
		*on = true;
		taken = *s;
		code_state_branch(&taken, f->arch, op, true);
		err = jump_to(f, op->target, &taken);
		code_state_branch(s, f->arch, op, false);
		return err;
	default:
		*on = true;
		return 0;
	}
}

/* Whether a function starts after a call, which therefore does not return. */
static bool falls_into_function(const struct code_fn *f, uint64_t addr)
{
	return *code_mark_of(f, addr) & MARK_CALLED || listed(f->calls, f->ncalls, addr);
}

/* first: the height of the stack at the beginning of this code; NULL: unknown */
static void note_pushed(struct code_fn *f, const struct code_op *op, const struct code_state *s,
			uint64_t at, const int64_t *first)
{
	int64_t height;

	if (!first || !height_of(f, s, &height)) {
		f->pushed = (struct code_pushed){ 0 };
		return;
	}
	if (height + f->pushed.bytes != *first)
		f->pushed = (struct code_pushed){ 0 };
	if (op->kind == OP_CALL && height < *first)
		f->pushed = (struct code_pushed){ at, *first - height };
}

static void note_after(struct code_fn *f, uint64_t addr, const struct code_state *s)
{
	if (f->sized && f->nafter < CODE_AFTER)
		f->after[f->nafter++] = (struct code_after){ addr, *s };
}

/* Goes on after a call that does not return, where no other code leads. 0 or as edge(). */
static int take_after(struct code_fn *f)
{
	const struct code_after *after = &f->after[--f->nafter];

	if (!code_fn_inside(f, after->addr) || falls_into_function(f, after->addr) ||
	    *code_mark_of(f, after->addr) & (MARK_START | MARK_BODY))
		return 0;
	f->in_after = true;
	return new_leader(f, after->addr, &after->state, 0);
}

/* Follows the code from the leader to where it ends or meets another leader. */
static int follow(struct code_fn *f, uint64_t addr, struct code_state s)
{
	const uint64_t from = addr;
	uint64_t call = 0, last = 0; /* the call right before; the last one */
	int64_t first = 0;
	bool on = true, known = height_of(f, &s, &first);
	struct code_op op;
	int err = 0;

	first += f->pushed.bytes;
	while (on && !err) {
		uint64_t at = addr;

		if (!code_fn_inside(f, addr)) {
			if (!call && !f->outermost) /* on into the next function */
				return code_state_is_entry(&s, f->arch) ? jump_to(f, addr, &s)
									: REJECT;
			f->leaps |= !call || !f->sized;
			return 0;
		}
		if (call && falls_into_function(f, addr)) {
			f->leaps |= !f->sized;
			return 0;
		}
		if (addr != from && *code_mark_of(f, addr) & MARK_LEADER)
			return edge(f, addr, &s, call);
		if (!f->left || !f->budget)
			return REJECT;
		f->left--;
		f->budget--;
		op = *code_op_at(f, addr);
		if (op.kind == OP_BAD || !mark(f, addr, op.len))
			return f->outermost ? 0 : no_return(f, call);
		addr += op.len;
		f->runs[f->nruns - 1].end = addr;
		code_fn_call_as_push(f, &op, addr);
		if (!code_state_apply(&s, f->arch, &op, at) && !f->outermost)
			return REJECT;
		note_pushed(f, &op, &s, at, known ? &first : NULL);
		err = note(f, &op);
		if (!err)
			err = leave_op(f, &op, &s, at, &on);
		if (!on && (op.kind == OP_CALL || (op.kind == OP_END && call)))
			note_after(f, addr, &s);
		if (err == REJECT && op.kind == OP_RET && last)
			/* Another function's code follows a call that does not return. */
			return no_return(f, last);
		if (op.kind == OP_CALL)
			last = at;
		if (op.kind != OP_NOP)
			call = op.kind == OP_CALL ? at : 0;
	}
	return err;
}

static int explore(struct code_fn *f)
{
	int err = 0;

	while ((f->nwork || f->nafter) && !err) {
		struct code_leader *l;

		if (!f->nwork) {
			err = take_after(f);
			continue;
		}
		l = &f->leaders[f->work[--f->nwork]];
		l->queued = false;
		err = vec_reserve(&f->runs, &f->runs_cap, f->nruns + 1, sizeof(*f->runs));
		if (err)
			break;
		f->runs[f->nruns++] = (struct code_range){ l->addr, l->addr };
		f->pushed = l->pushed;
		err = follow(f, l->addr, l->state);
	}
	return err;
}

static void clear(struct code_fn *f)
{
	uint8_t *m;

	for (size_t i = 0; i < f->nruns; i++)
		for (uint64_t a = f->runs[i].start; a < f->runs[i].end; a++)
			*code_mark_of(f, a) &= (uint8_t) ~(MARK_START | MARK_BODY | MARK_LEADER);
	for (size_t i = 0; i < f->nleaders; i++) {
		m = code_mark_of(f, f->leaders[i].addr);
		*m &= (uint8_t) ~(MARK_START | MARK_BODY | MARK_LEADER);
	}
	slots_reset(&f->slots);
	f->in_after = false;
	f->nafter = f->nruns = f->nleaders = f->nwork = f->ncalls = f->naddressed = f->ntails = 0;
	f->njumps = 0;
	f->rows.n = 0;
	f->returns = f->leaps = f->loses = f->tail_loses = f->own_late = false;
	f->own_jumps = 0;
}

int code_fn_analyse(struct code_fn *f, struct code_range fn)
{
	struct code_state s;
	int err = AGAIN;

	f->nnoreturn = f->ntables = f->nown = 0;
	f->left = (fn.end - fn.start) * VISITS + VISITS_MORE;
	if (!f->cache)
		f->cache = calloc(CODE_CACHE, sizeof(*f->cache));
	if (!f->after)
		f->after = calloc(CODE_AFTER, sizeof(*f->after));
	if (!f->cache || !f->after)
		return -ENOMEM;
	code_state_entry(&s, f->arch);
	for (int i = 0; i < TRIES && err == AGAIN; i++) {
		clear(f);
		f->parts[0] = fn;
		f->nparts = 1;
		err = new_leader(f, fn.start, &s, 0);
		if (!err)
			err = explore(f);
		if (!err && f->own_late)
			err = AGAIN;
		if (err == REJECT && f->in_after) {
			f->sized = false; /* without that code */
			err = AGAIN;
		}
	}
	if (!err)
		err = code_fn_make_rows(f);
	if (err < 0)
		return err;
	if (err)
		return CODE_REJECTED;
	if (f->returns && !f->loses)
		return CODE_PROVEN;
	return f->ntails && !f->tail_loses && !f->loses ? CODE_TAILS : CODE_SOUND;
}
