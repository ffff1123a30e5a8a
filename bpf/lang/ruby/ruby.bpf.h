/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Ruby in the walk: its loop, code of YJIT, and stacks that met neither. */
#ifndef SFBPF_LANG_RUBY_BPF_H
#define SFBPF_LANG_RUBY_BPF_H

#include "lang/ruby/ruby_frames.bpf.h"
#include "core/probe.bpf.h"
#include "core/vma.bpf.h"

/* ---- Code of YJIT ---- */

/*
 * Finds the return address of code of YJIT above the stack pointer: after the words pushed at its
 * entry or, around calls and in its prologue, elsewhere. Sets jit_sp to where it is. 0: none.
 */
__noinline u64 ruby_jit_ra(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_ruby_walk *r;
	u64 ra, before;
	u32 i, at;

	if (!s)
		return 0;
	r = &s->lang.ruby;
	r->ep_len = 0;
	if (copy_user(r->eps, RB_JIT_WORDS * 8, s->regs.sp))
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < RB_JIT_WORDS; i++) {
		at = i > RB_JIT_PUSHED ? i : i ? i - 1 : RB_JIT_PUSHED;
		ra = *(u64 *)(r->eps + INDEX(8 * at, SF_RUBY_STACK));
		if (ra < SF_PAGE_MIN || code_before(s, ra, &before) || !after_call(before))
			continue;
		r->jit_sp = s->regs.sp + 8 * at;
		r->jit_ra = ra;
		return ra;
	}
	return 0;
}

/*
 * Steps over code of YJIT, if its return address lies in the runtime: found is the slot of that
 * mapping, or negative. The frames of Ruby stand for this one. Such code calls other such code
 * without a native frame, and keeps the frame pointer.
 */
__noinline int ruby_jit(u32 slot, int found)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d = NULL;
	struct sf_ruby_walk *r;
	struct sf_vma *v;
	u32 n;

	if (!s)
		return SF_STOP_NO_ROW;
	r = &s->lang.ruby;
	v = vma_at(s, found);
	if (found >= 0 && v->state == SF_MOD_READY && (v->flags & SF_MODULE_LANG))
		d = lang_of(v);
	if (!d || d->language != SF_LANG_RUBY) {
		s->lang.begin.ruby.misses++;
		s->lang.begin.ruby.not_jit =
			s->regs.pc; /* the next round takes it for any other code */
		return SF_STEP_GO;
	}
	n = s->n;
	s->vma_last = found;
	if (s->lang.language != SF_LANG_RUBY || r->module != v->word)
		ruby_begin(slot);
	r->pending = 0;
	s->lang.begin.ruby.jit_hidden = !cfg_native && r->cfp;
	r->jit_at = n;
	if (!s->lang.begin.ruby.jit_hidden) {
		if (n >= SF_MAX_USER)
			return SF_STOP_DEPTH;
		*frame_at(s,
			  n) = SF_FRAME_JIT << SF_FRAME_KIND_SHIFT |
			       ((s->regs.pc - (s->regs.flags & SF_REGS_RA)) & SF_FRAME_ADDR_MASK) |
			       (u64)(s->regs.flags & SF_REGS_RA) << 59;
		s->n = n + 1;
	}
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	s->regs.sp = r->jit_sp + 8;
	s->regs.pc = r->jit_ra;
	s->regs.flags = SF_REGS_RA;
	return SF_STEP_GO;
}

/*
 * Finds the chain for a stack that did not meet the loop. The thread's chain is known all the same,
 * if the runtime is on the stack, as in a fiber or a thread of a method written in C. If the stack
 * ended in other code made at run time, it is enough that the runtime was met in this address
 * space.
 */
__noinline int ruby_without_loop(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_vma *v;
	u32 first, n = SF_VMAS, i, at;

	if (!s)
		return 0;
	first = (s->space & (SF_SPACES - 1)) * SF_VMAS;
	if (s->lang.seen >= 0) {
		first = s->lang.seen;
		n = 1;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_VMAS; i++) {
		if (i >= n)
			break;
		at = first + i;
		v = vma_at(s, at);
		if (!v->len || v->state != SF_MOD_READY || !(v->flags & SF_MODULE_LANG))
			continue;
		d = lang_of(v);
		if (!d || d->language != SF_LANG_RUBY)
			continue;
		s->vma_last = at;
		ruby_begin(slot);
		s->lang.ruby.pending = 0;
		s->lang.ruby.alone = 1;
		/* A thread of the runtime, such as its timer. Up to 2.7, others have none, too. */
		if (s->lang.stop == SF_STOP_LANG_STATE && d->ruby.tls_how != SF_TLS_NONE)
			s->lang.stop = SF_STOP_COMPLETE;
		if (s->lang.stop == SF_STOP_COMPLETE && !s->lang.ruby.cfp)
			s->lang.language = SF_LANG_NONE;
		break;
	}
	return 0;
}

/*
 * Records the next frame after the walk if the native stack ended early: the rest of the chain is
 * known all the same. Else no frame should be left. 1: that is all.
 */
static int ruby_rest(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx, n;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_ruby_walk *r;
	u64 cfp;

	if (!s)
		return 1;
	r = &s->lang.ruby;
	if (!lang_vma(s, r->vma, r->module))
		return 1;
	cfp = r->cfp;
	n = s->n;
	if (!cfp || ruby_one(slot) == RUBY_FAULT)
		return 1;
	if (s->stop == SF_STOP_COMPLETE && s->n != n && !r->alone) {
		s->n = n;
		r->cfp = cfp;
		return 1;
	}
	return 0;
}

/* ---- What lang.bpf.h calls ---- */

#define RUBY_JIT LATER(SF_LANG_RUBY, 0)

static __always_inline int ruby_unrowed(struct sf_scratch *s, u32 slot, u32 found)
{
	const struct sf_ruby_begin *b = &s->lang.begin.ruby;

	if (vma_at(s, found)->state != SF_MOD_JIT || s->regs.pc == b->not_jit ||
	    b->misses >= RB_JIT_MISSES)
		return NOT_MINE;
	return RUBY_JIT;
}

static __always_inline int ruby_later(u32 slot, int what)
{
	u64 ra;

	if (what != RUBY_JIT)
		return what;
	ra = ruby_jit_ra(slot);
	return ruby_jit(slot, ra ? vma_find(slot, ra - 1) : -1);
}

static __always_inline int ruby_step(u32 slot)
{
	int stop = ruby_open(slot);

	return stop == RUBY_HAS_FRAMES ? ruby_frames(slot) : stop;
}

static __always_inline bool ruby_left(const struct sf_lang_walk *w)
{
	return w->ruby.cfp;
}

static __always_inline void ruby_missed(struct sf_scratch *s, u32 slot)
{
	if (s->stop == SF_STOP_JIT || s->lang.seen >= 0)
		ruby_without_loop(slot);
}

__noinline int ruby_finish(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (!s)
		return 0;
	if (s->stop == SF_STOP_ZERO_RA && ruby_top(s))
		s->stop = SF_STOP_COMPLETE;
	if (s->lang.stop == SF_STOP_COMPLETE && s->lang.ruby.cfp)
		bpf_loop(2 * SF_MAX_USER, ruby_rest, &slot, 0);
	return 0;
}

#define LANG	 ruby
#define LANG_HAS (LANG_UNROWED | LANG_STEP | LANG_FINISH | LANG_MISSED)
#include "lang/defaults.h"

#endif
