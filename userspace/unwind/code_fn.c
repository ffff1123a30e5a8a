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
#define VISITS_MORE 4096
#define FN_ALIGN    16

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
	for (unsigned int i = 1; i < len; i++)
		if (m[i] & (MARK_START | MARK_LEADER))
			return false;
	*m |= MARK_START;
	for (unsigned int i = 1; i < len; i++)
		m[i] |= MARK_BODY;
	return true;
}

static uint64_t hash_of_call(const void *ctx, size_t i)
{
	return hash_u64(((const struct code_fn *)ctx)->calls[i]);
}

/* The slot of a function that is called, or a free one */
static uint32_t *call_slot(const struct code_fn *f, uint64_t target)
{
	size_t at;

	slots_each(&f->call_slots, hash_u64(target), at)
		if (f->calls[f->call_slots.ids[at] - 1] == target)
			break;
	return &f->call_slots.ids[at];
}

bool code_calls(const struct code_fn *f, uint64_t target)
{
	return f->ncalls && *call_slot(f, target);
}

static int note_call(struct code_fn *f, uint64_t target)
{
	int err = slots_reserve(&f->call_slots, f->ncalls, hash_of_call, f);
	uint32_t *slot = err ? NULL : call_slot(f, target);

	if (err || *slot)
		return err;
	err = u64_push(&f->calls, &f->ncalls, &f->calls_cap, target);
	if (!err)
		*slot = (uint32_t)f->ncalls;
	return err;
}

static int note(struct code_fn *f, const struct code_op *op)
{
	const uint64_t address = code_address_of(f, op);

	if (op->kind == OP_CALL && op->target)
		return note_call(f, op->target);
	if (!code_text_of(f, address))
		return 0;
	/* AArch64's tables hold distances from a label, which two instructions load. */
	if (!op->imm2 && code_jump_note_own(f, op->dst, address))
		return -ENOMEM;
	return u64_push(&f->addressed, &f->naddressed, &f->addressed_cap, address);
}

static int returns(struct code_fn *f, const struct code_state *s, int32_t pops)
{
	if (code_fn_left_frame(f, s, f->arch->ra != CODE_NO_REG)) {
		f->leaps = true;
		return 0;
	}
	if (f->returns && f->pops != pops)
		return CODE_FN_REJECT;
	f->pops = pops;
	f->returns = true;
	f->loses |= !code_state_restored(s, f->arch);
	f->loses_fp |= !code_state_is_entry(s, f->arch);
	return code_state_may_return(s, f->arch) ? 0 : CODE_FN_REJECT;
}

/* The ways out of an instruction that was applied. *on: whether the next one is reached. */
static int leave_op(struct code_fn *f, const struct code_op *op, struct code_state *s,
		    uint64_t addr, bool *on)
{
	struct code_state taken;
	int err;

	f->at = addr;
	*on = false;
	switch (op->kind) {
	case OP_RET:
		return returns(f, s, op->pops);
	case OP_END:
		return 0;
	case OP_BAD:
		return f->outermost ? 0 : CODE_FN_REJECT;
	case OP_JUMP:
		return op->target ? code_jump_to(f, op->target, s)
				  : code_jump_indirect(f, op, s, addr);
	case OP_JUMP_REG:
		if (code_state_unpop_ra(s, f->arch, op->src))
			return returns(f, s, 0);
		return code_jump_indirect(f, op, s, addr);
	case OP_JUMP_TABLE:
		return code_jump_indirect(f, op, s, addr);
	case OP_CALL:
		*on = !code_fn_ends_there(f, op, addr);
		return 0;
	case OP_BRANCH:
		*on = true;
		if (!code_state_branch_tells(s, op))
			return code_jump_to(f, op->target, s);
		code_state_copy(&taken, s);
		code_state_branch(&taken, f->arch, op, true);
		err = code_jump_to(f, op->target, &taken);
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
	const uint8_t *m = code_mark_of(f, addr);

	return (m && *m & MARK_CALLED) || code_calls(f, addr);
}

/* first: the height of the stack at the beginning of this code; NULL: unknown */
static void note_pushed(struct code_fn *f, const struct code_op *op, const struct code_state *s,
			uint64_t at, const int64_t *first)
{
	int64_t height;

	if (!first || !code_height_of(f, s, &height)) {
		f->pushed = (struct code_pushed){ 0 };
		return;
	}
	if (height + f->pushed.bytes != *first)
		f->pushed = (struct code_pushed){ 0 };
	if (op->kind == OP_CALL && height < *first)
		f->pushed = (struct code_pushed){ at, *first - height };
}

static uint32_t written(const struct code_fn *f, const struct code_op *op)
{
	const uint32_t clobbers = op->kind == OP_CALL ? f->arch->call_clobbers & ~op->spared : 0;

	return code_op_writes(op) | clobbers;
}

/* Other code follows a call of the function. */
static int note_final(struct code_fn *f, uint64_t callee)
{
	if (!callee || u64_has(f->finals, f->nfinals, callee))
		return 0;
	return u64_push(&f->finals, &f->nfinals, &f->finals_cap, callee);
}

/*
 * The code goes on at addr, outside of the function. call: the call before, or 0; callee: that of a
 * call right before; last: the last call. GCC may leave a store after one that does not return.
 */
static int run_out(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call,
		   uint64_t callee, uint64_t last)
{
	if (!call && !f->outermost) {
		if (code_state_is_entry(s, f->arch) ||
		    (falls_into_function(f, addr) && code_state_may_return(s, f->arch)))
			return code_jump_to(f, addr, s); /* goes on into the next function */
		if (!last)
			return CODE_FN_REJECT;
		f->guessed = true;
		return code_no_return(f, last);
	}
	if (call && (f->sized || falls_into_function(f, addr)))
		return note_final(f, callee);
	f->leaps = f->strays = true;
	return 0;
}

/* Whether compilers start a function there, after padding. */
static bool may_start(uint64_t addr, const struct code_op *op)
{
	return op->kind == OP_NOP || addr % FN_ALIGN == 0;
}

/* Follows the code from the leader to where it ends or meets another leader. */
static int follow(struct code_fn *f, uint64_t addr, const struct code_state *from_state)
{
	const uint8_t met = f->in_pad ? MARK_LEADER | MARK_START : MARK_LEADER;
	const uint64_t from = addr;
	uint64_t call = 0, last = 0; /* the call right before; the last one */
	uint64_t callee = 0, target; /* the callee of `call`; the instruction's target */
	int64_t first = 0;
	bool on = true, known = code_height_of(f, from_state, &first);
	const struct code_op *op; /* points into the cache, so not valid after leave_op() */
	struct code_op refined;
	struct code_state s;
	uint8_t kind;
	int err = 0;

	code_state_copy(&s, from_state);
	first += f->pushed.bytes;
	while (on && !err) {
		uint64_t at = addr;

		if (!code_fn_inside(f, addr))
			return run_out(f, addr, &s, call, callee, last);
		if (call && falls_into_function(f, addr))
			return note_final(f, callee);
		if (addr != from && *code_mark_of(f, addr) & met)
			return code_edge(f, addr, &s, call);
		if (!f->left || !f->budget)
			return CODE_FN_REJECT;
		f->left--;
		f->budget--;
		op = code_op_at(f, addr);
		if (callee && may_start(addr, op) &&
		    u64_push(&f->last, &f->nlast, &f->last_cap, callee))
			return -ENOMEM;
		if (op->kind == OP_BAD || !mark(f, addr, op->len))
			return f->outermost ? 0 : code_no_return(f, call);
		addr += op->len;
		f->runs[f->nruns - 1].end = addr;
		op = code_fn_refine(f, op, &s, addr, &refined);
		kind = op->kind;
		target = op->target;
		f->saves |= kind == OP_CALL && code_state_saves(&s, f->arch);
		if (!code_state_apply(&s, f->arch, op, at) && !f->outermost)
			return CODE_FN_REJECT;
		f->writes |= written(f, op);
		note_pushed(f, op, &s, at, known ? &first : NULL);
		err = note(f, op);
		if (!err)
			err = leave_op(f, op, &s, at, &on);
		if (err == CODE_FN_REJECT && (kind == OP_RET ? last : kind == OP_JUMP && call)) {
			/* Another function's code, or none, follows a call that does not return. */
			f->guessed = true;
			return code_no_return(f, kind == OP_RET ? last : call);
		}
		if (kind == OP_CALL)
			last = at;
		callee = kind == OP_CALL ? target : 0;
		if (kind != OP_NOP)
			call = kind == OP_CALL ? at : 0;
	}
	return err;
}

/* Follows the code of the last leader that is queued. */
static int explore_leader(struct code_fn *f)
{
	struct code_leader *l = &f->leaders[f->work[--f->nwork]];
	int err = vec_reserve(&f->runs, &f->runs_cap, f->nruns + 1, sizeof(*f->runs));

	l->queued = false;
	if (err)
		return err;
	f->runs[f->nruns++] = (struct code_range){ l->addr, l->addr };
	f->pushed = l->pushed;
	return follow(f, l->addr, &l->state);
}

int code_fn_explore(struct code_fn *f)
{
	int err = 0;

	while ((f->nwork || f->npending) && !err) {
		if (f->nwork) {
			err = explore_leader(f);
			continue;
		}
		f->entry = 0;
		f->pushed = (struct code_pushed){ 0 };
		err = code_jump_go_on(f);
	}
	if (err != CODE_FN_REJECT || !f->entry)
		return err;
	if (!f->cut_early && f->entry_index <= CODE_FN_UNUSED)
		f->cut_early = f->entry_index;
	err = code_note_table(f, f->entry);
	return err ? err : CODE_FN_AGAIN;
}

void code_fn_drop_runs(struct code_fn *f, size_t n)
{
	while (f->nruns > n)
		code_unmark(f, f->runs[--f->nruns], MARK_START | MARK_BODY | MARK_LEADER);
}

static void clear(struct code_fn *f)
{
	code_fn_drop_runs(f, 0);
	code_drop_leaders(f, 0);
	code_empty_slots(&f->call_slots);
	f->in_pad = false;
	f->nwork = f->ncalls = f->naddressed = f->ntails = 0;
	f->njoined = f->nlast = 0;
	f->njumps = f->npending = 0;
	for (size_t i = 0; i < f->ntables; i++)
		f->tables[i].end = f->tables[i].addr;
	f->has_open = f->has_masked = false;
	f->entry = 0;
	f->pushed = (struct code_pushed){ 0 };
	f->rows.n = 0;
	f->returns = f->leaps = f->loses = f->loses_fp = f->tail_loses = f->saves = false;
	f->strays = f->hands_over = f->goes_away = false;
	f->own_late = false;
	f->writes = 0;
	f->pops = 0;
	f->own_jumps = 0;
}

/* Explores the function, again for each thing that is learnt of it. 0, CODE_FN_REJECT, -ENOMEM. */
static int explore_fn(struct code_fn *f, struct code_range fn)
{
	struct code_state s;
	int err = CODE_FN_AGAIN;

	f->nnoreturn = f->ntables = f->nown = f->ndead = 0;
	f->guessed = false;
	f->cut_early = 0;
	f->left = (fn.end - fn.start) * CODE_FN_VISITS + VISITS_MORE;
	code_state_entry(&s, f->arch);
	for (int i = 0; i < TRIES && err == CODE_FN_AGAIN; i++) {
		clear(f);
		f->parts[0] = fn;
		f->nparts = 1;
		err = code_new_leader(f, fn.start, &s, 0);
		if (!err)
			err = code_fn_explore(f);
		if (!err && f->own_late)
			err = CODE_FN_AGAIN;
		if (!err && f->sized && f->has_pads)
			err = code_pads(f);
		if (err == CODE_FN_REJECT && f->in_pad) {
			f->sized = false; /* then tries without landing pads */
			err = CODE_FN_AGAIN;
		}
	}
	return err == CODE_FN_AGAIN ? CODE_FN_REJECT : err;
}

/*
 * Explores the function. No index may reach the first entries of a table whose length is not told.
 * Then they, or the first right one after them, lead to a contradiction: where more code makes
 * sense, it is right.
 */
static int explore_tables(struct code_fn *f, struct code_range fn)
{
	const bool sized = f->sized;
	unsigned int other;
	size_t most;
	int err;

	f->unused = 0;
	f->doubt_masks = false;
	err = explore_fn(f, fn);
	if (err == CODE_FN_REJECT && f->has_masked) {
		f->doubt_masks = true;
		f->sized = sized;
		err = explore_fn(f, fn);
	}
	while (err == CODE_FN_REJECT && f->has_open && f->unused < CODE_FN_UNUSED) {
		f->unused++;
		f->sized = sized;
		err = explore_fn(f, fn);
	}
	other = f->cut_early;
	if (err || f->unused || !other)
		return err;
	most = f->nleaders;
	f->sized = sized;
	f->unused = other;
	err = explore_fn(f, fn);
	if (err < 0 || (!err && f->nleaders > most))
		return err;
	f->sized = sized;
	f->unused = 0;
	return explore_fn(f, fn);
}

int code_fn_analyse(struct code_fn *f, struct code_range fn)
{
	int err;

	if (!f->cache)
		f->cache = calloc(CODE_CACHE, sizeof(*f->cache));
	if (!f->cache)
		return -ENOMEM;
	err = explore_tables(f, fn);
	if (!err)
		err = code_fn_make_rows(f);
	if (err < 0)
		return err;
	if (err)
		return CODE_REJECTED;
	if (f->returns ? !f->loses : !f->leaps && f->saves)
		return CODE_PROVEN;
	if (!f->returns && !f->ntails && !f->strays && !f->guessed &&
	    (f->hands_over ? f->saves && !f->loses : f->goes_away))
		return CODE_PROVEN;
	return f->ntails && !f->tail_loses && !f->loses && !f->guessed ? CODE_TAILS : CODE_SOUND;
}
