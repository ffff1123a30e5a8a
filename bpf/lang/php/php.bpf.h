/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of PHP (struct sf_php, made by userspace/languages/php.c).
 *
 * executor_globals names the innermost frame (struct _zend_execute_data), and each frame its
 * caller's. An activation of the evaluation loop runs the frames up to the one that was called from
 * C, which is marked. A function in C (usort) has a frame too, but no activation: its frame is the
 * first one of the activation that called it.
 *
 * Code that the JIT made runs in the C frame of the loop, and stands for it (php_jit).
 */
#ifndef SFBPF_LANG_PHP_BPF_H
#define SFBPF_LANG_PHP_BPF_H

#include "lang/code.bpf.h"
#include "core/space.bpf.h"

#define PHP_MAIN_STACK (128u << 20) /* the kernel maps nothing that near to the first stack */

/* struct _zend_execute_data, 7.4 to 8.4 */
#define PHP_FRAME_OPLINE   0
#define PHP_FRAME_RETURN   16 /* the generator, in a frame of a generator's function */
#define PHP_FRAME_FUNC	   24
#define PHP_FRAME_THIS	   32
#define PHP_FRAME_INFO	   40 /* its lowest byte: the type of This */
#define PHP_FRAME_BACK	   48
#define PHP_FRAME_SIZE	   56
#define PHP_IS_OBJECT	   8
#define PHP_INFO_TOP	   (1u << 17) /* called from C */
#define PHP_INFO_GENERATOR (1u << 24)
#define PHP_SKIP	   256 /* frames without a name in a stack */

/* struct _zend_generator */
#define PHP_GENERATOR_MAX 512 /* bytes that it has at most */
#define PHP_RUNNING	  1   /* flag: its activation of the loop has begun */
#define PHP_CHILDREN	  104 /* bytes from the pointer to its frame on: how many wait for it */

#define PHP_STUB_WORDS 2 /* words on the stack while code runs that the JIT's functions share */

/* union _zend_function */
#define PHP_FUNC_FLAGS	  4
#define PHP_FUNC_NAME	  8
#define PHP_FUNC_CLASS	  16
#define PHP_FUNC_ARGS	  32 /* number of parameters; an instruction receives each */
#define PHP_FUNC_INTERNAL 24 /* bytes that functions in C have at least */
#define PHP_TYPE_INTERNAL 1
#define PHP_TYPE_USER	  2
#define PHP_TYPE_EVAL	  4
#define PHP_TRAMPOLINE	  (1u << 18) /* flag: stands for __call until that is entered */

#define PHP_CLASS_NAME	8
#define PHP_OPLINE_LINE 24
#define PHP_OPLINE_SIZE 32
#define PHP_STR_HASH	8 /* 0: not computed */
#define PHP_STR_LEN	16
#define PHP_STR_DATA	24
#define PHP_OPLINE(s)	((s)->regs.r[15]) /* valid in the loop, if it is the innermost frame */

static __always_inline const struct sf_php *php_of(const struct sf_vma *v)
{
	const struct sf_lang *d = v->flags & SF_MODULE_LANG ? lang_of(v) : NULL;

	return d && d->language == SF_LANG_PHP ? &d->php : NULL;
}

/* ---- Texts ---- */

/* Reads the first SF_CODE_TEXT bytes of a string, or the last ones. 0 or -1. */
static __always_inline int php_text(u64 str, bool last, u8 *dst, u16 *ret_len)
{
	u64 len, data = str + PHP_STR_DATA;
	u32 n;

	if (user_u64(str + PHP_STR_LEN, &len) || len >> 24)
		return -1;
	n = len < SF_CODE_TEXT ? len : SF_CODE_TEXT;
	if (last)
		data += len - n;
	if (copy_user_part(dst, n, SF_CODE_TEXT, data))
		return -1;
	*ret_len = n;
	return 0;
}

/* Describes the current function in the record. 0 or -1. */
static __always_inline int php_fill(struct sf_lang_walk *w, const struct sf_php *d)
{
	struct sf_code *rec = &w->rec;
	u64 class = OBJECT64(w, PHP_FUNC_CLASS), name = OBJECT64(w, PHP_FUNC_NAME);

	rec->version = w->php.code;
	rec->first_line = 0;
	rec->name_unit = rec->file_unit = SF_CODE_UTF8;
	rec->name_len = rec->file_len = rec->lines_len = 0;
	if (w->php.code == SF_PHP_FUNCTION && php_text(name, false, rec->name, &rec->name_len))
		return -1;
	if (class && w->php.code == SF_PHP_FUNCTION &&
	    (user_u64(class + PHP_CLASS_NAME, &class) ||
	     php_text(class, false, rec->lines, &rec->lines_len)))
		return -1;
	if (w->object[0] == PHP_TYPE_INTERNAL)
		return 0;
	rec->first_line = OBJECT32(w, d->func_file + 8);
	return php_text(OBJECT64(w, d->func_file), true, rec->file, &rec->file_len);
}

/* A code_describe. */
__noinline int php_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d = s ? code_runtime(s, SF_LANG_PHP) : NULL;

	return d && !php_fill(&s->lang, &d->php) ? code_send(s, id) : -1;
}

/* ---- Frames ---- */

/*
 * Mixes a text into a hash by its own hash, if it has one, its length and its beginning: requests
 * of a server get the same memory, and their code may be in the same places of it.
 */
static __always_inline u64 php_string(struct sf_php_walk *p, u64 text, u64 h)
{
	if (!text || copy_user(p->text, sizeof(p->text), text + PHP_STR_HASH))
		return h;
	FOLD(h, p->text[0], FOLD_MUL1);
	FOLD(h, p->text[1], FOLD_MUL2);
	FOLD(h, p->text[2], FOLD_MUL1);
	return h;
}

/*
 * Reads the function of a frame; outermost: the frame has no caller. Its code is known by its
 * instructions, which all closures of a declaration share. 0; 1: it has no name; -1: it is invalid.
 */
static __always_inline int php_func(struct sf_lang_walk *w, const struct sf_php *d, u64 func,
				    bool outermost)
{
	u64 h = 0, name;
	u8 type;

	if (func == w->php.func && !outermost)
		return 0;
	w->php.func = w->code = 0;
	if (copy_user(w->object, SF_PHP_FUNC_MAX, func)) {
		if (copy_user(w->object, PHP_FUNC_INTERNAL, func) ||
		    w->object[0] != PHP_TYPE_INTERNAL)
			return -1;
	}
	type = w->object[0];
	name = OBJECT64(w, PHP_FUNC_NAME);
	w->php.code = name		      ? SF_PHP_FUNCTION
		      : type == PHP_TYPE_EVAL ? SF_PHP_EVAL
		      : outermost	      ? SF_PHP_MAIN
					      : SF_PHP_INCLUDE;
	if (type == PHP_TYPE_INTERNAL) {
		if (!name)
			return 1;
		w->code = func;
	} else if (type == PHP_TYPE_USER && (OBJECT32(w, PHP_FUNC_FLAGS) & PHP_TRAMPOLINE)) {
		return 1; /* it has the name that was called; the time is the caller's */
	} else if (type == PHP_TYPE_USER || type == PHP_TYPE_EVAL) {
		w->code = OBJECT64(w, d->func_opcodes);
		FOLD(h, OBJECT64(w, d->func_file), FOLD_MUL1);
		FOLD(h, OBJECT32(w, d->func_file + 8), FOLD_MUL2);
	} else {
		return -1;
	}
	FOLD(h, name, FOLD_MUL1);
	FOLD(h, OBJECT64(w, PHP_FUNC_CLASS), FOLD_MUL2);
	FOLD(h, w->php.code, FOLD_MUL1);
	h = php_string(&w->php, name, h);
	if (type != PHP_TYPE_INTERNAL)
		h = php_string(&w->php, OBJECT64(w, d->func_file), h);
	w->php.func = func;
	w->cookie = h;
	w->id = 0;
	return 0;
}

/* The line of an instruction of the current function; 0: not an instruction of it. */
static __always_inline u32 php_line_at(struct sf_lang_walk *w, const struct sf_php *d, u64 opline)
{
	u32 line = 0, first = OBJECT32(w, d->func_file + 8), last = OBJECT32(w, d->func_file + 12);

	if (!opline || copy_user(&line, sizeof(line), opline + PHP_OPLINE_LINE))
		return 0;
	return line - first <= last - first ? line : 0;
}

/* The line that a frame executes; 0: not known. */
static __always_inline u32 php_line(struct sf_scratch *s, const struct sf_php *d, u64 opline)
{
	struct sf_lang_walk *w = &s->lang;
	u32 line = 0;

	if (!cfg_lines || w->object[0] == PHP_TYPE_INTERNAL)
		return 0;
	if (!s->n) /* the loop itself: the copy in the frame is older than the register */
		line = php_line_at(w, d, w->php.opline);
	return line ? line : php_line_at(w, d, opline);
}

enum { PHP_NEXT = -3, PHP_TOP, PHP_LOST }; /* php_emit: what follows a frame, or a stop */

/*
 * Goes on with the generators that wait in a `yield from`. `frame` stands for all of them: it is a
 * part of `last`, the outermost one. Each generator links to the next; its link to a caller is
 * stale. Such frames on the C stack, as in 7.4, stand for nothing.
 */
static __always_inline void php_waiting(struct sf_lang_walk *w, const struct sf_php *d, u64 frame,
					u64 last)
{
	u64 next = 0, waiting;
	u32 children = 0;

	if (frame - last >= PHP_GENERATOR_MAX)
		return;
	if (copy_user(&children, sizeof(children),
		      w->php.generator + d->generator_frame + PHP_CHILDREN) ||
	    children != 1 || user_u64(w->php.generator + d->generator_child, &next) || !next)
		next = last; /* several generators wait for this one: those between are left out */
	if (user_u64(next + d->generator_frame, &waiting) || !waiting)
		return;
	w->php.caller = next == last ? w->php.frame : frame;
	w->php.frame = waiting;
}

/*
 * Whether a frame has an activation of the loop that C called. PHP links the frame of a generator
 * before that begins, unlinks it after that has ended, and links it while it takes values of
 * another iterator for it.
 */
static __always_inline bool php_top(struct sf_lang_walk *w, const struct sf_php *d, u32 info)
{
	u8 flags = PHP_RUNNING;

	if (!(info & PHP_INFO_TOP) || w->object[0] == PHP_TYPE_INTERNAL)
		return false;
	if ((info & PHP_INFO_GENERATOR) && w->php.resumes)
		return false;
	if ((info & PHP_INFO_GENERATOR) && d->generator_flags &&
	    copy_user(&flags, 1, w->php.generator + d->generator_flags))
		return true;
	return flags & PHP_RUNNING;
}

/* Records the next frame of the chain. PHP_* or SF_STOP_DEPTH. */
static __always_inline int php_emit(struct sf_scratch *s, u32 slot, const struct sf_php *d)
{
	struct sf_lang_walk *w = &s->lang;
	u64 frame = w->php.frame, back, func, opline, word;
	int at = lang_window(w, frame, PHP_FRAME_SIZE, true, 0);
	u32 info;
	int named;
	bool top;

	w->php.frame = 0;
	if (at < 0)
		return PHP_LOST;
	back = WINDOW64(w, at, PHP_FRAME_BACK);
	func = WINDOW64(w, at, PHP_FRAME_FUNC);
	info = WINDOW32(w, at, PHP_FRAME_INFO);
	opline = WINDOW64(w, at, PHP_FRAME_OPLINE);
	if (w->php.caller) {
		back = w->php.caller;
		info = w->php.caller = 0;
	}
	if (back == frame)
		return PHP_LOST;
	/* 0: the place holder of a generator, or the end of a fiber's stack */
	named = func ? php_func(w, d, func, !back) : 1;
	if (named < 0)
		return PHP_LOST;
	w->php.frame = back;
	if (named && w->php.skipped++ > PHP_SKIP)
		w->php.frame = 0;
	if (!func && w->php.frame && (info & 0xff) == PHP_IS_OBJECT)
		php_waiting(w, d, frame, WINDOW64(w, at, PHP_FRAME_THIS));
	if (named && !w->php.frame)
		return PHP_LOST;
	if (func)
		w->php.generator = WINDOW64(w, at, PHP_FRAME_RETURN);
	top = func && php_top(w, d, info);
	w->php.resumes = 0;
	if (named)
		return top ? PHP_TOP : PHP_NEXT;
	word = lang_word(s, slot, SF_LANG_PHP, php_describe, php_line(s, d, opline));
	if (!frame_push(s, word))
		return SF_STOP_DEPTH;
	return top ? PHP_TOP : PHP_NEXT;
}

/* Records the next frame of this activation. */
static __always_inline int php_next(struct sf_scratch *s, u32 slot, const struct sf_php *d)
{
	int next;

	if (!s->lang.php.frame)
		return lang_done(s);
	next = php_emit(s, slot, d);
	if (next == PHP_NEXT)
		return SF_STEP_GO;
	if (next == PHP_TOP)
		return lang_done(s);
	if (next == SF_STOP_DEPTH)
		return SF_STOP_DEPTH;
	s->lang.stop = SF_STOP_LANG_FAULT;
	return lang_done(s);
}

/*
 * Leaves out a function that C is about to call: it is linked already, but its activation of the
 * loop has not begun. Then one of the two innermost frames is that of zend_call_function, and the
 * function is at its first instruction.
 */
static __always_inline void php_unborn(struct sf_scratch *s, const struct sf_php *d,
				       const struct sf_vma *v)
{
	struct sf_lang_walk *w = &s->lang;
	bool calls = false;
	u64 func, opline;
	int at, named;
	u32 i;

	for (i = 0; i < 2; i++)
		calls |= i < s->lang.first &&
			 SF_FRAME_ADDR(s->frames[i]) - v->word - d->call.start < d->call.size;
	at = calls ? lang_window(w, w->php.frame, PHP_FRAME_SIZE, true, 0) : -1;
	if (at < 0 || !(WINDOW32(w, at, PHP_FRAME_INFO) & PHP_INFO_TOP))
		return;
	func = WINDOW64(w, at, PHP_FRAME_FUNC);
	opline = WINDOW64(w, at, PHP_FRAME_OPLINE);
	named = func ? php_func(w, d, func, false) : -1;
	if (named >= 0 && w->object[0] != PHP_TYPE_INTERNAL &&
	    (named || opline - w->code <= PHP_OPLINE_SIZE * (u64)OBJECT32(w, PHP_FUNC_ARGS)))
		w->php.frame = WINDOW64(w, at, PHP_FRAME_BACK);
}

/* Finds the innermost frame, once for each stack. opline: the register's value; 0: not known */
static __always_inline void php_begin(struct sf_scratch *s, const struct sf_php *d,
				      const struct sf_vma *v, u64 opline)
{
	struct sf_lang_walk *w = &s->lang;

	if (w->language == SF_LANG_PHP && w->php.module == v->word)
		return;
	w->language = SF_LANG_PHP;
	w->stop = SF_STOP_COMPLETE;
	w->win_len = 0;
	w->php.module = v->word;
	w->php.vma = s->vma_last;
	w->php.frame = w->php.func = 0;
	w->php.opline = opline;
	w->php.skipped = 0;
	w->php.resumes = s->lang.first &&
			 SF_FRAME_ADDR(s->frames[0]) - v->word - d->resume.start < d->resume.size;
	w->php.caller = w->php.generator = 0;
	w->php.frame = d->current - v->delta;
	if ((d->current_off && user_u64(w->php.frame, &w->php.frame)) ||
	    user_u64(w->php.frame + d->current_off, &w->php.frame)) {
		w->php.frame = 0;
		w->stop = SF_STOP_LANG_FAULT;
	}
	if (w->php.frame)
		php_unborn(s, d, v);
}

/* Records the next frame, as php_next, if the native stack ended early. 1: no frame is left. */
static int php_rest(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_php *d;
	struct sf_vma *v;
	int next;

	if (!s)
		return 1;
	v = s->lang.php.frame ? lang_vma(s, s->lang.php.vma, s->lang.php.module) : NULL;
	d = v ? php_of(v) : NULL;
	if (!d)
		return 1;
	next = php_emit(s, slot, d);
	return next != PHP_NEXT && next != PHP_TOP;
}

/*
 * PHP's frames go on, if the native stack is that of a fiber, to those of the code that resumed it.
 * They belong before the start of the fiber: without `start`, it is taken off the stack, and
 * returned; 0: not a fiber's. With it, it is put back after them. Global: verified once.
 */
__noinline u64 php_fiber(u32 slot, u64 start)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 n;

	if (!s || s->stop != SF_STOP_COMPLETE || s->regs.entry_sp - s->regs.sp <= PHP_MAIN_STACK)
		return 0;
	n = s->n - !start;
	if (n >= SF_MAX_USER)
		return 0;
	s->n = n + !!start;
	if (start)
		*frame_at(s, n) = start;
	return *frame_at(s, n);
}

/* ---- Code of the JIT ---- */

/* The slot of s->vmas with the PHP of this address space. -1: none. */
static __always_inline int php_slot(struct sf_scratch *s)
{
	u32 first = (s->space & (SF_SPACES - 1)) * SF_VMAS, i;

#pragma clang loop unroll(disable)
	for (i = 0; i < SF_VMAS; i++) {
		struct sf_vma *v = vma_at(s, first + i);

		if (v->len && v->state == SF_MOD_READY && php_of(v))
			return first + i;
	}
	return -1;
}

/* An address in the executable, if no PHP of this address space is known; else 0. */
__noinline u64 php_unknown(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (!s || php_slot(s) >= 0)
		return 0;
	return KLOAD(s->mm, struct mm_struct, start_code);
}

/*
 * How far the stack pointer is below the frame of the loop. The JIT's functions share some code,
 * for assignments say, which they call and which aligns the stack. The return address of the loop
 * lies in PHP, after a call.
 */
static __always_inline u64 php_pushed(struct sf_scratch *s, const struct sf_php *d,
				      const struct sf_vma *v)
{
	u64 at = s->regs.sp + 8 * (d->rule >> 5) - 8, ra, before;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i <= PHP_STUB_WORDS; i++)
		if (!user_u64(at + 8 * i, &ra) && ra - 1 - v->start < v->len &&
		    !code_before(s, ra, &before) && after_call(before))
			return 8 * i;
	return 0;
}

/*
 * Records a frame in code that PHP's JIT made, if it is one, and steps to its caller. Such code
 * runs in the frame of the evaluation loop, so it stands for the loop.
 */
__noinline int php_jit(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_php *d;
	struct sf_vma *v;
	int found;
	u64 at;
	u32 n;

	if (!s)
		return SF_STOP_NO_ROW;
	found = php_slot(s);
	v = vma_at(s, found);
	d = php_of(v);
	if (found < 0 || !d) {
		s->lang.begin.php.none = 1; /* the next round takes it for any other code */
		return SF_STEP_GO;
	}
	at = s->regs.pc - (s->regs.flags & SF_REGS_RA);
	n = s->n;
	if (n >= SF_MAX_USER)
		return SF_STOP_DEPTH;
	*frame_at(s, n) = SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK) |
			  (u64)(s->regs.flags & SF_REGS_RA) << 59;
	s->n = n + 1;
	s->vma_last = found;
	s->lang_at = LANG_LOOP;
	s->lang.loop = SF_LANG_PHP;
	s->lang.first = n;
	s->regs.sp += php_pushed(s, d, v);
	s->lang.sp = s->regs.sp;
	if (cfg_note_words)
		s->log_far = ~0ull;
	php_begin(s, d, v, 0);
	return d->rule ? step_packed(&s->regs, d->rule, v->flags) : SF_STOP_JIT;
}

/*
 * Finds the chain for a stack that ended before it met the loop, in other code made at run time
 * (PCRE's) or in code without rows (fibers' assembler). The chain is known all the same, if this is
 * the main thread, which is the one that runs PHP.
 */
__noinline int php_without_loop(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_php *d;
	struct sf_vma *v;
	int found;

	if (!s)
		return 0;
	found = php_slot(s);
	if (found < 0 || KLOAD(s->mm, struct mm_struct, start_stack) - s->regs.sp > PHP_MAIN_STACK)
		return 0;
	v = vma_at(s, found);
	d = php_of(v);
	if (!d)
		return 0;
	s->vma_last = found;
	php_begin(s, d, v, 0);
	return 0;
}

/* ---- What lang.bpf.h calls ---- */

#define PHP_JIT LATER(SF_LANG_PHP, 0)

static __always_inline int php_unrowed(struct sf_scratch *s, u32 slot, u32 found)
{
	const struct sf_vma *v = vma_at(s, found);

	if (v->state != SF_MOD_JIT || !(v->flags & SF_VMA_SHARED) || s->lang.begin.php.none)
		return NOT_MINE;
	return PHP_JIT;
}

static __always_inline int php_later(u32 slot, int what)
{
	u64 exe;

	if (what != PHP_JIT)
		return what;
	exe = php_unknown(slot);
	if (exe)
		vma_find(slot, exe);
	return php_jit(slot);
}

__noinline int php_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_php *d;
	struct sf_vma *v;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, s->vma_last);
	d = php_of(v);
	if (!d)
		return SF_STOP_NO_ROW;
	if (s->lang_at == LANG_LOOP) {
		s->lang_at = LANG_NATIVE;
		php_begin(s, d, v, s->lang.first ? 0 : PHP_OPLINE(s));
		if (!s->lang.php.frame)
			return SF_STEP_GO;
		lang_inside(s);
	}
	return php_next(s, slot, d);
}

static __always_inline bool php_left(const struct sf_lang_walk *w)
{
	return w->php.frame;
}

static __always_inline void php_missed(struct sf_scratch *s, u32 slot)
{
	if (s->stop == SF_STOP_JIT || s->stop == SF_STOP_NO_ROW)
		php_without_loop(slot);
}

__noinline int php_finish(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 start;

	if (!s || s->lang.stop != SF_STOP_COMPLETE || !s->lang.php.frame)
		return 0;
	start = php_fiber(slot, 0);
	if (start || s->stop != SF_STOP_COMPLETE)
		bpf_loop(2 * SF_MAX_USER, php_rest, &slot, 0);
	if (start)
		php_fiber(slot, start);
	return 0;
}

#define LANG	 php
#define LANG_HAS (LANG_UNROWED | LANG_STEP | LANG_FINISH | LANG_MISSED)
#include "lang/defaults.h"

#endif
