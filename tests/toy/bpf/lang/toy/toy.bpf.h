/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Frames of Toy: a list that begins at one pointer. */
#ifndef SFBPF_LANG_TOY_BPF_H
#define SFBPF_LANG_TOY_BPF_H

#include "core/fold.bpf.h"
#include "core/memory.bpf.h"
#include "core/space.bpf.h"
#include "lang/code.bpf.h"

#define TOY_NAME 24 /* bytes of the names of a function and of its file */
#define TOY_CODE 56 /* both lengths, in two bytes of eight, and both names */

/* A code_describe. */
__noinline int toy_describe(u32 slot, u32 id)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_code *rec;

	if (!s || !code_runtime(s, SF_LANG_TOY))
		return -1;
	rec = &s->lang.rec;
	__builtin_memcpy(rec->name, s->lang.object + 8, TOY_NAME);
	__builtin_memcpy(rec->file, s->lang.object + 8 + TOY_NAME, TOY_NAME);
	/* The program wrote the lengths, so they may be wrong. */
	rec->name_len = s->lang.object[0] < TOY_NAME ? s->lang.object[0] : TOY_NAME;
	rec->file_len = s->lang.object[1] < TOY_NAME ? s->lang.object[1] : TOY_NAME;
	rec->name_unit = rec->file_unit = SF_CODE_UTF8;
	rec->first_line = rec->lines_len = 0;
	return code_send(s, id);
}

/* Finds the innermost frame, once for each stack. */
static __always_inline void toy_begin(struct sf_scratch *s, const struct sf_lang *d,
				      const struct sf_vma *v)
{
	struct sf_lang_walk *w = &s->lang;

	if (w->language == SF_LANG_TOY && w->toy.module == v->word)
		return;
	w->language = SF_LANG_TOY;
	w->stop = SF_STOP_COMPLETE;
	w->toy.module = v->word;
	if (user_u64(d->toy.top - v->delta, &w->toy.frame)) {
		w->toy.frame = 0;
		w->stop = SF_STOP_LANG_FAULT;
	}
}

/* Records the next frame. SF_STEP_GO or a stop. */
static __always_inline int toy_frame(struct sf_scratch *s, u32 slot)
{
	struct sf_lang_walk *w = &s->lang;
	struct sf_toy_walk *t = &w->toy;

	if (copy_user(t->head, sizeof(t->head), t->frame) ||
	    copy_user(w->object, TOY_CODE, t->head[1]))
		return SF_STOP_LANG_FAULT;
	w->code = t->head[1];
	w->cookie = 0;
	for (u32 i = 8; i < TOY_CODE; i += 8)
		FOLD(w->cookie, *(u64 *)(w->object + i), FOLD_MUL1);
	w->id = 0; /* none is known for this code object yet */
	if (!frame_push(s, lang_word(s, slot, SF_LANG_TOY, toy_describe, (u32)t->head[2])))
		return SF_STOP_DEPTH;
	t->frame = t->head[0];
	return SF_STEP_GO;
}

__noinline int toy_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	struct sf_vma *v;
	u32 first;
	int stop;

	if (!s)
		return SF_STOP_NO_ROW;
	v = vma_at(s, s->vma_last);
	d = lang_of(v);
	if (!d)
		return SF_STOP_NO_ROW;
	first = s->lang.first;
	if (s->lang_at == LANG_LOOP) {
		s->lang_at = LANG_NATIVE;
		toy_begin(s, d, v);
		if (!s->lang.toy.frame)
			return SF_STEP_GO;
		s->lang.word = *frame_at(s, first);
		s->n = first;
		s->lang_at = LANG_INSIDE;
	}
	stop = s->lang.toy.frame ? toy_frame(s, slot) : SF_STOP_LANG_FAULT;
	if (stop == SF_STOP_DEPTH)
		return stop;
	if (stop != SF_STEP_GO) {
		s->lang.stop = stop;
		s->lang.toy.frame = 0;
		return lang_done(s);
	}
	return s->lang.toy.head[2] >> 32 ? lang_done(s) : SF_STEP_GO;
}

static __always_inline bool toy_left(const struct sf_lang_walk *w)
{
	return w->toy.frame;
}

#define LANG	 toy
#define LANG_HAS LANG_STEP
#include "lang/defaults.h"

#endif
