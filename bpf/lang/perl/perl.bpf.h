/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of Perl with threads (struct sf_perl, made by userspace/languages/perl.c).
 *
 * An interpreter, which a thread finds by a pthread key, has a chain of stacks of contexts,
 * innermost first. A sub has a context, as have blocks, loops and evals. A context does not say
 * which line runs in it, but which statement (COP) was current when it was entered.
 *
 * An activation of the loop, Perl_runops_standard, runs the contexts up to a sub without a return
 * op, which was called from C, or to a context that stands for code without a sub: a sort block, or
 * a block in a regular expression. Not all activations have such a context, and a context may be
 * there before or after its activation. So native frames may lie one call too far out; the frames
 * of Perl are all there, in their order (perl_finish).
 */
#ifndef SFBPF_LANG_PERL_BPF_H
#define SFBPF_LANG_PERL_BPF_H

#include "lang/perl/perl_code.bpf.h"
#include "core/space.bpf.h"

/* Frames in a round of the walk. The reads of the remote program need the stack of a loop. */
#ifdef SF_REMOTE
#define PERL_ROUND 1
#else
#define PERL_ROUND 4
#endif
#define PERL_SCAN 4   /* contexts that are looked at for a frame */
#define PERL_SKIP 256 /* turns without a frame, beyond one a frame */
#define PERL_DEEP (1 << 20)

enum { PERL_LINE = -4, PERL_NEXT, PERL_END, PERL_LOST }; /* perl_one, or SF_STOP_DEPTH */

/* ---- The interpreter ---- */

/* Takes a stack of contexts. 0 or -1. */
static __always_inline int perl_stack(struct sf_lang_walk *w, u64 si)
{
	struct sf_perl_walk *p = &w->perl;
	u64 *h = p->head;
	s32 top;

	p->si = 0;
	if (copy_user(h, PERL_SI_SIZE, si))
		return -1;
	top = h[PERL_SI_TOP / 8];
	if (top < -1 || top > PERL_DEEP)
		return -1;
	p->contexts = h[PERL_SI_CONTEXTS / 8];
	p->prev = h[PERL_SI_PREV / 8];
	p->type = h[PERL_SI_TYPE / 8] >> 32;
	p->index = top;
	p->si = si;
	w->win_len = 0;
	return 0;
}

/* Finds the innermost stack of contexts, once for each stack. */
static __always_inline void perl_begin(struct sf_scratch *s, const struct sf_perl *d,
				       const struct sf_vma *v)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_perl_walk *p = &w->perl;
	u64 interp, op;

	w->language = SF_LANG_PERL;
	w->stop = SF_STOP_LANG_STATE;
	w->file = w->file_hash = 0;
	p->module = v->word;
	p->vma = s->vma_last;
	p->si = p->cv = p->empty = p->pass = 0;
	p->ops = p->lined = 0;
	p->here = 1;
	interp = lang_key(&s->lang, d->musl, d->key - v->delta, 0, user_tp());
	p->interp = interp;
	if (!interp)
		return;
	w->stop = SF_STOP_LANG_FAULT;
	if (user_u64(interp + PERL_OP, &op) || user_u64(interp + d->cop, &p->cop) ||
	    user_u64(interp + d->stack, &interp) || perl_stack(w, interp))
		return;
	w->stop = SF_STOP_COMPLETE;
	p->ret = op;
	/* The loop has returned: the context waits for the next comparison, say. */
	p->pass = !op && (p->type == PERL_SI_SORT || p->type == PERL_SI_MULTICALL);
}

/* ---- Contexts ---- */

/* The offset of the next context in the window; negative: it cannot be read. */
static __always_inline int perl_context(struct sf_lang_walk *w)
{
	struct sf_perl_walk *p = &w->perl;

	return lang_window(w, p->contexts + PERL_CX_SIZE * (u64)p->index, PERL_CX_SIZE, true,
			   p->contexts);
}

/*
 * Mixes the name of a file into a hash. The name takes the place of the object in hand. Returns its
 * length, with the zero byte, or negative.
 */
static __always_inline long perl_fold_file(struct sf_lang_walk *w, u64 text, u64 *ret)
{
	long n = copy_user_text(w->object, PERL_FILE_KEY, text);
	u64 h = *ret;
	u32 i;

	if (n <= 0)
		return n;
#pragma clang loop unroll(disable)
	for (i = 0; i < PERL_FILE_KEY / 8; i++) {
		if (i >= (u32)n / 8) /* what follows the text is old */
			break;
		FOLD(h, OBJECT64(w, 8 * i), FOLD_MUL1);
	}
	/* The last bytes: before them are bytes that were folded already, or none. */
	for (i = 0; i < 8; i++) {
		u32 at = ((u32)n & ~7u) + i;

		if (at >= (u32)n)
			break;
		FOLD(h, w->object[INDEX(at, SF_LANG_OBJECT)], FOLD_MUL2);
	}
	*ret = h;
	return n;
}

/* Takes a sub. Its code is known by its ops, which all closures of a declaration share. */
static __always_inline int perl_sub(struct sf_lang_walk *w, u64 cv)
{
	u64 *head = w->perl.head, h = 0, file;
	u32 type;

	if (cv == w->perl.cv)
		return 0;
	w->perl.cv = w->code = 0;
	if (copy_user(head, 16, cv))
		return -1;
	type = head[PERL_SV_FLAGS / 8] >> 32 & 0xff;
	if ((type != PERL_PVCV && type != PERL_PVFM) || copy_user(w->object, PERL_CV_SIZE, head[0]))
		return -1;
	file = OBJECT64(w, PERL_CV_FILE);
	if (file != w->file) {
		w->file = w->file_hash = file;
		perl_fold_file(w, file, &w->file_hash);
		if (copy_user(w->object, PERL_CV_SIZE, head[0]))
			return -1;
	}
	w->perl.kind = OBJECT32(w, PERL_CV_FLAGS) & PERL_CV_LEXICAL ? SF_PERL_LEXICAL : SF_PERL_SUB;
	FOLD(h, OBJECT64(w, PERL_CV_ROOT), FOLD_MUL1);
	FOLD(h, OBJECT64(w, PERL_CV_GV), FOLD_MUL2);
	w->code = h;
	FOLD(h, OBJECT64(w, PERL_CV_STASH), FOLD_MUL1);
	/* Memory of ops, GVs and names is used again, even all of it in the same places. */
	FOLD(h, w->file_hash, FOLD_MUL1);
	FOLD(h, OBJECT64(w, PERL_CV_SEQ) & PERL_CV_KIND, FOLD_MUL2);
	w->cookie = h;
	w->perl.cv = cv;
	w->id = 0;
	return 0;
}

/* Takes code that is no sub. */
static __always_inline void perl_code(struct sf_lang_walk *w, u32 kind, u64 code, u64 cookie)
{
	w->perl.cv = 0;
	w->perl.kind = kind;
	w->code = code;
	w->cookie = cookie;
	w->id = 0;
}

/*
 * Takes code that is no sub by the name of its file, which is all that identifies it. 0 or -1.
 * Global, to be verified once.
 */
__noinline int perl_in_file(u32 slot, u32 kind)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_lang_walk *w;
	u64 h = kind;
	long n;

	if (!s)
		return -1;
	w = &s->lang;
	n = perl_fold_file(w, w->perl.file, &h);
	if (n <= 0 && kind != SF_PERL_EVAL)
		return -1;
	if (n <= 0 || (kind == SF_PERL_EVAL && OBJECT32(w, 0) == PERL_EVAL_NAME)) {
		w->perl.file = 0;
		perl_code(w, SF_PERL_EVAL, w->perl.interp | 2, SF_PERL_EVAL);
		return 0;
	}
	perl_code(w, kind, h | 1, h);
	return 0;
}

/* ---- Lines ---- */

/*
 * The line that runs in the frame; 0: not known; PERL_LINE: perl_search is to find it. It was found
 * before for the same op in the same statement.
 */
static __always_inline int perl_line(struct sf_scratch *s)
{
	struct sf_perl_walk *p = &s->lang.perl;
	struct sf_code_pc *e;
	u64 *h = p->head, cookie = p->here;
	u32 key;

	if (!cfg_lines || !p->cop)
		return 0;
	if (p->lined) {
		p->lined = 0;
		return p->line;
	}
	if (copy_user(h, PERL_OP_SIZE, p->cop))
		return 0;
	p->line = h[PERL_OP_BITS / 8] >> 32 & 0xffffff;
	p->statement = h[PERL_OP_BITS / 8] & PERL_OP_TYPE;
	if (!p->ret || !p->statement)
		return p->line;
	FOLD(cookie, p->cop, FOLD_MUL1);
	FOLD(cookie, h[PERL_OP_SIBLING / 8], FOLD_MUL2);
	FOLD(cookie, h[PERL_OP_BITS / 8], FOLD_MUL1);
	key = code_pc_key(MM_ID(s->mm), p->ret);
	e = bpf_map_lookup_elem(&code_pcs, &key);
	if (e && e->at == p->ret && e->space == MM_ID(s->mm) && e->cookie == cookie)
		return e->n;
	s->lang.pc.cookie = cookie;
	p->near = p->cop;
	p->op = h[PERL_OP_SIBLING / 8];
	return PERL_LINE;
}

enum perl_found { PERL_LOOKS, PERL_FOUND, PERL_NOWHERE, PERL_UNREADABLE };

/* Looks at an op of a statement. What the op is in comes before it, and again after its kids. */
static int perl_look_op(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	struct sf_perl_walk *p;
	u32 bits, depth;
	u64 *h;

	if (!s)
		return 1;
	p = &s->lang.perl;
	h = p->head;
	depth = p->depth;
	p->what = PERL_UNREADABLE;
	if (p->ops++ >= PERL_OPS_EACH || copy_user(h, PERL_OP_SIZE, p->op))
		return 1;
	bits = h[PERL_OP_BITS / 8];
	if (p->up) {
		p->near = p->nest[INDEX(depth, SF_PERL_NEST)];
	} else {
		p->what = PERL_FOUND;
		if (depth && !(bits & PERL_OP_TYPE) && h[PERL_OP_WAS / 8] == p->statement)
			p->near = p->op;
		if (p->op == p->ret || (!p->here && h[PERL_OP_NEXT / 8] == p->ret &&
					(bits & PERL_OP_TYPE) != p->statement + PERL_OP_SCOPE))
			return 1;
		p->what = PERL_NOWHERE;
		if (bits & PERL_OP_KIDS) {
			if (depth >= SF_PERL_NEST)
				return 1;
			p->nest[INDEX(depth, SF_PERL_NEST)] = p->near;
			p->depth = depth + 1;
			p->op = h[PERL_OP_FIRST / 8];
			return 0;
		}
	}
	p->what = PERL_NOWHERE;
	if (!depth)
		return 1;
	p->up = !(bits & PERL_OP_MORE);
	p->depth = depth - p->up;
	p->op = h[PERL_OP_SIBLING / 8];
	return 0;
}

/*
 * Finds the line of the frame in hand as Perl's messages do. The first statement in a block may be
 * optimized away: its op does nothing, but has its line. So the statement that runs is the nearest
 * such op before the one that runs, in the ops of the last statement that Perl knows of.
 */
__noinline int perl_search(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_perl_walk *p;
	struct sf_code_pc *e;
	u32 line, key;

	if (!s)
		return SF_STEP_GO;
	p = &s->lang.perl;
	p->lined = 1;
	p->depth = p->up = 0;
	p->what = PERL_UNREADABLE;
	bpf_loop(PERL_OPS, perl_look_op, &slot, 0);
	if (p->what == PERL_UNREADABLE)
		return SF_STEP_GO;
	if (p->what == PERL_FOUND && !copy_user(&line, sizeof(line), p->near + PERL_COP_LINE))
		p->line = line & 0xffffff;
	e = &s->lang.pc;
	e->space = MM_ID(s->mm);
	e->at = p->ret;
	e->n = p->line;
	key = code_pc_key(e->space, e->at);
	bpf_map_update_elem(&code_pcs, &key, e, BPF_ANY);
	return SF_STEP_GO;
}

/* ---- Frames ---- */

/* Whether a context is a frame, whose code is taken then: 1, 0, or -1: it cannot be read. */
static __always_inline int perl_take(struct sf_lang_walk *w, u32 slot, u32 type, u32 at)
{
	struct sf_perl_walk *p = &w->perl;
	u64 name, cv;

	switch (type & PERL_CX_KIND) {
	case PERL_SUB:
		if (type & PERL_FAKE)
			return 0;
		/* fall through */
	case PERL_FORMAT:
		cv = WINDOW64(w, at, PERL_CX_CV);
		if (!cv) /* it is being entered or left */
			return 0;
		return perl_sub(w, cv) ? -1 : 1;
	case PERL_EVAL:
		if (type & PERL_TRY)
			return 0;
		name = WINDOW64(w, at, PERL_CX_NAME);
		p->file = 0;
		if (user_u64(name ? name + PERL_SV_U : p->cop + PERL_COP_FILE, &p->file) && name)
			return -1;
		return perl_in_file(slot, name ? SF_PERL_REQUIRE : SF_PERL_EVAL) ? -1 : 1;
	case PERL_BLOCK:
		/* Only the program's own block counts */
		if (p->type != PERL_SI_MAIN || p->index)
			return 0;
		perl_code(w, SF_PERL_MAIN, p->interp | 1, SF_PERL_MAIN);
		return 1;
	default:
		return 0;
	}
}

/* Whether an activation of the loop begins with this context. */
static __always_inline bool perl_begins(struct sf_lang_walk *w, u32 type, u32 at)
{
	u32 kind = type & PERL_CX_KIND;

	if (kind == PERL_NULL)
		return true;
	return (kind == PERL_SUB || kind == PERL_FORMAT) &&
	       (!WINDOW64(w, at, PERL_CX_RET) || (type & PERL_FAKE));
}

/*
 * Looks at the next context, and records its frame if it is one. 0: none; PERL_*, or a stop.
 * Global: verified once, and not for each of the contexts that perl_one and perl_step look at.
 */
__noinline int perl_look(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_lang_walk *w;
	struct sf_perl_walk *p;
	int at, frame, line;
	bool begins;
	u32 type;
	u64 word;

	if (!s)
		return PERL_LOST;
	w = &s->lang;
	p = &w->perl;
	at = perl_context(w);
	if (at < 0)
		return PERL_LOST;
	type = w->window[INDEX(at, SF_LANG_WINDOW)];
	begins = perl_begins(w, type, at);
	frame = begins && p->pass ? 0 : perl_take(w, slot, type, at);
	if (frame < 0)
		return PERL_LOST;
	if (frame) {
		line = perl_line(s);
		if (line == PERL_LINE)
			return PERL_LINE;
		word = lang_word(s, slot, SF_LANG_PERL, perl_describe, line);
		if (!frame_push(s, word))
			return SF_STOP_DEPTH;
	}
	/* Blocks, loops, and code in a regular expression are entered in their frame. */
	if (frame || ((type & PERL_CX_KIND) == PERL_SUB && !(type & PERL_FAKE))) {
		p->cop = WINDOW64(w, at, PERL_CX_COP);
		p->ret = WINDOW64(w, at, PERL_CX_RET);
		p->here = 0;
	}
	p->index--;
	if (begins && p->pass)
		p->pass = 0;
	else if (begins)
		return PERL_END;
	return frame ? PERL_NEXT : 0;
}

/* Records at most one frame. PERL_* or SF_STOP_DEPTH. */
static __always_inline int perl_one(struct sf_scratch *s, u32 slot)
{
	struct sf_perl_walk *p = &s->lang.perl;
	int what;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < PERL_SCAN; i++) {
		if (p->index < 0)
			break;
		what = perl_look(slot);
		if (what)
			return what;
	}
	if (p->empty++ > PERL_SKIP + s->n)
		return PERL_LOST;
	if (p->index >= 0)
		return PERL_NEXT;
	if (p->type != PERL_SI_MAIN)
		return perl_stack(&s->lang, p->prev) ? PERL_LOST : PERL_NEXT;
	p->si = 0;
	return PERL_END;
}

/* ---- The walk ---- */

static __always_inline int perl_done(struct sf_scratch *s)
{
	s->lang.perl.last = s->n;
	return lang_end(s, s->lang.stop != SF_STOP_COMPLETE);
}

#define PERL_NEEDS_LINE (-2)

/*
 * Records the next frames of this activation, several of them because a round of the walk has a
 * cost of its own. PERL_NEEDS_LINE, SF_STEP_GO or a stop. Global: verified alone.
 */
__noinline int perl_frames(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_vma *v;
	int what = PERL_NEXT;
	u32 first, i;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, s->vma_last);
	d = lang_at(v->dir);
	if (!d)
		return SF_STOP_NO_ROW;
	if (s->lang_at == LANG_LOOP) {
		first = s->lang.first;
		s->lang.word = *frame_at(s, first);
		s->n = first;
		s->lang_at = LANG_INSIDE;
		if (s->lang.language != SF_LANG_PERL || s->lang.perl.module != v->word)
			perl_begin(s, &d->perl, v);
	}
	if (!s->lang.perl.si)
		return perl_done(s);
#pragma clang loop unroll(disable)
	for (i = 0; i < PERL_ROUND && what == PERL_NEXT; i++)
		what = perl_one(s, slot);
	if (what == PERL_LINE)
		return PERL_NEEDS_LINE;
	if (what == PERL_NEXT)
		return SF_STEP_GO;
	if (what == SF_STOP_DEPTH)
		return SF_STOP_DEPTH;
	if (what != PERL_END) {
		s->lang.stop = SF_STOP_LANG_FAULT;
		s->lang.perl.si = 0;
	}
	return perl_done(s);
}

static int perl_rest(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	int what;

	if (!s || !s->lang.perl.si)
		return 1;
	if (!lang_vma(s, s->lang.perl.vma, s->lang.perl.module))
		return 1;
	what = perl_one(s, slot);
	if (what == PERL_LINE) {
		perl_search(slot);
		return 0;
	}
	return what != PERL_NEXT && what != PERL_END;
}

/* ---- What lang.bpf.h calls ---- */

static __always_inline int perl_step(u32 slot)
{
	int stop = perl_frames(slot);

	return stop == PERL_NEEDS_LINE ? perl_search(slot) : stop;
}

static __always_inline bool perl_left(const struct sf_lang_walk *w)
{
	return w->perl.si;
}

/*
 * Records the frames that are left after the walk. They belong to activations that were taken for
 * those of inner frames. So they go in where the outermost loop was, below what called it. They are
 * those of the part that is missing if the stack ended early.
 */
__noinline int perl_finish(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 n, i, at, tail;

	if (!s || s->lang.stop != SF_STOP_COMPLETE || !s->lang.perl.si)
		return 0;
	n = s->n;
	tail = s->stop == SF_STOP_COMPLETE ? n - s->lang.perl.last : 0;
	if (tail > SF_PERL_TAIL)
		tail = 0;
	s->lang.perl.ntail = tail;
	n -= tail;
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_PERL_TAIL; i++) {
		s->lang.perl.tail[i] = *frame_at(s, n + i);
	}
	s->n = n;
	bpf_loop(2 * SF_MAX_USER, perl_rest, &slot, 0);
	n = s->n;
	tail = s->lang.perl.ntail;
#pragma clang loop unroll(disable)
	for (i = 0; i < SF_PERL_TAIL; i++) {
		if (i >= tail)
			break;
		at = n + i;
		if (at >= SF_MAX_USER) {
			s->stop = SF_STOP_DEPTH;
			break;
		}
		*frame_at(s, at) = s->lang.perl.tail[i];
	}
	s->n = n + i;
	return 0;
}

#define LANG	 perl
#define LANG_HAS (LANG_STEP | LANG_FINISH)
#include "lang/defaults.h"

#endif
