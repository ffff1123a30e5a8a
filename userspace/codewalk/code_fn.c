/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/u64s.h"
#include "base/vec.h"
#include "codewalk/code_fn.h"
#include "codewalk/code_jump.h"

#define TRIES	    48 /* analyses of one function, each with one more call known not to return */
#define VISITS_MORE 4096
#define FN_ALIGN    16

/* ---- Instructions ---- */

/* Marks the instruction's bytes. False: it overlaps another one. */
static bool mark(struct code_fn *f, uint64_t addr, unsigned int len)
{
	const struct code_text *t = code_text_of(f->bin, addr);
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
	return hash_u64(((const struct code_fn *)ctx)->room.calls[i]);
}

/* The slot of a function that is called, or a free one */
static uint32_t *call_slot(const struct code_fn *f, uint64_t target)
{
	size_t at;

	slots_each(&f->room.call_slots, hash_u64(target), at)
		if (f->room.calls[f->room.call_slots.ids[at] - 1] == target)
			break;
	return &f->room.call_slots.ids[at];
}

bool code_calls(const struct code_fn *f, uint64_t target)
{
	return f->result.ncalls && *call_slot(f, target);
}

static int note_call(struct code_fn *f, uint64_t target)
{
	int err = slots_reserve(&f->room.call_slots, f->result.ncalls, hash_of_call, f);
	uint32_t *slot = err ? NULL : call_slot(f, target);

	if (err || *slot)
		return err;
	err = u64_push(&f->room.calls, &f->result.ncalls, &f->room.calls_cap, target);
	if (!err)
		*slot = (uint32_t)f->result.ncalls;
	return err;
}

static int note(struct code_fn *f, const struct code_op *op)
{
	const uint64_t address = code_address_of(f->bin, op);

	if (op->kind == OP_CALL && op->target)
		return note_call(f, op->target);
	if (!code_text_of(f->bin, address))
		return 0;
	/* AArch64's tables hold distances from a label, which two instructions load. */
	if (!op->imm2 && code_jump_note_own(f, op->dst, address))
		return -ENOMEM;
	return u64_push(&f->room.addressed, &f->result.naddressed, &f->room.addressed_cap, address);
}

static int returns(struct code_fn *f, const struct code_state *s, int32_t pops)
{
	if (code_fn_left_frame(f, s, f->arch->ra != CODE_NO_REG)) {
		f->result.leaps = true;
		return 0;
	}
	if (f->result.returns && f->result.pops != pops)
		return CODE_FN_REJECT;
	f->result.pops = pops;
	f->result.returns = true;
	f->result.loses |= !code_state_restored(s, f->arch);
	f->result.loses_fp |= !code_state_is_entry(s, f->arch);
	return code_state_may_return(s, f->arch) ? 0 : CODE_FN_REJECT;
}

/* The ways out of an instruction that was applied. *on: whether the next one is reached. */
static int leave_op(struct code_fn *f, const struct code_op *op, struct code_state *s,
		    uint64_t addr, bool *on)
{
	struct code_state taken;
	int err;

	f->try.at = addr;
	*on = false;
	switch (op->kind) {
	case OP_RET:
		return returns(f, s, op->pops);
	case OP_END:
		return 0;
	case OP_BAD:
		return f->run.fn.outermost ? 0 : CODE_FN_REJECT;
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
	const uint8_t *m = code_mark_of(f->bin, addr);

	return (m && *m & MARK_CALLED) || code_calls(f, addr);
}

/* first: the height of the stack at the beginning of this code; NULL: unknown */
static void note_pushed(struct code_fn *f, const struct code_op *op, const struct code_state *s,
			uint64_t at, const int64_t *first)
{
	int64_t height;

	if (!first || !code_height_of(f, s, &height)) {
		f->try.pushed = (struct code_pushed){ 0 };
		return;
	}
	if (height + f->try.pushed.bytes != *first)
		f->try.pushed = (struct code_pushed){ 0 };
	if (op->kind == OP_CALL && height < *first)
		f->try.pushed = (struct code_pushed){ at, *first - height };
}

static uint32_t written(const struct code_fn *f, const struct code_op *op)
{
	const uint32_t clobbers = op->kind == OP_CALL ? f->arch->call_clobbers & ~op->spared : 0;

	return code_op_writes(op) | clobbers;
}

/* Other code follows a call of the function. */
static int note_final(struct code_fn *f, uint64_t callee)
{
	if (!callee || u64_has(f->learnt.finals, f->learnt.nfinals, callee))
		return 0;
	return u64_push(&f->learnt.finals, &f->learnt.nfinals, &f->learnt.finals_cap, callee);
}

/*
 * The code goes on at addr, outside of the function. call: the call before, or 0; callee: that of a
 * call right before; last: the last call. GCC may leave a store after one that does not return.
 */
static int run_out(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call,
		   uint64_t callee, uint64_t last)
{
	if (!call && !f->run.fn.outermost) {
		if (code_state_is_entry(s, f->arch) ||
		    (falls_into_function(f, addr) && code_state_may_return(s, f->arch)))
			return code_jump_to(f, addr, s); /* goes on into the next function */
		if (!last)
			return CODE_FN_REJECT;
		f->run.guessed = true;
		return code_no_return(f, last);
	}
	if (call && (f->run.fn.sized || falls_into_function(f, addr)))
		return note_final(f, callee);
	f->result.leaps = f->result.strays = true;
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
	const uint8_t met = f->try.in_pad ? MARK_LEADER | MARK_START : MARK_LEADER;
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
	first += f->try.pushed.bytes;
	while (on && !err) {
		uint64_t at = addr;

		if (!code_fn_inside(f, addr))
			return run_out(f, addr, &s, call, callee, last);
		if (call && falls_into_function(f, addr))
			return note_final(f, callee);
		if (addr != from && *code_mark_of(f->bin, addr) & met)
			return code_edge(f, addr, &s, call);
		if (!f->run.left || !f->bin->budget)
			return CODE_FN_REJECT;
		f->run.left--;
		f->bin->budget--;
		op = code_op_at(f, addr);
		if (callee && may_start(addr, op) &&
		    u64_push(&f->room.last, &f->result.nlast, &f->room.last_cap, callee))
			return -ENOMEM;
		if (op->kind == OP_BAD || !mark(f, addr, op->len))
			return f->run.fn.outermost ? 0 : code_no_return(f, call);
		addr += op->len;
		f->room.followed[f->try.nfollowed - 1].end = addr;
		op = code_fn_refine(f, op, &s, addr, &refined);
		kind = op->kind;
		target = op->target;
		f->result.saves |= kind == OP_CALL && code_state_saves(&s, f->arch);
		if (!code_state_apply(&s, f->arch, op, at) && !f->run.fn.outermost)
			return CODE_FN_REJECT;
		f->result.writes |= written(f, op);
		note_pushed(f, op, &s, at, known ? &first : NULL);
		err = note(f, op);
		if (!err)
			err = leave_op(f, op, &s, at, &on);
		if (err == CODE_FN_REJECT && (kind == OP_RET ? last : kind == OP_JUMP && call)) {
			/* Another function's code, or none, follows a call that does not return. */
			f->run.guessed = true;
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
	struct code_leader *l = &f->room.leaders[f->room.work[--f->try.nwork]];
	int err = vec_reserve(&f->room.followed, &f->room.followed_cap, f->try.nfollowed + 1,
			      sizeof(*f->room.followed));

	l->queued = false;
	if (err)
		return err;
	f->room.followed[f->try.nfollowed++] = (struct code_range){ l->addr, l->addr };
	f->try.pushed = l->pushed;
	return follow(f, l->addr, &l->state);
}

int code_fn_explore(struct code_fn *f)
{
	int err = 0;

	while ((f->try.nwork || f->try.npending) && !err) {
		if (f->try.nwork) {
			err = explore_leader(f);
			continue;
		}
		f->try.entry = 0;
		f->try.pushed = (struct code_pushed){ 0 };
		err = code_jump_go_on(f);
	}
	if (err != CODE_FN_REJECT || !f->try.entry)
		return err;
	if (!f->run.cut_early && f->try.entry_index <= CODE_FN_UNUSED)
		f->run.cut_early = f->try.entry_index;
	err = code_note_table(f, f->try.entry);
	return err ? err : CODE_FN_AGAIN;
}

void code_fn_drop_followed(struct code_fn *f, size_t n)
{
	while (f->try.nfollowed > n)
		code_unmark(f->bin, f->room.followed[--f->try.nfollowed],
			    MARK_START | MARK_BODY | MARK_LEADER);
}

static void begin_try(struct code_fn *f)
{
	code_fn_drop_followed(f, 0);
	code_drop_leaders(f, 0);
	code_empty_slots(&f->room.call_slots);
	f->try = (struct code_try){ .parts[0].range = f->run.fn.range, .nparts = 1 };
	f->result = (struct code_result){ 0 };
}

/*
 * Explores the function under the assumptions, again for each thing that is learnt of it. 0,
 * CODE_FN_REJECT, -ENOMEM.
 */
static int explore_fn(struct code_fn *f, const struct code_run *assumed)
{
	const struct code_range range = assumed->fn.range;
	struct code_state s;
	int err = CODE_FN_AGAIN;

	f->run = *assumed;
	f->run.left = (range.end - range.start) * CODE_FN_VISITS + VISITS_MORE;
	code_state_entry(&s, f->arch);
	for (int i = 0; i < TRIES && err == CODE_FN_AGAIN; i++) {
		begin_try(f);
		err = code_new_leader(f, range.start, &s, 0);
		if (!err)
			err = code_fn_explore(f);
		if (!err && f->try.own_late)
			err = CODE_FN_AGAIN;
		if (!err && f->run.fn.sized && f->bin->has_pads)
			err = code_pads(f);
		if (err == CODE_FN_REJECT && f->try.in_pad) {
			f->run.fn.sized = false; /* then tries without landing pads */
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
static int explore_tables(struct code_fn *f, const struct code_subject *fn)
{
	struct code_run run = { .fn = *fn };
	int err = explore_fn(f, &run);
	size_t most;

	if (err == CODE_FN_REJECT && f->try.has_masked) {
		run.doubt_masks = true;
		err = explore_fn(f, &run);
	}
	while (err == CODE_FN_REJECT && f->try.has_open && run.unused < CODE_FN_UNUSED) {
		run.unused++;
		err = explore_fn(f, &run);
	}
	if (err || run.unused || !f->run.cut_early)
		return err;
	most = f->try.nleaders;
	run.unused = f->run.cut_early;
	err = explore_fn(f, &run);
	if (err < 0 || (!err && f->try.nleaders > most))
		return err;
	run.unused = 0;
	return explore_fn(f, &run);
}

static int verdict_of(const struct code_result *r)
{
	if (r->returns ? !r->loses : !r->leaps && r->saves)
		return CODE_PROVEN;
	if (!r->returns && !r->ntails && !r->strays && !r->guessed &&
	    (r->hands_over ? r->saves && !r->loses : r->goes_away))
		return CODE_PROVEN;
	return r->ntails && !r->tail_loses && !r->loses && !r->guessed ? CODE_TAILS : CODE_SOUND;
}

static struct code_result hand_out(const struct code_fn *f)
{
	struct code_result r = f->result;

	r.calls = f->room.calls;
	r.addressed = f->room.addressed;
	r.tails = f->room.tails;
	r.joined = f->room.joined;
	r.last = f->room.last;
	r.rows = f->room.rows.rows;
	r.nrows = f->room.rows.n;
	r.guessed = f->run.guessed;
	if (f->run.nnoreturn || r.leaps)
		r.writes = UINT32_MAX;
	return r;
}

int code_fn_analyse(struct code_fn *f, const struct code_subject *fn, struct code_result *ret)
{
	int err;

	*ret = (struct code_result){ 0 };
	if (!f->room.cache)
		f->room.cache = calloc(CODE_CACHE, sizeof(*f->room.cache));
	if (!f->room.cache)
		return -ENOMEM;
	err = explore_tables(f, fn);
	if (!err)
		err = code_fn_make_rows(f);
	if (err)
		return err < 0 ? err : CODE_REJECTED;
	*ret = hand_out(f);
	return verdict_of(ret);
}

size_t code_fn_finals(const struct code_fn *f)
{
	return f->learnt.nfinals;
}

void code_fn_keep_finals(struct code_fn *f, size_t n)
{
	f->learnt.nfinals = n;
}

bool code_fn_calls_final(const struct code_fn *f)
{
	for (size_t i = 0; i < f->learnt.nfinals; i++)
		if (code_calls(f, f->learnt.finals[i]))
			return true;
	return false;
}

struct code_fn *code_fn_new(struct code_binary *bin)
{
	struct code_fn *f = calloc(1, sizeof(*f));

	if (f)
		*f = (struct code_fn){ .bin = bin, .arch = bin->arch };
	return f;
}

void code_fn_free(struct code_fn *f)
{
	struct code_room *room = f ? &f->room : NULL;

	if (!f)
		return;
	free(f->learnt.finals);
	free(f->learnt.refs);
	free(room->cache);
	free(room->dead);
	free(room->noreturn);
	free(room->tables);
	free(room->own);
	free(room->leaders);
	slots_free(&room->slots);
	free(room->work);
	free(room->followed);
	free(room->read);
	free(room->jumps);
	free(room->pending);
	free(room->calls);
	free(room->addressed);
	free(room->tails);
	free(room->joined);
	free(room->last);
	slots_free(&room->call_slots);
	rowbuf_free(&room->rows);
	free(f);
}
