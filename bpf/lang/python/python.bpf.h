/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of CPython (struct sf_python, made by userspace/languages/python.c).
 *
 * The thread state names the innermost frame, and each frame its caller's. An activation of the
 * evaluation loop runs one frame (to 3.10), those up to the one with is_entry (3.11), or those up
 * to the entry frame, which lies in the loop's C frame (3.12 on). In 3.11 the loop's _PyCFrame lies
 * there. What lies in the C frame is compared with it, so that a loop that has not linked its
 * frames yet is not taken for its caller's. Generators that throw() passes on keep is_entry from
 * the loop that they ran in before, so in 3.11 the frame's caller is the outer loop's, too.
 */
#ifndef SFBPF_LANG_PYTHON_BPF_H
#define SFBPF_LANG_PYTHON_BPF_H

#include "lang/code.bpf.h"

#define PY_TAG_MASK	  3ull /* 3.14: references are tagged */
#define PY_OWNED_BY_LOOP  3    /* owner: the entry frame; above: frames of the thread itself */
#define PY_RUNS		  128  /* owner in 3.10: at least this while the frame is in its loop */
#define PY_STATE_COMPACT  (1u << 5)
#define PY_STATE_ASCII	  (1u << 6)
#define PY_STATE_KIND(st) ((st) >> 2 & 7)

/* ---- Texts ---- */

/*
 * Reads a string to the record: its first SF_CODE_TEXT bytes, or the last ones. 0, or -1: it cannot
 * be read.
 */
static __always_inline int python_text(const struct sf_python *d, u64 str, bool last, u8 *dst,
				       u16 *ret_len, u8 *ret_unit)
{
	u64 len, state, data;
	u32 unit, n;

	if (user_u64(str + d->str_len, &len) || user_u64(str + d->str_state, &state))
		return -1;
	unit = PY_STATE_KIND(state);
	if (!(state & PY_STATE_COMPACT) || (unit != 1 && unit != 2 && unit != 4) || len >> 24)
		return -1;
	data = str + (state & PY_STATE_ASCII ? d->str_ascii : d->str_compact);
	len *= unit;
	n = len < SF_CODE_TEXT ? len : SF_CODE_TEXT;
	if (last)
		data += len - n;
	if (copy_user_part(dst, n, SF_CODE_TEXT, data))
		return -1;
	*ret_len = n;
	*ret_unit = unit;
	return 0;
}

static __always_inline int python_lines(const struct sf_python *d, struct sf_code *rec, u64 table)
{
	u64 len;
	u32 n;

	rec->lines_len = 0;
	if (!cfg_lines)
		return 0;
	if (user_u64(table + d->bytes_len, &len))
		return -1;
	n = len < SF_CODE_LINES ? len : SF_CODE_LINES;
	if (copy_user_part(rec->lines, n, SF_CODE_LINES, table + d->bytes_data))
		return -1;
	rec->lines_len = n;
	return 0;
}

/* A code_describe. */
__noinline int python_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *lang;
	const struct sf_python *d;
	struct sf_lang_walk *w;
	struct sf_code *rec;

	lang = s ? code_runtime(s, SF_LANG_PYTHON) : NULL;
	if (!lang)
		return -1;
	d = &lang->python;
	w = &s->lang;
	rec = &w->rec;
	rec->first_line = OBJECT32(w, d->code_first_line);
	if (python_text(d, OBJECT64(w, d->code_qualname), false, rec->name, &rec->name_len,
			&rec->name_unit) ||
	    python_text(d, OBJECT64(w, d->code_file), true, rec->file, &rec->file_len,
			&rec->file_unit) ||
	    python_lines(d, rec, OBJECT64(w, d->code_lines)))
		return -1;
	return code_send(s, id);
}

/* ---- The thread's state ---- */

/* The state of this thread; 0: not found. */
static __always_inline u64 python_state(struct sf_lang_walk *w, const struct sf_python *d,
					u64 delta)
{
	u64 tp = user_tp(), state = 0, owner;

	if (d->tls_how != SF_TLS_NONE)
		state = lang_tls(d->tls_how, d->musl, d->tls, delta, tp);
	if (!state && d->current &&
	    (user_u64(d->current - delta, &state) || user_u64(state + d->tstate_thread, &owner) ||
	     !pthread_is(owner, tp)))
		state = 0;
	if (!state && d->key)
		state = lang_key(w, d->musl, d->key - delta, d->tstate_thread, tp);
	return state;
}

/* Finds the innermost frame of the thread. 0, or a stop. */
static __always_inline int python_begin(struct sf_scratch *s, const struct sf_python *d,
					const struct sf_vma *v)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_python_walk *p = &w->python;
	u64 state = python_state(w, d, v->delta), at = 0;

	p->module = v->word;
	p->vma = s->vma_last;
	p->frame = p->cframe = 0;
	w->language = SF_LANG_PYTHON;
	w->win_len = 0;
	w->file = 0;
	if (!state)
		return SF_STOP_LANG_STATE;
	if (user_u64(state + d->tstate_frame, &at))
		return SF_STOP_LANG_FAULT;
	if (d->cframe_back) {
		p->cframe = at;
		if (user_u64(at + d->cframe_frame, &at))
			return SF_STOP_LANG_FAULT;
	}
	p->frame = at;
	return 0;
}

/* ---- Frames ---- */

/*
 * The offset of a frame in the window. From 3.11 on, callers lie below their callees. Where the
 * last caller did not, as in frames that are made up, one frame is read.
 */
static __always_inline int python_frame(struct sf_lang_walk *w, const struct sf_python *d,
					u64 frame)
{
	bool below = d->kind != SF_PY_BACK && (!w->win_len || frame < w->win_base);

	return lang_window(w, frame, d->frame_size, below, 0);
}

/*
 * Mixes a string into a hash: Python's own hash of it, or its last bytes if Python has not computed
 * that. The length is followed by the hash and the state.
 */
static __always_inline u64 python_fold(struct sf_lang_walk *w, const struct sf_python *d, u64 str,
				       u64 h)
{
	u64 *head = w->text, state, data, len;
	u32 unit, n;

	if (copy_user(head, 24, str + d->str_len))
		return h;
	len = head[0];
	state = head[2];
	unit = PY_STATE_KIND(state);
	FOLD(h, head[1], FOLD_MUL1);
	if (head[1] != ~0ull || !(state & PY_STATE_COMPACT) || len >> 24)
		return h;
	data = str + (state & PY_STATE_ASCII ? d->str_ascii : d->str_compact);
	len *= unit;
	n = len < SF_LANG_TEXT ? len : SF_LANG_TEXT;
	head[0] = head[1] = head[2] = head[3] = 0;
	if (copy_user_part((u8 *)head, n, SF_LANG_TEXT, data + len - n))
		return h;
	return lang_fold_text(w, h);
}

/* Reads the code object, and checks that it is one. 0 or -1. */
static __always_inline int python_code(struct sf_lang_walk *w, const struct sf_python *d, u64 delta,
				       u64 code)
{
	u64 h = 0, file;

	if (code == w->code)
		return 0;
	w->code = 0;
	if (copy_user(w->object, SF_PY_CODE_MAX, code) ||
	    OBJECT64(w, d->ob_type) != d->code_type - delta)
		return -1;
	file = OBJECT64(w, d->code_file);
	if (file != w->file) {
		w->file = file;
		w->file_hash = python_fold(w, d, file, file);
	}
	FOLD(h, w->file_hash, FOLD_MUL1);
	FOLD(h, OBJECT64(w, d->code_qualname), FOLD_MUL2);
	FOLD(h, OBJECT64(w, d->code_lines), FOLD_MUL1);
	FOLD(h, OBJECT32(w, d->code_first_line), FOLD_MUL2);
	h = python_fold(w, d, OBJECT64(w, d->code_qualname), h);
	w->code = code;
	w->cookie = h;
	w->id = 0;
	return 0;
}

/* The position in the code, in units of two bytes. */
static __always_inline u32 python_position(const struct sf_python *d, u64 code, u64 lasti)
{
	if (!d->lasti)
		return (lasti - code - d->code_start) / 2;
	return (s32)lasti < 0 ? 0 : (u32)lasti * d->lasti / 2;
}

/* No more frames of the language: the native ones go on. */
static __always_inline int python_lost(struct sf_scratch *s, u32 why)
{
	s->lang.stop = why;
	s->lang.python.frame = 0;
	return lang_done(s);
}

/* What lies in the C frame of the loop. */
static __always_inline bool python_in_loop(const struct sf_scratch *s, u64 addr)
{
	return addr - s->lang.sp < s->regs.sp - s->lang.sp;
}

/* The entry frame, which is no frame of Python. */
static __always_inline int python_entry(struct sf_scratch *s, u64 frame, u64 back)
{
	struct sf_python_walk *p = &s->lang.python;

	if (python_in_loop(s, frame)) {
		p->frame = back;
		return lang_done(s);
	}
	if (!back) { /* the thread's own, below all others */
		p->frame = 0;
		return lang_done(s);
	}
	/* The frames belong to another activation. */
	p->frame = p->begun;
	s->n = s->lang.first;
	return lang_done(s);
}

/* Records the next frame of this activation. */
static __always_inline int python_next(struct sf_scratch *s, u32 slot, const struct sf_python *d,
				       u64 delta)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_python_walk *p = &w->python;
	u64 frame = p->frame, code, back, word;
	int at = frame ? python_frame(w, d, frame) : -1;
	u32 owner;

	if (at < 0)
		return frame ? python_lost(s, SF_STOP_LANG_FAULT) : lang_done(s);
	back = WINDOW64(w, at, d->frame_back);
	owner = WINDOW8(w, at, d->frame_owner);
	if (d->kind == SF_PY_ENTRY && owner >= PY_OWNED_BY_LOOP)
		return python_entry(s, frame, back);
	code = WINDOW64(w, at, d->frame_code) & ~PY_TAG_MASK;
	if (back == frame || python_code(w, d, delta, code))
		return python_lost(s, SF_STOP_LANG_FAULT);
	word = lang_word(s, slot, SF_LANG_PYTHON, python_describe,
			 python_position(d, code, WINDOW64(w, at, d->frame_lasti)));
	if (!frame_push(s, word))
		return SF_STOP_DEPTH;
	p->frame = back;
	/* 3.10: throw() goes through generators that wait without a C frame. */
	if (d->kind == SF_PY_BACK && d->frame_owner && owner < PY_RUNS)
		return SF_STEP_GO;
	if (d->kind == SF_PY_BACK || (d->kind == SF_PY_CFRAME && owner && back == p->outer))
		return lang_done(s);
	return SF_STEP_GO;
}

/* Takes the frames of this state if its innermost activation is the one at hand (3.11). */
static __always_inline bool python_take(struct sf_scratch *s, const struct sf_python *d, u64 state)
{
	struct sf_python_walk *p = &s->lang.python;
	u64 cframe, frame;

	if (!state || user_u64(state + d->tstate_frame, &cframe) || !python_in_loop(s, cframe) ||
	    user_u64(cframe + d->cframe_frame, &frame))
		return false;
	p->cframe = cframe;
	p->frame = frame;
	if (s->lang.stop == SF_STOP_LANG_STATE)
		s->lang.stop = SF_STOP_COMPLETE;
	return true;
}

/*
 * A thread that runs a sub-interpreter has a state in it, and one in the interpreter that called
 * it. Until 3.11, the former may have the thread id of the thread that created the interpreter.
 */
static __noinline bool python_other_state(struct sf_scratch *s, const struct sf_python *d,
					  u64 delta)
{
	u64 state = 0;

	s->lang.win_len = 0; /* lang_key may use the window, too */
	if (d->current && !user_u64(d->current - delta, &state) && python_take(s, d, state))
		return true;
	return d->key && python_take(s, d,
				     lang_key(&s->lang, d->musl, d->key - delta, d->tstate_thread,
					      user_tp()));
}

/* Begins an activation. false: it has no frames. */
static __always_inline bool python_enter(struct sf_scratch *s, const struct sf_python *d,
					 const struct sf_vma *v)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_python_walk *p = &w->python;
	int stop;

	if (w->language != SF_LANG_PYTHON || p->module != v->word) {
		w->stop = SF_STOP_COMPLETE;
		stop = python_begin(s, d, v);
		if (stop) {
			p->frame = 0;
			w->stop = stop;
		}
	}
	if (d->kind == SF_PY_CFRAME && !python_in_loop(s, p->cframe) &&
	    !python_other_state(s, d, v->delta))
		return false;
	if (!p->frame)
		return false;
	if (d->kind == SF_PY_CFRAME) {
		if (user_u64(p->cframe + d->cframe_back, &p->cframe) ||
		    user_u64(p->cframe + d->cframe_frame, &p->outer))
			p->cframe = p->outer = 0;
	}
	p->begun = p->frame;
	return true;
}

/*
 * Records the next frame after a native stack that ended early: the rest of the chain is known all
 * the same. 1: no frame is left.
 */
static int python_rest(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *lang;
	const struct sf_python *d;
	struct sf_python_walk *p;
	struct sf_lang_walk *w;
	struct sf_vma *v;
	u64 code, back, word;
	int at;

	if (!s)
		return 1;
	w = &s->lang;
	p = &w->python;
	v = p->frame ? lang_vma(s, p->vma, p->module) : NULL;
	if (!v)
		return 1;
	lang = lang_of(v);
	if (!lang)
		return 1;
	d = &lang->python;
	at = python_frame(w, d, p->frame);
	if (at < 0)
		return 1;
	back = WINDOW64(w, at, d->frame_back);
	if (back == p->frame)
		return 1;
	if (d->kind != SF_PY_ENTRY || WINDOW8(w, at, d->frame_owner) < PY_OWNED_BY_LOOP) {
		code = WINDOW64(w, at, d->frame_code) & ~PY_TAG_MASK;
		if (python_code(w, d, v->delta, code))
			return 1;
		word = lang_word(s, slot, SF_LANG_PYTHON, python_describe,
				 python_position(d, code, WINDOW64(w, at, d->frame_lasti)));
		if (!frame_push(s, word))
			return 1;
	}
	p->frame = back;
	return 0;
}

/* ---- What lang.bpf.h calls ---- */

__noinline int python_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *lang;
	struct sf_vma *v;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, s->vma_last);
	lang = lang_of(v);
	if (!lang)
		return SF_STOP_NO_ROW;
	if (s->lang_at == LANG_LOOP) {
		s->lang_at = LANG_NATIVE;
		if (!python_enter(s, &lang->python, v))
			return SF_STEP_GO;
		lang_inside(s);
	}
	return python_next(s, slot, &lang->python, v->delta);
}

static __always_inline bool python_left(const struct sf_lang_walk *w)
{
	return w->python.frame;
}

__noinline int python_finish(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (s && s->lang.stop == SF_STOP_COMPLETE && s->stop != SF_STOP_COMPLETE)
		bpf_loop(2 * SF_MAX_USER, python_rest, &slot, 0);
	return 0;
}

/*
 * A greenlet's Python frames are a list of its own, which ends at the function that the greenlet
 * began with. The library's code has called that function. What lies above on the stack belongs to
 * other greenlets, whose frames are copied there and away.
 */
static __always_inline bool python_starts(const struct sf_lang_walk *w)
{
	return !w->python.frame && w->stop == SF_STOP_COMPLETE;
}

static __always_inline bool python_glues(void)
{
	return true;
}

#define LANG	 python
#define LANG_HAS (LANG_STEP | LANG_FINISH | LANG_STARTS | LANG_GLUES)
#include "lang/defaults.h"

#endif
