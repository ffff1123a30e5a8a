/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The trail: the frames of the last stack of this CPU, in their order, each with its stack pointer and its rule. The next stack of the
 * same thread mostly has the same outer frames. Their rules then come from memory that lies side by side, and the processor
 * need not wait for a return address to learn where the next one is.
 *
 * It is a hint about where to look and nothing else: what is taken is the rule of a frame word, found by the whole word, as
 * from the cache of return addresses. The stack itself is read anew each time.
 */
#ifndef SFBPF_TRAIL_BPF_H
#define SFBPF_TRAIL_BPF_H

#include "maps.bpf.h"

/* On-CPU samples have one. Off-CPU a thread's own last stack is known (off_again.bpf.h), where words are noted. */
static __always_inline struct sf_trail *trail_of(u32 slot)
{
	return cfg_note_words ? NULL : bpf_map_lookup_elem(&trails, &slot);
}

#define TRAIL_NONE 0x10000	/* no rule's code */

static __always_inline struct sf_trail_frame *trail_at(struct sf_trail *t, u32 i)
{
	asm volatile("" : "+r"(i));	/* see vma_at */
	return &t->frame[i & (2 * SF_MAX_USER - 1)];
}

/* Moves on to where the last stack has s->regs.sp, or would have it. Global: verified once. */
__noinline int trail_seek(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_trail *t = bpf_map_lookup_elem(&trails, &slot);
	u32 i, at, sp;

	if (!s || !t)
		return 0;
	at = s->trail_old;
	sp = s->regs.sp;
	for (i = 0; i < SF_MAX_USER; i++, at++)
		if ((s32)(trail_at(t, at)->sp - sp) >= 0)
			break;
	s->trail_old = at;
	return 0;
}

/* A new stack begins. Another thread's trail leads nowhere. */
static __always_inline void trail_enter(struct sf_scratch *s, struct sf_trail *t, u32 slot)
{
	u32 turn = t->turn & SF_MAX_USER, tid = s->sample.tid;

	s->trail_on = 0;
	s->trail_new = turn;
	s->trail_old = t->turn = turn ^ SF_MAX_USER;
	if (t->tid == tid)
		trail_seek(slot);
	t->tid = tid;
}

static __always_inline void trail_note(struct sf_trail *t, u32 at, u64 word, u64 sp, u32 code)
{
	struct sf_trail_frame *f = trail_at(t, at);

	f->word = word;
	f->sp = sp;
	f->code = code;
}

/* The rule of the frame at s->regs, or TRAIL_NONE. */
static __always_inline u32 trail_find(struct sf_scratch *s, struct sf_trail *t, u32 slot, u64 word)
{
	const struct sf_trail_frame *old = trail_at(t, s->trail_old);

	if (old->word != word && (s32)(old->sp - (u32)s->regs.sp) < 0) {
		trail_seek(slot);
		old = trail_at(t, s->trail_old);
	}
	s->trail_on = old->word == word;
	if (old->word != word)
		return TRAIL_NONE;
	s->trail_old++;
	return old->code & 0xffff;
}

/* Where a walk along the trail is. */
struct trail_walk {
	u64 pc, sp, fp;
	u32 old, new, n;
};

/*
 * One frame that is on the trail, in the mapping v as the one before it, and whose words are in the window: what unwind_frame()
 * does for it, without its other cases. False: nothing is done.
 */
static __always_inline bool trail_frame(struct sf_scratch *s, struct sf_trail *t, const struct sf_vma *v, struct trail_walk *w)
{
	const struct sf_trail_frame *old = trail_at(t, w->old);
	u64 at = w->pc - SF_REGS_RA, word, cfa, d, ra;
	u32 n = w->n, cfa_off, end, slot, span;

	word = v->word | ((at + v->delta) & SF_FRAME_OFFSET_MASK) | SF_FRAME_RA;
	if (at - v->start >= v->len || old->word != word || !step_places(old->code, &cfa_off, &end, &slot))
		return false;
	cfa = (old->code & SF_RULE_BASE_FP ? w->fp : w->sp) + cfa_off;
	span = slot ? slot * 8 : 8;
	d = cfa - end - span;
	if (d < w->sp || cfa <= w->sp || cfa > s->regs.entry_sp)
		return false;
	d -= s->win_base;
	if (d >= SF_WINDOW || d + span > s->win_len)
		return false;
	ra = STEP_RA(&s->regs, WINDOW_AT(s, d + span - 8));
	if (!ra || n >= SF_MAX_USER)
		return false;
	asm volatile("" : "+r"(n));	/* see vma_at */
	s->frames[n & (SF_MAX_USER - 1)] = word;
	trail_note(t, w->new + n, word, w->sp, old->code);
	if (slot)
		w->fp = WINDOW_AT(s, d);
	w->pc = ra;
	w->sp = cfa;
	w->n = n + 1;
	w->old++;
	return true;
}

#define TRAIL_FRAMES 16		/* a call */

/*
 * Frames along the trail; whether all of TRAIL_FRAMES were on it. No unrolled loop: code has to be fetched, too. Global: its
 * variables would be on the stack below off-CPU programs', which have no trail.
 */
__noinline int trail_follow(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_trail *t = bpf_map_lookup_elem(&trails, &slot);
	struct trail_walk w;
	const struct sf_vma *v;
	u32 i;

	if (!s || !t)
		return 0;
	v = vma_at(s, s->vma_last);
	if (s->regs.flags != SF_REGS_RA || v->state != SF_MOD_READY || v->flags)
		return 0;
	w = (struct trail_walk){ s->regs.pc, s->regs.sp, s->regs.fp, s->trail_old, s->trail_new, s->n };
#pragma clang loop unroll(disable)
	for (i = 0; i < TRAIL_FRAMES; i++)
		if (!trail_frame(s, t, v, &w))
			break;
	s->regs.pc = w.pc;
	s->regs.sp = w.sp;
	s->regs.fp = w.fp;
	s->trail_old = w.old;
	s->n = w.n;
	return i == TRAIL_FRAMES;
}

#endif
