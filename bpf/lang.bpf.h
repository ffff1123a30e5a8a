/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of languages, in the same walk as native ones.
 *
 * A frame whose pc lies in the evaluation loop of a runtime (lang_see) stands for frames of its
 * language. Once the native step has found the loop's CFA, lang_step takes the following rounds of
 * the walk: one for each frame of this activation. Then native unwinding goes on. What cannot be
 * read costs frames of the language only; the loop is then shown as the native frame that it is.
 *
 * A language is a header with its step, which calls lang_emit for each frame, and a branch in
 * lang_step, lang_finish and code_describe. All state is in the scratch (struct sf_lang_walk).
 */
#ifndef SFBPF_LANG_BPF_H
#define SFBPF_LANG_BPF_H

#include "lang_code.bpf.h"
#include "lang_java.bpf.h"
#include "lang_javascript.bpf.h"
#include "lang_perl.bpf.h"
#include "lang_php.bpf.h"
#include "lang_python.bpf.h"
#include "lang_ruby.bpf.h"
#include "memory.bpf.h"
#include "space.bpf.h"

__noinline int code_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_code *rec;
	u32 len;

	if (!s)
		return -1;
	rec = &s->lang.rec;
	rec->type = SF_REC_CODE;
	rec->id = id;
	if (s->lang.language == SF_LANG_JAVA) {
		if (java_describe(&s->lang))
			return -1;
	} else if (s->lang.language == SF_LANG_JAVASCRIPT) {
		if (!s->lang.javascript.described) /* js_emit has tried */
			return -1;
	} else {
		d = lang_of(vma_at(s, s->vma_last));
		if (!d)
			return -1;
		rec->language = d->language;
		rec->version = d->version;
		if (d->language == SF_LANG_PYTHON && python_describe(&s->lang, &d->python))
			return -1;
		if (d->language == SF_LANG_RUBY &&
		    ruby_describe(&s->lang, &d->ruby, vma_at(s, s->vma_last)->delta))
			return -1;
		if (d->language == SF_LANG_PHP && php_describe(&s->lang, &d->php))
			return -1;
		if (d->language == SF_LANG_PERL && perl_describe(&s->lang, &d->perl))
			return -1;
	}
	len = sizeof(*rec) - SF_CODE_LINES + rec->lines_len;
	if (len > sizeof(*rec))
		return -1;
	len = AT_MOST(len, sizeof(*rec));
	return bpf_ringbuf_output(&ring, rec, len, BPF_RB_NO_WAKEUP) ? -1 : 0;
}

/*
 * A greenlet's Python frames are a list of its own, which ends at the function that the greenlet
 * began with. The library's code has called that function. What lies above on the stack belongs to
 * other greenlets, whose frames are copied there and away.
 */
static __always_inline bool starts_here(const struct sf_lang_walk *w)
{
	return w->language == SF_LANG_PYTHON && !w->python.frame && w->stop == SF_STOP_COMPLETE;
}

/*
 * Notes a frame, before it is recorded, if its pc lies in the evaluation loop of a runtime. Returns
 * 1 if it is the first frame of its stack. Global, as only such files need it.
 */
__noinline int lang_see(u32 slot, u32 found, u64 offset)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	u32 i, n;

	if (!s)
		return 0;
	if (vma_at(s, found)->flags & SF_MODULE_STARTS)
		return starts_here(&s->lang);
	d = lang_of(vma_at(s, found));
	n = d ? d->nloops : 0;
	s->lang.seen = found;
	for (i = 0; i < SF_LANG_LOOPS; i++) {
		if (i >= n || offset - d->loops[i].start < d->loops[i].size)
			break;
	}
	if (!d || i >= n || i >= SF_LANG_LOOPS)
		return 0;
	s->lang_at = LANG_LOOP;
	s->lang.first = s->n;
	s->lang.sp = s->regs.sp;
	if (cfg_note_words) /* the memo does not know what the language's step reads */
		s->log_far = ~0ull;
	return 0;
}

/* Records frames of a language. SF_STEP_GO, a stop, or an enum later. */
__noinline int lang_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_vma *v;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, s->vma_last);
	d = lang_of(v);
	if (d && d->language == SF_LANG_PYTHON)
		return python_step(s, slot, &d->python, v);
	if (d && d->language == SF_LANG_RUBY)
		return LATER_RUBY_STEP;
	if (d && d->language == SF_LANG_PHP)
		return php_step(s, slot, &d->php, v);
	if (d && d->language == SF_LANG_PERL)
		return LATER_PERL_STEP;
	s->lang_at = LANG_NATIVE;
	return SF_STEP_GO;
}

/*
 * As lang_step, with what it leaves to other functions. Inlined, as the stack of BPF is too small
 * for one more function: see enum later.
 */
static __always_inline int lang_next(u32 slot)
{
	int stop = lang_step(slot);

	if (stop == LATER_RUBY_STEP)
		stop = ruby_open(slot);
	if (stop == LATER_RUBY_STEP)
		stop = ruby_step(slot);
	if (stop == LATER_PERL_STEP)
		stop = perl_step(slot);
	if (stop == LATER_PERL_LINE)
		stop = perl_search(slot);
	return stop;
}

/* Whether frames of the language are left. */
static __always_inline bool lang_left(const struct sf_lang_walk *w)
{
	switch (w->language) {
	case SF_LANG_RUBY:
		return w->ruby.cfp;
	case SF_LANG_PHP:
		return w->php.frame;
	case SF_LANG_PERL:
		return w->perl.si;
	default:
		return w->python.frame;
	}
}

/* The languages' functions are not inlined: each has its part of the BPF stack while it runs. */
static int lang_rest(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx, i;
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_vma *v;
	bool ruby;

	if (!s)
		return 1;
	if (s->lang.language == SF_LANG_PHP)
		return !php_rest(s, slot);
	ruby = s->lang.language == SF_LANG_RUBY;
	i = ruby ? s->lang.ruby.vma : s->lang.python.vma;
	v = vma_at(s, i);
	if (v->word != (ruby ? s->lang.ruby.module : s->lang.python.module) || !v->len)
		return 1; /* another mapping took the place */
	d = lang_of(v);
	s->vma_last = i; /* for code_describe */
	if (!d)
		return 1;
	return ruby ? !ruby_rest(s, slot) : !python_rest(s, slot, &d->python, v->delta);
}

/* After the walk: finds the rest of the language's frames, and whether these are all. */
__noinline int lang_finish(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (!s)
		return 0;
	/* Their frames are the native walk's own. */
	if (s->lang.language == SF_LANG_JAVA || s->lang.language == SF_LANG_JAVASCRIPT) {
		if (s->lang.stop == SF_STOP_COMPLETE)
			s->lang.stop = s->stop;
		return 0;
	}
	if (s->lang.language == SF_LANG_RUBY && s->stop == SF_STOP_ZERO_RA && ruby_top(s))
		s->stop = SF_STOP_COMPLETE;
	if (s->lang.language == SF_LANG_PERL) {
		if (s->lang.stop == SF_STOP_COMPLETE)
			perl_finish(slot);
	} else if (s->lang.stop == SF_STOP_COMPLETE && lang_left(&s->lang)) {
		u64 start = s->lang.language == SF_LANG_PHP ? php_fiber(slot, 0) : 0;

		if (start || s->stop != SF_STOP_COMPLETE || s->lang.language == SF_LANG_RUBY)
			bpf_loop(2 * SF_MAX_USER, lang_rest, &slot, 0);
		if (start)
			php_fiber(slot, start);
	}
	if (s->lang.stop == SF_STOP_COMPLETE && lang_left(&s->lang))
		s->lang.stop = s->stop == SF_STOP_COMPLETE ? SF_STOP_LANG_ANCHOR : s->stop;
	return 0;
}

#endif
