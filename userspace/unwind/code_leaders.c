/* SPDX-License-Identifier: BSD-2-Clause */
/* Where ways through a function meet: what is known there, and what contradictions mean. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/u64s.h"
#include "base/vec.h"
#include "unwind/code_fn_internal.h"

#define LEADERS_MAX 65536

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

/* The leader from which the code before addr was followed; NULL: there is none. */
static struct code_leader *leader_before(const struct code_fn *f, uint64_t addr)
{
	const struct code_text *t = code_text_of(f, addr);

	while (addr > t->start && (t->marks[addr - t->start - 1] & (MARK_START | MARK_BODY))) {
		addr--;
		if (t->marks[addr - t->start] & MARK_LEADER)
			return leader_at(f, addr);
	}
	return NULL;
}

/* Code was followed across addr before it was a leader: follows it again up to there. */
static int split(struct code_fn *f, uint64_t addr)
{
	struct code_leader *l = leader_before(f, addr);

	return l ? enqueue(f, l) : 0;
}

int code_new_leader(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call)
{
	uint8_t *mark = code_mark_of(f, addr);
	bool passed = *mark & MARK_START;
	struct code_leader *l;
	size_t at;
	int err;

	if (*mark & MARK_BODY || f->nleaders >= LEADERS_MAX)
		return CODE_FN_REJECT;
	err = slots_reserve(&f->slots, f->nleaders, hash_of_leader, f);
	if (!err)
		err = vec_reserve(&f->leaders, &f->leaders_cap, f->nleaders + 1,
				  sizeof(*f->leaders));
	if (err)
		return err;
	slots_each(&f->slots, hash_u64(addr), at)
		;
	l = &f->leaders[f->nleaders];
	l->addr = addr;
	l->from_call = call;
	l->queued = false;
	l->passed = passed;
	l->is_pad = f->in_pad;
	l->pushed = f->pushed;
	code_state_copy(&l->state, s);
	l->state.cmp_reg = CODE_NO_REG;
	f->slots.ids[at] = (uint32_t)++f->nleaders;
	*mark |= MARK_LEADER;
	err = enqueue(f, l);
	return err || !passed ? err : split(f, addr);
}

void code_drop_leaders(struct code_fn *f, size_t n)
{
	size_t at;

	if (f->nleaders == n)
		return;
	while (f->nleaders > n)
		*code_mark_of(f, f->leaders[--f->nleaders].addr) &=
			(uint8_t) ~(MARK_START | MARK_BODY | MARK_LEADER);
	if (!n) {
		code_empty_slots(&f->slots);
		return;
	}
	slots_reset(&f->slots);
	for (size_t i = 0; i < n; i++) {
		slots_each(&f->slots, hash_u64(f->leaders[i].addr), at)
			;
		f->slots.ids[at] = (uint32_t)i + 1;
	}
}

int code_no_return(struct code_fn *f, uint64_t call)
{
	int err;

	if (!call || u64_has(f->noreturn, f->nnoreturn, call))
		return CODE_FN_REJECT;
	err = u64_push(&f->noreturn, &f->nnoreturn, &f->noreturn_cap, call);
	return err ? err : CODE_FN_AGAIN;
}

/*
 * Whether there is a row although two ways lead here with different heights of the stack: by a
 * frame pointer, a word in memory, or the bound of a loop that touches pages. A register that only
 * happens to point into the frame does not explain the heights, if what was pushed for a call does.
 */
static bool height_may_differ(const struct code_fn *f, const struct code_state *s, bool pushed)
{
	const int64_t frame = 2 * f->arch->ra_bytes;
	struct row row;

	if (!code_state_row(s, f->arch, false, &row) || row.fp.kind == RULE_NONE)
		return false;
	if (!frame || row.cfa.kind != RULE_REG)
		return true;
	return row.cfa.reg == f->arch->fp ? row.cfa.off == frame : !pushed;
}

bool code_height_of(const struct code_fn *f, const struct code_state *s, int64_t *ret)
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

	if (!code_height_of(f, s, &here) || !code_height_of(f, &l->state, &there))
		return 0;
	if (f->pushed.call && here + f->pushed.bytes == there)
		return f->pushed.call;
	return l->pushed.call && there + l->pushed.bytes == here ? l->pushed.call : 0;
}

/* Whether the code there, between two leaders, was followed with another height of the stack. */
static bool height_differs(struct code_fn *f, uint64_t addr, const struct code_state *s)
{
	const struct code_leader *l = leader_before(f, addr);
	struct code_walk w;

	if (!l)
		return false;
	code_walk_begin(&w, l);
	while (code_walk_next(f, &w)) {
		if (w.at == addr)
			return code_state_conflict(&w.state, s, f->arch);
		if (!f->left || !f->budget)
			break;
		f->left--;
		f->budget--;
		code_walk_apply(f, &w);
	}
	return false;
}

int code_edge(struct code_fn *f, uint64_t addr, const struct code_state *s, uint64_t call)
{
	struct code_leader *l = leader_at(f, addr);
	uint64_t pushed;
	enum code_merge how;

	/* A landing pad does not change what is known of the other code. */
	if (f->in_pad && (l ? !l->is_pad : *code_mark_of(f, addr) & MARK_START))
		return (l ? code_state_conflict(&l->state, s, f->arch) : height_differs(f, addr, s))
			       ? CODE_FN_REJECT
			       : 0;
	if (!l)
		return code_new_leader(f, addr, s, call);
	if (call && !l->passed && !l->from_call && !f->outermost &&
	    code_state_conflict(&l->state, s, f->arch))
		/* The call does not return, and nothing was concluded from it. */
		return u64_push(&f->noreturn, &f->nnoreturn, &f->noreturn_cap, call);
	pushed = pushed_for(f, l, s);
	how = code_state_merge(&l->state, s, f->arch);
	if (how == MERGE_CONFLICT && !f->outermost && (call || l->from_call))
		return code_no_return(f, call ? call : l->from_call);
	if (how == MERGE_CONFLICT && !f->outermost && !height_may_differ(f, &l->state, pushed))
		return code_no_return(f, pushed);
	l->from_call = 0;
	if (!f->pushed.call)
		l->pushed = (struct code_pushed){ 0 };
	return how == MERGE_SAME ? 0 : enqueue(f, l);
}

/* The code there is that of a function, too. */
static int join(struct code_fn *f, uint64_t start)
{
	struct code_state entry;
	int err = u64_push(&f->joined, &f->njoined, &f->joined_cap, start);

	code_state_entry(&entry, f->arch);
	return err ? err : code_edge(f, start, &entry, 0);
}

static bool in_part(const struct code_fn *f, size_t k, uint64_t addr)
{
	return addr >= f->parts[k].start && addr < f->parts[k].end;
}

/*
 * Whether a part that the code in progress jumped to, with a frame, leads on to a third place. Then
 * it is another function's: GCC 15 lets what does not occur jump to where the function's cold part
 * would be, and if that is empty, the next one is there.
 */
static bool is_foreign(const struct code_fn *f, uint64_t target, size_t *ret_part)
{
	for (size_t k = 1; k < f->nparts; k++)
		if (in_part(f, k, f->at)) {
			*ret_part = k;
			return f->part_entry[k] && !in_part(f, 0, f->at) &&
			       !in_part(f, 0, target) && !in_part(f, k, target);
		}
	return false;
}

int code_jump_to(struct code_fn *f, uint64_t target, const struct code_state *s)
{
	struct code_range part;
	bool called;
	size_t k;
	int err;

	if (u64_has(f->dead, f->ndead, target))
		return 0;
	if (!code_state_is_entry(s, f->arch) && is_foreign(f, target, &k)) {
		err = u64_push(&f->dead, &f->ndead, &f->dead_cap, f->part_entry[k]);
		return err ? err : CODE_FN_AGAIN;
	}
	if (code_fn_inside(f, target))
		return code_edge(f, target, s, 0);
	if (f->outermost || code_state_is_entry(s, f->arch)) {
		f->leaps = true;
		f->tail_loses |= !code_state_restored(s, f->arch);
		return f->outermost ? 0 : u64_push(&f->tails, &f->ntails, &f->tails_cap, target);
	}
	/* A part of this function that the compiler placed elsewhere. */
	if (f->nparts == CODE_PARTS || !code_text_of(f, target) ||
	    !f->part_of(f->ctx, target, &part, &f->sized_part[f->nparts]) || target < part.start ||
	    target >= part.end)
		return CODE_FN_REJECT;
	called = *code_mark_of(f, target) & MARK_CALLED;
	f->part_entry[f->nparts] = called ? 0 : target;
	f->parts[f->nparts++] = part;
	f->left += (part.end - part.start) * CODE_FN_VISITS;
	err = called ? join(f, target) : 0;
	return err ? err : code_edge(f, target, s, 0);
}
