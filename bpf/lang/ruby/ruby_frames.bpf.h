/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of Ruby (struct sf_ruby, made by userspace/languages/ruby.c).
 *
 * A thread, or a fiber, has an execution context with an array of control frames, innermost first.
 * An activation of the evaluation loop, rb_vm_exec, runs those up to one with the flag FINISH.
 * Methods written in C have control frames, too. Such a frame lies in front of the frames of the
 * loop that called the method, and is recorded with them. It has the name of the method, and the
 * file and line of its caller, as Ruby's own backtraces have.
 *
 * A control frame has its type and flags in its environment, which lies on the value stack: there,
 * callers are below their callees.
 *
 * Code that YJIT made runs in frames of the same kind. All of it that a function of the runtime
 * called has one frame in the native stack (ruby_jit).
 */
#ifndef SFBPF_LANG_RUBY_FRAMES_BPF_H
#define SFBPF_LANG_RUBY_FRAMES_BPF_H

#include "lang/code.bpf.h"
#include "lang/ruby/ruby_code.bpf.h"
#include "core/ra_check.bpf.h"

#define RB_JIT_PUSHED	3  /* words that code of YJIT pushes at its entry */
#define RB_JIT_WORDS	16 /* words of the stack that are searched for the return address */
#define RB_JIT_ENTRY	3  /* frames of C between the loop and code of YJIT */
#define RB_JIT_MISSES	2  /* frames of other JIT code in a stack that are searched */
/* Pages of the native stack of a ractor's thread: at most PAGES, and a multiple of UNIT */
#define RB_THREAD_PAGES 16384
#define RB_THREAD_UNIT	16

/* ---- The execution context ---- */

/* The context of this thread; 0: not found. */
static __always_inline u64 ruby_context(const struct sf_ruby *d, u64 delta)
{
	u64 tp = user_tp(), ec = 0, thread, owner;

	if (d->tls_how != SF_TLS_NONE)
		return lang_tls(d->tls_how, d->musl, d->tls, delta, tp);
	/* The global pointer is for the thread that runs Ruby, or was the last one to do so */
	if (user_u64(d->tls - delta, &ec) || user_u64(ec + d->ec_thread, &thread) ||
	    user_u64(thread + d->thread_pthread, &owner) || owner != tp)
		return 0;
	return ec;
}

/* Finds the innermost control frame of the thread. Global: for its part of the stack. */
__noinline int ruby_begin(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_ruby_walk *r;
	u64 ec, *stack;
	struct sf_vma *v;

	if (!s)
		return 0;
	r = &s->lang.ruby;
	stack = r->head;
	v = vma_at(s, s->vma_last);
	d = lang_at(v->dir);
	r->module = v->word;
	r->alone = 0;
	r->vma = s->vma_last;
	r->cfp = r->stack = 0;
	r->iseq = r->owner = 0;
	r->ep_len = r->handler = 0;
	r->pending = s->lang.first != 0;
	s->lang.language = SF_LANG_RUBY;
	s->lang.win_len = 0;
	s->lang.file = 0;
	s->lang.stop = SF_STOP_LANG_STATE;
	ec = d ? ruby_context(&d->ruby, v->delta) : 0;
	if (!ec)
		return 0;
	s->lang.stop = SF_STOP_LANG_FAULT;
	if (copy_user(stack, 24, ec + RB_EC_STACK))
		return 0;
	r->stack = stack[0];
	/* The last frame has no code. A thread that begins or ends has no other one. */
	r->end = stack[0] + 8 * stack[1] - d->ruby.frame_size;
	if (!stack[0] || stack[2] == r->end) {
		s->lang.stop = SF_STOP_COMPLETE;
		return 0;
	}
	if (stack[2] <= stack[0] || stack[2] >= r->end || stack[2] & 7)
		return 0;
	r->cfp = stack[2];
	s->lang.stop = SF_STOP_COMPLETE;
	return 0;
}

/* ---- Control frames ---- */

/* The offset of a control frame in the window, which is filled if needed; negative: no. */
static __always_inline int ruby_frame(struct sf_lang_walk *w, const struct sf_ruby *d, u64 cfp)
{
	u64 at = cfp - w->win_base, left = w->ruby.end - cfp;
	u32 len;

	if (cfp >= w->ruby.end || left < d->frame_size)
		return -1;
	if (at < SF_LANG_WINDOW && at + d->frame_size <= w->win_len)
		return at;
	len = left < SF_LANG_WINDOW ? left : SF_LANG_WINDOW;
	w->win_len = 0;
	if (copy_user_part(w->window, len, SF_LANG_WINDOW, cfp))
		return -1;
	w->win_base = cfp;
	w->win_len = len;
	return 0;
}

#define RB_FRAME64(w, at, off) (*(u64 *)((w)->window + INDEX((at) + (off), SF_LANG_WINDOW)))

/* Reads an environment: its flags, its method, and the environment around it. 0 or -1. */
static __always_inline int ruby_env(struct sf_ruby_walk *r, u64 ep)
{
	u64 low = ep - RB_EP_BACK, at = low - r->ep_base, start, page = low & ~(SF_PAGE_MIN - 1ull);
	u32 len;

	if (at > SF_RUBY_STACK || at + RB_EP_BACK + 8 > r->ep_len) {
		start = ep + 8 - SF_RUBY_STACK;
		start = start < page ? page : start;
		len = ep + 8 - start;
		r->ep_len = 0;
		if (copy_user_part(r->eps, len, SF_RUBY_STACK, start))
			return -1;
		r->ep_base = start;
		r->ep_len = len;
		at = low - start;
	}
	r->entry = *(u64 *)(r->eps + INDEX(at, SF_RUBY_STACK));
	r->outer = *(u64 *)(r->eps + INDEX(at + RB_EP_BACK / 2, SF_RUBY_STACK));
	r->flags = *(u64 *)(r->eps + INDEX(at + RB_EP_BACK, SF_RUBY_STACK));
	return 0;
}

/*
 * Finds the class that the method of the frame in hand belongs to. The method is in the frame's
 * environment or in one around it. 0: none. Global, to be verified once.
 */
__noinline int ruby_owner(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_ruby_walk *r;
	u64 flags, entry;
	u32 i;

	if (!s)
		return 0;
	r = &s->lang.ruby;
	flags = r->flags;
	entry = r->entry;
	r->owner = 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < RB_LEVELS; i++) {
		if (!ruby_method(r) || (r->flags & RB_LOCAL) || ruby_env(r, r->outer & ~3ull))
			break;
	}
	r->flags = flags;
	r->entry = entry;
	return 0;
}

/* Mixes a string into a hash. */
static __always_inline u64 ruby_fold(struct sf_lang_walk *w, const struct sf_ruby *d, u64 str,
				     u64 h)
{
	w->text[0] = w->text[1] = w->text[2] = w->text[3] = 0;
	ruby_text(&w->ruby, d, str, true, (u8 *)w->text, SF_LANG_TEXT);
	return lang_fold_text(w, h);
}

/* Mixes the names of the body in hand, and of its file, into its hash. */
static __always_inline void ruby_fold_names(struct sf_lang_walk *w, const struct sf_ruby *d)
{
	u64 path = OBJECT64(w, RB_BODY_PATH), file = path;

	if (path != w->file) {
		w->file = path;
		ruby_element(&w->ruby, path, 0, &file); /* unless it is the path itself */
		w->file_hash = ruby_fold(w, d, file, path);
	}
	FOLD(w->ruby.cookie, w->file_hash, FOLD_MUL1);
	w->ruby.cookie = ruby_fold(w, d, OBJECT64(w, RB_BODY_NAME), w->ruby.cookie);
}

/* Reads what is needed of an iseq's body. 0 or -1. */
static __always_inline int ruby_body(struct sf_lang_walk *w, const struct sf_ruby *d, u64 body)
{
	u64 h = 0;

	w->ruby.iseq = w->code = 0;
	if (copy_user(w->object, RB_BODY_HEAD, body))
		return -1;
	FOLD(h, OBJECT64(w, RB_BODY_CODE), FOLD_MUL1);
	FOLD(h, OBJECT64(w, RB_BODY_NAME), FOLD_MUL2);
	FOLD(h, OBJECT64(w, RB_BODY_LINE), FOLD_MUL2);
	w->ruby.body = w->body = body;
	w->ruby.cookie = h;
	w->ruby.begun = OBJECT64(w, RB_BODY_CODE);
	ruby_fold_names(w, d);
	return 0;
}

/* Reads what is needed of the body of an iseq, which is checked to be one. 0 or -1. */
static __always_inline int ruby_iseq(struct sf_lang_walk *w, const struct sf_ruby *d, u64 iseq)
{
	u64 *head = w->ruby.head;

	if (copy_user(head, 24, iseq) || RB_T(head[0]) != RB_T_IMEMO ||
	    RB_IMEMO(head[0]) != RB_IMEMO_ISEQ)
		return -1;
	return ruby_body(w, d, head[RB_ISEQ_BODY / 8]);
}

/*
 * Reads the body that the iseq had in an earlier sample, to save a read. It is the same code if the
 * frame runs instructions of that body, and nothing that describes it has changed. Returns its id;
 * 0: it may be other code.
 */
static __always_inline u32 ruby_known(struct sf_scratch *s, const struct sf_ruby *d, u64 code,
				      u64 pc)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_code_key key = { .space = MM_ID(s->mm), .addr = code };
	struct sf_code_entry *have = bpf_map_lookup_elem(&codes, &key);

	if (!have || !have->body || have->owed > 1 || ruby_body(w, d, have->body) ||
	    w->ruby.cookie != have->cookie || pc - w->ruby.begun > 8ull * OBJECT32(w, RB_BODY_SIZE))
		return 0;
	return have->id;
}

/* Takes the code of an iseq, in methods of a class (0: of any), at a pc. 0 or -1. */
static __always_inline int ruby_code(struct sf_scratch *s, const struct sf_ruby *d, u64 iseq,
				     u64 owner, u64 pc)
{
	struct sf_lang_walk *w = &s->lang;
	u64 code = iseq;
	u32 id = 0;

	if (owner)
		FOLD(code, owner, FOLD_MUL1);
	if (iseq == w->ruby.iseq) {
		if (code == w->code)
			return 0;
	} else {
		id = ruby_known(s, d, code, pc);
		if (!id && ruby_iseq(w, d, iseq))
			return -1;
		w->ruby.iseq = iseq;
	}
	w->code = code;
	w->cookie = w->ruby.cookie;
	w->id = id;
	return 0;
}

/* The word of a frame in the code in hand. The pc is that of the next instruction. */
static __always_inline u64 ruby_word(struct sf_scratch *s, u32 slot, u64 pc)
{
	u64 at = (pc - s->lang.ruby.begun) / 8;

	/* Code of YJIT stores the pc only where something may ask for it. */
	if (at > OBJECT32(&s->lang, RB_BODY_SIZE))
		at = 0;
	return lang_word(s, slot, SF_LANG_RUBY, ruby_describe, at ? at - 1 : 0);
}

/*
 * The word of a method in C: its code is the method together with that of its caller, which is left
 * that is described. pc: the caller's; 0: no caller.
 */
static __always_inline u64 ruby_method_word(struct sf_scratch *s, u32 slot, u64 pc)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_ruby_walk *r = &w->ruby;
	u64 code, cookie, word, h = r->entry;
	u32 code_id;

	if (!pc)
		w->code = w->cookie = 0;
	code = w->code;
	cookie = w->cookie;
	code_id = w->id;
	if (copy_user(r->head, RB_ME_SIZE, h) || !r->head[RB_ME_DEF / 8])
		return SF_FRAME_LANG_WORD(SF_LANG_RUBY, 0, 0);
	r->method = r->head[RB_ME_DEF / 8];
	FOLD(h, code, FOLD_MUL1);
	w->code = h;
	h = cookie;
	FOLD(h, r->method, FOLD_MUL2);
	FOLD(h, r->head[RB_ME_CALLED / 8], FOLD_MUL1);
	w->cookie = h;
	w->id = 0;
	r->called = pc != 0;
	word = ruby_word(s, slot, pc);
	r->method = 0;
	w->code = code;
	w->cookie = cookie;
	w->id = code_id;
	return word;
}

/* No more frames of the language: the native ones go on. */
static __always_inline int ruby_lost(struct sf_scratch *s, u32 why)
{
	s->lang.stop = why;
	s->lang.ruby.cfp = 0;
	return lang_done(s);
}

/* Whether the frame in the window runs code of Ruby's. One without a pc has a path only. */
static __always_inline bool ruby_runs(const struct sf_lang_walk *w, int at)
{
	return RB_FRAME64(w, at, RB_CFP_ISEQ) && RB_FRAME64(w, at, RB_CFP_PC);
}

/*
 * The innermost frame from cfp on that runs code of Ruby's, in the window; negative: none. Global,
 * to be verified once.
 */
__noinline int ruby_caller(u32 slot, u64 cfp)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	u32 i;
	int at;

	if (!s)
		return -1;
	d = lang_at(vma_at(s, s->vma_last)->dir);
	if (!d)
		return -1;
#pragma clang loop unroll(disable)
	for (i = 0; i < RB_CALLERS; i++) {
		at = ruby_frame(&s->lang, &d->ruby, cfp);
		if (at < 0 || ruby_runs(&s->lang, at))
			return at;
		cfp += d->ruby.frame_size;
	}
	return -1;
}

/*
 * Whether the frame in hand is the caller of a rescue or an ensure: since 3.4, they are one frame
 * in Ruby's backtraces.
 */
static __always_inline bool ruby_handled(struct sf_lang_walk *w, const struct sf_ruby *d)
{
	u32 type = OBJECT32(w, RB_BODY_TYPE), handled = w->ruby.handler;

	w->ruby.handler = d->local_iseq && (type == RB_RESCUE || type == RB_ENSURE);
	return handled;
}

enum { RUBY_FAULT = -1, RUBY_GO, RUBY_FINISH };

/*
 * Records the next control frame, or steps over it: not all are code of Ruby's or a method. Global:
 * inlined into the loop of ruby_step, it makes compilers keep many addresses on the BPF stack.
 */
__noinline int ruby_one(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *lang;
	const struct sf_ruby *d;
	struct sf_lang_walk *w;
	struct sf_ruby_walk *r;
	u64 cfp, pc, word;
	bool in_c;
	int at;

	if (!s)
		return RUBY_FAULT;
	lang = lang_at(vma_at(s, s->vma_last)->dir);
	if (!lang)
		return RUBY_FAULT;
	d = &lang->ruby;
	w = &s->lang;
	r = &w->ruby;
	cfp = r->cfp;
	at = ruby_frame(w, d, cfp);
	if (at < 0 || ruby_env(r, RB_FRAME64(w, at, RB_CFP_EP)))
		return RUBY_FAULT;
	in_c = (r->flags & RB_TYPE) == RB_C;
	/* A file that is parsed has a frame, but no activation. */
	if (!in_c && RB_FRAME64(w, at, RB_CFP_ISEQ) && !ruby_runs(w, at))
		r->flags &= ~(u64)RB_FINISH;
	if (in_c || (ruby_runs(w, at) && !(r->flags & RB_CFRAME))) {
		if (in_c)
			at = ruby_caller(slot, cfp);
		pc = at < 0 ? 0 : RB_FRAME64(w, at, RB_CFP_PC);
		if (d->local_iseq)
			ruby_owner(slot);
		if (at >= 0 &&
		    ruby_code(s, d, RB_FRAME64(w, at, RB_CFP_ISEQ), in_c ? 0 : r->owner, pc))
			return RUBY_FAULT;
		word = in_c ? ruby_method_word(s, slot, pc) : ruby_word(s, slot, pc);
		if ((in_c || !ruby_handled(w, d)) && !frame_push(s, word))
			return RUBY_FAULT;
		/* Pushed for an activation that has not begun: this one's frames follow it. */
		if (r->pending && !in_c && pc == r->begun)
			r->flags &= ~(u64)RB_FINISH;
	}
	r->pending = 0;
	cfp += d->frame_size;
	r->cfp = cfp < r->end ? cfp : 0;
	if (!(r->flags & RB_FINISH))
		return RUBY_GO;
	/* A fiber may have begun with methods in C, which no code of Ruby called. */
	if (r->end - cfp <= RB_CALLERS * d->frame_size && ruby_caller(slot, cfp) < 0)
		return RUBY_GO;
	return RUBY_FINISH;
}

/* Whether the loop's frame is in rb_vm_exec. */
static __always_inline bool ruby_in_exec(const struct sf_lang *d, u64 word)
{
	u64 offset = SF_FRAME_OFFSET(word);
	u32 i;

	for (i = 0; i < SF_LANG_LOOPS; i++) {
		if (i >= d->ruby.nexec)
			break;
		if (offset - d->loops[i].start < d->loops[i].size)
			return true;
	}
	return false;
}

/* Begins an activation. false: it has no frames. */
static __always_inline bool ruby_enter(struct sf_scratch *s, u32 slot, const struct sf_lang *d,
				       const struct sf_vma *v, u64 word)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_ruby_walk *r = &w->ruby;

	if (w->language != SF_LANG_RUBY || r->module != v->word)
		ruby_begin(slot);
	if (!r->cfp)
		return false;
	if (ruby_in_exec(d, word))
		return true;
	if (!cfg_native) /* vm_exec_core; the frames are recorded at rb_vm_exec */
		s->n = w->first;
	return false;
}

/*
 * Hides the functions that the loop, the frame at `first`, entered code of YJIT by: that code is
 * hidden as well. Returns where the loop's frame is now.
 */
static __always_inline u32 ruby_hide_entry(struct sf_scratch *s, u32 first)
{
	struct sf_ruby_walk *r = &s->lang.ruby;
	u32 at = r->jit_at;

	if (!s->lang.begin.ruby.jit_hidden)
		return first;
	s->lang.begin.ruby.jit_hidden = 0;
	if (first - at > RB_JIT_ENTRY)
		return first;
	*frame_at(s, at) = s->lang.word;
	s->n = at + 1;
	s->lang.first = at;
	return at;
}

#define RUBY_HAS_FRAMES 0

/* Begins an activation if the loop's frame is new. RUBY_HAS_FRAMES, SF_STEP_GO, or a stop. */
__noinline int ruby_open(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_vma *v;
	u32 first;

	if (!s)
		return SF_STOP_NO_ROW;
	if (s->lang_at != LANG_LOOP)
		return RUBY_HAS_FRAMES;
	v = vma_at(s, s->vma_last);
	d = lang_at(v->dir);
	if (!d)
		return SF_STOP_NO_ROW;
	first = s->lang.first;
	s->lang_at = LANG_NATIVE;
	s->lang.word = *frame_at(s, first);
	first = ruby_hide_entry(s, first);
	if (!ruby_enter(s, slot, d, v, s->lang.word))
		return SF_STEP_GO;
	s->n = first;
	s->lang_at = LANG_INSIDE;
	return RUBY_HAS_FRAMES;
}

/*
 * Records the next frames of this activation, several of them because a round of the walk has a
 * cost of its own. Global: verified alone.
 */
__noinline int ruby_frames(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	int what = RUBY_GO;
	u32 i;

	if (!s)
		return SF_STOP_NO_ROW;
#pragma clang loop unroll(disable)
	for (i = 0; i < RB_ROUND; i++) {
		if (!s->lang.ruby.cfp)
			return lang_done(s);
		what = ruby_one(slot);
		if (what != RUBY_GO)
			break;
	}
	if (what == RUBY_FAULT)
		return s->n >= SF_MAX_USER ? SF_STOP_DEPTH : ruby_lost(s, SF_STOP_LANG_FAULT);
	return what == RUBY_FINISH ? lang_done(s) : SF_STEP_GO;
}

/*
 * Whether the stack that ended with a return address of 0 is at its end. A fiber's native stack
 * ends where its value stack begins. That of a ractor's thread follows the value stack and a page
 * that guards it.
 */
static __always_inline bool ruby_top(const struct sf_scratch *s)
{
	const struct sf_ruby_walk *r = &s->lang.ruby;
	u64 end = (s->regs.sp + SF_PAGE_MIN - 1) & ~(SF_PAGE_MIN - 1ull),
	    pages = (end - r->end) / SF_PAGE_MIN;

	if (r->stack - s->regs.sp <= TOP_SLACK)
		return true;
	return r->stack && end - s->regs.sp <= TOP_SLACK && pages <= RB_THREAD_PAGES &&
	       pages % RB_THREAD_UNIT == 1;
}

#endif
