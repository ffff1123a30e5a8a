/* SPDX-License-Identifier: BSD-2-Clause */
/* Where ways through a function meet: what is known there, and what contradictions mean. */
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/u64s.h"
#include "base/vec.h"
#include "codewalk/code_fn.h"

#define LEADERS_MAX 65536

static uint64_t hash_of_leader(const void *ctx, size_t i)
{
	return hash_u64(((const struct code_fn *)ctx)->room.leaders[i].addr);
}

static struct code_leader *leader_at(const struct code_fn *f, uint64_t addr)
{
	size_t at;

	if (!f->room.slots.n)
		return NULL;
	slots_each(&f->room.slots, hash_u64(addr), at)
		if (f->room.leaders[f->room.slots.ids[at] - 1].addr == addr)
			return &f->room.leaders[f->room.slots.ids[at] - 1];
	return NULL;
}

static int enqueue(struct code_fn *f, struct code_leader *l)
{
	int err = l->queued ? 0
			    : vec_reserve(&f->room.work, &f->room.work_cap, f->try.nwork + 1,
					  sizeof(*f->room.work));

	if (err || l->queued)
		return err;
	l->queued = true;
	f->room.work[f->try.nwork++] = (uint32_t)(l - f->room.leaders);
	return 0;
}

/* The leader from which the code before addr was followed; NULL: there is none. */
static struct code_leader *leader_before(const struct code_fn *f, uint64_t addr)
{
	const struct code_text *t = code_text_of(f->bin, addr);

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
	uint8_t *mark = code_mark_of(f->bin, addr);
	bool passed = *mark & MARK_START;
	struct code_leader *l;
	size_t at;
	int err;

	if (*mark & MARK_BODY || f->try.nleaders >= LEADERS_MAX)
		return CODE_FN_REJECT;
	err = slots_reserve(&f->room.slots, f->try.nleaders, hash_of_leader, f);
	if (!err)
		err = vec_reserve(&f->room.leaders, &f->room.leaders_cap, f->try.nleaders + 1,
				  sizeof(*f->room.leaders));
	if (err)
		return err;
	slots_each(&f->room.slots, hash_u64(addr), at)
		;
	l = &f->room.leaders[f->try.nleaders];
	l->addr = addr;
	l->from_call = call;
	l->queued = false;
	l->passed = passed;
	l->is_pad = f->try.in_pad;
	l->pushed = f->try.pushed;
	code_state_copy(&l->state, s);
	l->state.cmp_reg = CODE_NO_REG;
	f->room.slots.ids[at] = (uint32_t)++f->try.nleaders;
	*mark |= MARK_LEADER;
	err = enqueue(f, l);
	return err || !passed ? err : split(f, addr);
}

void code_drop_leaders(struct code_fn *f, size_t n)
{
	size_t at;

	if (f->try.nleaders == n)
		return;
	while (f->try.nleaders > n)
		*code_mark_of(f->bin, f->room.leaders[--f->try.nleaders].addr) &=
			(uint8_t) ~(MARK_START | MARK_BODY | MARK_LEADER);
	if (!n) {
		code_empty_slots(&f->room.slots);
		return;
	}
	slots_reset(&f->room.slots);
	for (size_t i = 0; i < n; i++) {
		slots_each(&f->room.slots, hash_u64(f->room.leaders[i].addr), at)
			;
		f->room.slots.ids[at] = (uint32_t)i + 1;
	}
}

int code_no_return(struct code_fn *f, uint64_t call)
{
	int err;

	if (!call || u64_has(f->room.noreturn, f->run.nnoreturn, call))
		return CODE_FN_REJECT;
	err = u64_push(&f->room.noreturn, &f->run.nnoreturn, &f->room.noreturn_cap, call);
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
	if (f->try.pushed.call && here + f->try.pushed.bytes == there)
		return f->try.pushed.call;
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
		if (!f->run.left || !f->bin->budget)
			break;
		f->run.left--;
		f->bin->budget--;
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
	if (f->try.in_pad && (l ? !l->is_pad : *code_mark_of(f->bin, addr) & MARK_START))
		return (l ? code_state_conflict(&l->state, s, f->arch) : height_differs(f, addr, s))
			       ? CODE_FN_REJECT
			       : 0;
	if (!l)
		return code_new_leader(f, addr, s, call);
	if (call && !l->passed && !l->from_call && !f->run.fn.outermost &&
	    code_state_conflict(&l->state, s, f->arch))
		/* The call does not return, and nothing was concluded from it. */
		return u64_push(&f->room.noreturn, &f->run.nnoreturn, &f->room.noreturn_cap, call);
	pushed = pushed_for(f, l, s);
	how = code_state_merge(&l->state, s, f->arch);
	if (how == MERGE_CONFLICT && !f->run.fn.outermost && (call || l->from_call))
		return code_no_return(f, call ? call : l->from_call);
	if (how == MERGE_CONFLICT && !f->run.fn.outermost &&
	    !height_may_differ(f, &l->state, pushed))
		return code_no_return(f, pushed);
	l->from_call = 0;
	if (!f->try.pushed.call)
		l->pushed = (struct code_pushed){ 0 };
	return how == MERGE_SAME ? 0 : enqueue(f, l);
}

/* The code there is that of a function, too. */
static int join(struct code_fn *f, uint64_t start)
{
	struct code_state entry;
	int err = u64_push(&f->room.joined, &f->result.njoined, &f->room.joined_cap, start);

	code_state_entry(&entry, f->arch);
	return err ? err : code_edge(f, start, &entry, 0);
}

/*
 * Whether a part that the code in progress jumped to, with a frame, leads on to a third place. Then
 * it is another function's: GCC 15 lets what does not occur jump to where the function's cold part
 * would be, and if that is empty, the next one is there.
 */
static bool is_foreign(const struct code_fn *f, uint64_t target, size_t *ret_part)
{
	for (size_t k = 1; k < f->try.nparts; k++)
		if (code_in_part(f, k, f->try.at)) {
			*ret_part = k;
			return f->try.parts[k].entry && !code_in_part(f, 0, f->try.at) &&
			       !code_in_part(f, 0, target) && !code_in_part(f, k, target);
		}
	return false;
}

int code_jump_to(struct code_fn *f, uint64_t target, const struct code_state *s)
{
	struct code_fn_part *part;
	bool called;
	size_t k;
	int err;

	if (u64_has(f->room.dead, f->run.ndead, target))
		return 0;
	if (!code_state_is_entry(s, f->arch) && is_foreign(f, target, &k)) {
		err = u64_push(&f->room.dead, &f->run.ndead, &f->room.dead_cap,
			       f->try.parts[k].entry);
		return err ? err : CODE_FN_AGAIN;
	}
	if (code_fn_inside(f, target))
		return code_edge(f, target, s, 0);
	if (f->run.fn.outermost || code_state_is_entry(s, f->arch)) {
		f->result.leaps = true;
		f->result.tail_loses |= !code_state_restored(s, f->arch);
		return f->run.fn.outermost ? 0
					   : u64_push(&f->room.tails, &f->result.ntails,
						      &f->room.tails_cap, target);
	}
	/* A part of this function that the compiler placed elsewhere. */
	if (f->try.nparts == CODE_PARTS || !code_text_of(f->bin, target))
		return CODE_FN_REJECT;
	part = &f->try.parts[f->try.nparts];
	if (!f->bin->part_of(f->bin->ctx, target, &part->range, &part->sized) ||
	    !code_in_part(f, f->try.nparts, target))
		return CODE_FN_REJECT;
	called = *code_mark_of(f->bin, target) & MARK_CALLED;
	part->entry = called ? 0 : target;
	f->try.nparts++;
	f->run.left += (part->range.end - part->range.start) * CODE_FN_VISITS;
	err = called ? join(f, target) : 0;
	return err ? err : code_edge(f, target, s, 0);
}
