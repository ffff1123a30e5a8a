/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The unwinder: from a task's user registers to frame words in the scratch.
 *
 * Each frame needs its mapping (the last one, one of eight, or a walk of the VMA tree), its row
 * (return-address cache, or search), and one step. The stack is read in windows of 1 KiB.
 *
 * Between two samples other code uses the CPU's caches, so cache misses dominate the cost of a
 * sample. Therefore the loop body unwinds one frame, which keeps the code small, and cache_warm()
 * makes misses overlap.
 */
#ifndef SFBPF_UNWIND_BPF_H
#define SFBPF_UNWIND_BPF_H

#include "core/bridge.bpf.h"
#include "core/go_step.bpf.h"
#include "lang/lang.bpf.h"
#include "core/leaf.bpf.h"
#include "core/leave.bpf.h"
#include "core/mapping.bpf.h"
#include "core/probe.bpf.h"
#include "core/ra_check.bpf.h"
#include "core/regs.bpf.h"
#include "core/row.bpf.h"
#include "core/space.bpf.h"
#include "core/stack.bpf.h"

/* Steps by a row that is not packed: a few percent. Global, so it is verified once. */
__noinline int step_indexed(u32 slot, u32 code, u32 offset)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_rule *rule;
	struct sf_vma *v;
	int stop;

	if (!s)
		return SF_STOP_NO_RULE;
	if (code == SF_RULE_END)
		return SF_STOP_COMPLETE;
	v = vma_at(s, s->vma_last);
	rule = rule_find((struct sf_tables *)&v->first_page, code);
	if (!rule)
		return SF_STOP_NO_RULE;
	s->rule = *rule;
	if (rule->flags & SF_RULE_GO)
		return LATER_GO_RULE;
	if (cfg_note_words)
		note_fp(s);
	stop = step_rule(&s->regs, &s->rule, offset, v->flags);
	if (cfg_note_words && !rule_noted(&s->rule))
		s->log_far = ~0ull;
	return stop;
}

_Static_assert(__builtin_offsetof(struct sf_vma, flags) -
			       __builtin_offsetof(struct sf_vma, first_page) ==
		       __builtin_offsetof(struct sf_tables, flags),
	       "sf_vma ends with sf_tables");

/*
 * Steps by frame pointer because there is no row. `cause` becomes the stop reason if that leads
 * nowhere.
 */
static __always_inline int step_unknown(struct sf_scratch *s, u32 cause)
{
	int err;

	if (!s->cause)
		s->cause = cause;
	if (!s->regs.fp && (s->regs.flags & SF_REGS_BY_FP))
		return SF_STOP_ZERO_RA;
	err = step_fp(&s->regs);
	return err == SF_STOP_BAD_CFA || err == SF_STOP_READ_FAULT ? s->cause : err;
}

static __always_inline u32 cause_of_state(const struct sf_vma *v)
{
	switch (v->state) {
	case SF_MOD_READY:
		return SF_STOP_NO_ROW;
	case SF_MOD_JIT:
		return v->flags & SF_VMA_ASKED ? SF_STOP_NOT_LOADED : SF_STOP_JIT;
	case SF_MOD_LOADING:
	case SF_MOD_RETRY:
		return SF_STOP_NOT_LOADED;
	case SF_MOD_NO_PLACE:
		return SF_STOP_MODULES_FULL;
	case SF_MOD_REFUSED:
		return SF_STOP_REFUSED;
	case SF_MOD_FULL:
		return SF_STOP_TABLES_FULL;
	default:
		return SF_STOP_NO_TABLE;
	}
}

/*
 * Steps from code without a row, whose frame was recorded: by its instructions, or by frame
 * pointer.
 */
static __always_inline int step_no_row(struct sf_scratch *s, u32 slot, u32 cause)
{
	u32 n = s->n - 1;
	int stop = NOT_MINE;

	if (s->regs.flags & SF_REGS_FULL) {
		stop = leave_step(slot);
		if (stop != SF_STEP_GO)
			stop = leaf_step(slot);
	} else if (cause == SF_STOP_JIT) {
		stop = leave_step(slot);
	}
	if (stop == SF_STEP_GO) {
		if (lang_glues(&s->lang, n))
			s->n = n;
		return SF_STEP_GO;
	}
	if (cause == SF_STOP_JIT)
		bridge_note(s);
	if (stop == LEAF_SKIPS) {
		s->skipped = cause == SF_STOP_JIT ? SF_STOP_BRIDGED : cause;
		if (cause == SF_STOP_JIT)
			frame_push(s, SF_FRAME_BRIDGE);
	}
	return step_unknown(s, cause);
}

/*
 * Records a frame without a row, and steps to its caller. found: slot of s->vmas; -1: none.
 * Global: not in the hot path, and verified once.
 */
__noinline int frame_without_row(u32 slot, int found)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_vma *v;
	u64 word, at;
	u32 n;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, found);
	if (found >= 0 &&
	    (v->state == SF_MOD_JIT || (v->state == SF_MOD_READY && (v->flags & SF_MODULE_LANG)))) {
		int stop = lang_unrowed(s, slot, found);

		if (stop != NOT_MINE)
			return stop;
	}
	at = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	word = (u64)(s->regs.flags & (SF_REGS_RA | SF_REGS_BY_FP)) << 59;
	n = s->n;
	if (found < 0 && (s->regs.flags & SF_REGS_BY_FP)) /* a wrong guess, not a frame */
		return s->cause ? s->cause : SF_STOP_NO_MODULE;
	if (found < 0)
		word |= SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else if (v->state == SF_MOD_JIT)
		word |= SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK);
	else
		word |= SF_FRAME_NOROW << SF_FRAME_KIND_SHIFT | v->word |
			((at + v->delta) & SF_FRAME_OFFSET_MASK);
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	*frame_at(s, n) = word;
	s->n = n + 1;
	if (found < 0)
		return SF_STOP_NO_MODULE;
	if (cfg_note_words)
		note_fp(s);
	return step_no_row(s, slot, cause_of_state(v));
}

/* Records the current frame, and steps to its caller. SF_STEP_GO or a stop. */
static __always_inline int unwind_frame(struct sf_scratch *s, struct sf_cache *c, u32 slot)
{
	u32 flags = s->regs.flags, n = s->n, code;
	u64 at = s->regs.pc - (flags & SF_REGS_RA);
	int found = s->vma_last & (SF_SLOTS - 1);
	struct sf_vma *v = vma_at(s, found);
	u64 offset;
	bool first;

	if (at - v->start >= v->len) {
		found = vma_find(slot, at);
		v = vma_at(s, found);
	}
	if (found < 0 || v->state != SF_MOD_READY) {
		u32 memory = found >= 0 && v->state == SF_MOD_JIT ? v->flags : 0;

		if (found < 0 || (memory & SF_VMA_PROBES))
			return LATER_PROBE;
		return memory & SF_VMA_NEW ? LATER_COPIED : frame_without_row(slot, found);
	}
	offset = (at + v->delta) & SF_FRAME_OFFSET_MASK;
	code = row_of(s, c, slot, found, offset);
	if (code == SF_RULE_GAP)
		return frame_without_row(slot, found);
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	first = (v->flags & (SF_MODULE_LANG | SF_MODULE_STARTS)) && lang_see(slot, found, offset);
	if (cfg_note_words && ((code & SF_RULE_BASE_FP) || (flags & SF_REGS_BY_FP)))
		note_fp(s);
	*frame_at(s, n) = v->word | offset | (u64)(flags & (SF_REGS_RA | SF_REGS_BY_FP)) << 59;
	s->n = n + 1;
	if (first)
		return SF_STOP_COMPLETE;
	if (code & SF_RULE_INDEXED)
		return step_indexed(slot, code, offset);
	return step_packed(&s->regs, code, v->flags);
}

static __always_inline int bridge_step(u32 slot)
{
	u64 addr = bridge_next(slot);

	return bridge_look(slot, addr ? vma_find(slot, addr) : -1);
}

/* The walk is at the innermost frame. */
static __always_inline void walk_begin(struct sf_scratch *s)
{
	s->n = 0;
	s->cause = 0;
	s->win_len = 0;
	s->lang_at = LANG_NATIVE;
	s->lang.language = SF_LANG_NONE;
	s->lang.seen = -1;
	s->lang.end = 0;
	s->lang.begin = (struct sf_lang_begin){};
	s->lang.pc.at = 0;
	s->lang.code = 0;
	s->go_sp = s->absent = 0;
	s->gap = s->bridged = s->faults = s->skipped = 0;
}

/*
 * A walk that broke may have gone through a word that is no return address: what a library put
 * there when it made a stack, or data. So the walk is made once more, and ends at such a word. A
 * walk through a signal frame is not: the registers that it began with are lost. 1: the walk is at
 * the innermost frame again. Global: not in the hot path, and verified once.
 */
__noinline int walk_again(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	bool at_once;
	u32 stop;

	if (!s)
		return 0;
	stop = s->stop;
	if (stop == SF_STOP_ZERO_RA)
		stop = zero_check(slot);
	if (s->checked || s->regs.r[SF_REG_SP] != s->begin_sp ||
	    (stop != SF_STOP_NO_MODULE && stop != SF_STOP_ZERO_RA && stop != SF_STOP_READ_FAULT &&
	     stop != SF_STOP_BAD_CFA))
		return 0;
	/* The first return address, which the step or the search for its mapping has refused. */
	at_once = s->n <= 2 && !follows_call(s->regs.pc);
	s->checked = SF_REGS_GUESS;
	s->regs.pc = s->begin_pc;
	regs_finish(&s->regs, s->begin_flags & SF_REGS_RA);
	walk_begin(s);
	if (at_once)
		probe_pushed(slot);
	return 1;
}

/* What a frame has left to do. Returns the result of the step, or LATER_ROUND. */
static __always_inline int unwind_later(u32 slot, int what)
{
	if (what == LATER_COPIED) {
		copied_learn(slot, copied_near(slot));
		return LATER_ROUND;
	}
	if (what == LATER_PROBE)
		return probe_step(slot) == SF_STEP_GO ? LATER_ROUND : frame_without_row(slot, -1);
	if (what == LATER_GO_RULE)
		return go_step(slot);
	return lang_later(slot, what);
}

static int unwind_next(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_cache *c = bpf_map_lookup_elem(&cache, &slot);
	int stop;

	if (!s || !c)
		return 1;
	if (s->lang_at) {
		stop = s->lang_at == LANG_BRIDGE ? bridge_step(slot) : lang_next(s, slot);
	} else {
		stop = unwind_frame(s, c, slot);
		if (stop < 0)
			stop = unwind_later(slot, stop);
		if (stop == LATER_ROUND)
			return 0;
		if (stop == SF_STEP_GO && bridge_is_near(s))
			stop = bridge_join(slot);
		if (stop == SF_STEP_GO &&
		    ((s->regs.flags | s->checked) & (SF_REGS_GUESS | SF_REGS_DOWN)))
			stop = guess_check(slot);
	}
	if (stop == SF_STEP_GO)
		return 0;
	s->stop = stop;
	if (s->gap)
		bridge_retry(slot);
	else if (walk_again(slot))
		return 0;
	return s->lang_at != LANG_BRIDGE;
}

#define WARM_FRAMES 64

/*
 * Most stacks share their outer frames with the previous one. Loads their cache entries at once, so
 * that the misses overlap.
 */
static __always_inline void cache_warm(struct sf_scratch *s, u32 slot)
{
	struct sf_cache *c = bpf_map_lookup_elem(&cache, &slot);
	u32 n = s->n, i; /* n: user frames of the previous stack */

	if (!c)
		return;
#pragma clang loop unroll(disable)
	for (i = 0; i < WARM_FRAMES; i++) {
		u32 at = n - 1 - i;
		u64 word;

		if (at >= SF_MAX_USER)
			break;
		word = *frame_at(s, at);
		if (SF_FRAME_KIND(word) == SF_FRAME_LANG)
			continue;
		*(volatile u64 *)&c->entry[CACHE_SLOT(word * CACHE_FACTOR)];
	}
}

/* Unwinds from s->regs in s->mm, with s->pid for requests. Sets s->n, the frames and s->stop. */
static __always_inline void unwind_user(struct sf_scratch *s, u32 slot)
{
	cache_warm(s, slot);
	s->stop = SF_STOP_DEPTH;
	s->lang.spent = (struct sf_lang_spent){};
	s->checked = 0;
	s->begin_pc = s->regs.pc;
	s->begin_sp = s->regs.sp;
	s->begin_flags = s->regs.flags;
	walk_begin(s);
	if (cfg_note_words) {
		s->log_base = s->log_hash = s->regs.sp;
		s->log_far = s->log_n = s->log_fp_first = 0;
		s->log_fp = LOG_FP_FIRST;
	}
	space_enter(s, slot);
	/*
	 * An evaluation loop takes a round, and its frame is replaced by those of its language. A
	 * walk may be made twice.
	 */
	bpf_loop(4 * SF_MAX_USER + 1, unwind_next, &slot, 0);
	if (s->stop == SF_STOP_ZERO_RA)
		s->stop = zero_check(slot);
	lang_finish(s, slot);
	/* A frame-pointer chain through a file that is not loaded yet proves nothing. */
	if (s->stop == SF_STOP_COMPLETE && s->cause == SF_STOP_NOT_LOADED)
		s->stop = SF_STOP_NOT_LOADED;
	if (s->bridged)
		bridge_end(s);
	if (s->skipped && s->stop == SF_STOP_COMPLETE)
		s->stop = s->skipped;
}

#endif
