/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of languages, in the same walk as native ones.
 *
 * A frame whose pc lies in the evaluation loop of a runtime (lang_see) stands for frames of its
 * language. Once the native step has found the loop's CFA, lang_next takes the following rounds of
 * the walk: each records the next frames of this activation. Then native unwinding goes on. If a
 * frame cannot be read, only frames of the language are lost, and the loop is shown as a native
 * frame.
 *
 *   LANG_NATIVE --lang_see: a loop--> LANG_LOOP --step--> LANG_INSIDE --lang_end--> LANG_NATIVE
 *
 * Languages whose code is made at run time are asked about code without a row instead. A language
 * is a folder, lang/<name>/, whose <name>.bpf.h defines some of these functions, and says which in
 * LANG_HAS (lang/defaults.h has the others):
 *
 *   LANG_MET      met      a mapping of a runtime's file came into slot i of vmas[]
 *   LANG_UNROWED  unrowed  code without a row: NOT_MINE, LATER(), SF_STEP_GO or a stop
 *                 later    what unrowed has left to do; other values are returned as they are
 *   LANG_JITS     jits     whether the language itself steps through its code made at run time
 *   LANG_STEP     step     the next frames of the activation, by frame_push: SF_STEP_GO or a stop
 *                 left     whether frames of the language are left
 *   LANG_STARTS   starts   whether a file with SF_MODULE_STARTS has the first frame of this stack
 *   LANG_GLUES    glues    whether code without a row that calls the loop is the runtime's own
 *   LANG_MISSED   missed   no frame of any language was met, although a runtime was, or the walk
 *                          broke off
 *   LANG_FINISH   finish   the walk is over: the frames that are left
 *
 * later comes with LANG_UNROWED, left with LANG_STEP.
 *
 * step is called with sf_scratch.lang_at LANG_LOOP first: vma_last is the loop's mapping, regs.sp
 * the loop's CFA, lang.first the index of the loop's frame. It sets lang_at to LANG_NATIVE. If
 * there are frames, it keeps the loop's frame in lang.word, cuts the stack there (n = lang.first),
 * and sets lang_at to LANG_INSIDE: it is called again until it returns lang_done(). Which frames
 * belong to an activation says a mark in the frame, or its address (python_in_loop).
 *
 * Languages of which no runtime was met are left out (cfg_languages): frames of their loops are
 * native ones.
 *
 * All state is in the scratch (struct sf_lang_walk). unwind_next and unwind_user call step and
 * finish directly, so that only one of these functions is on the BPF stack at a time.
 */
#ifndef SFBPF_LANG_BPF_H
#define SFBPF_LANG_BPF_H

#include "lang/code.bpf.h"
#include "core/memory.bpf.h"
#include "core/space.bpf.h"

#define LANGUAGE_HEADER(name) <lang/name/name.bpf.h>
#include "border/languages.def"
#undef LANGUAGE_HEADER

/*
 * Whether the language is walked: user space has met a runtime of it. Of a language that is not,
 * the verifier (6.8 and later) does not even look at the functions.
 */
static __always_inline bool lang_on(u32 language)
{
	return cfg_languages >> (language & 31) & 1;
}

static __always_inline void lang_met(u32 slot, u32 i)
{
#define LANGUAGE(number, id, name, frame_type) \
	if (lang_on(number))                   \
		name##_met(slot, i);
#include "border/languages.def"
#undef LANGUAGE
}

static __always_inline bool lang_starts(const struct sf_lang_walk *w)
{
#define LANGUAGE(number, id, name, frame_type)              \
	if (lang_on(number) && w->language == SF_LANG_##id) \
		return name##_starts(w);
#include "border/languages.def"
#undef LANGUAGE
	return false;
}

/*
 * Notes a frame, before it is recorded, if its pc lies in the evaluation loop of a runtime. Returns
 * 1 if it is the first frame of its stack. A global function, as most files do not need it.
 */
__noinline int lang_see(u32 slot, u32 found, u64 offset)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_lang *d;
	u32 i, n;

	if (!s)
		return 0;
	if (vma_at(s, found)->flags & SF_MODULE_STARTS)
		return lang_starts(&s->lang);
	d = lang_of(vma_at(s, found));
	if (d && !lang_on(d->language))
		return 0;
	n = d ? d->nloops : 0;
	s->lang.seen = found;
	for (i = 0; i < SF_LANG_LOOPS; i++) {
		if (i >= n || offset - d->loops[i].start < d->loops[i].size)
			break;
	}
	if (!d || i >= n || i >= SF_LANG_LOOPS)
		return 0;
	s->lang_at = LANG_LOOP;
	s->lang.loop = d->language;
	s->lang.first = s->n;
	s->lang.sp = s->regs.sp;
	if (cfg_note_words) /* the memo does not know what the language's step reads */
		s->log_far = ~0ull;
	return 0;
}

/* Records frames of the language whose loop is in hand. SF_STEP_GO or a stop. */
static __always_inline int lang_next(struct sf_scratch *s, u32 slot)
{
	u32 language = s->lang.loop;

#define LANGUAGE(number, id, name, frame_type)           \
	if (lang_on(number) && language == SF_LANG_##id) \
		return name##_step(slot);
#include "border/languages.def"
#undef LANGUAGE
	return SF_STOP_NO_ROW;
}

/* Code without a row, in slot `found` of vmas[]. NOT_MINE: no language's. */
static __always_inline int lang_unrowed(struct sf_scratch *s, u32 slot, u32 found)
{
	int stop;

#define LANGUAGE(number, id, name, frame_type)                              \
	stop = lang_on(number) ? name##_unrowed(s, slot, found) : NOT_MINE; \
	if (stop != NOT_MINE)                                               \
		return stop;
#include "border/languages.def"
#undef LANGUAGE
	return NOT_MINE;
}

/* What a language has left to do (LATER). Other values are returned as they are. */
static __always_inline int lang_later(u32 slot, int what)
{
#define LANGUAGE(number, id, name, frame_type)                                          \
	if (lang_on(number) && what <= LATER(number, 0) && what > LATER(number + 1, 0)) \
		return name##_later(slot, what);
#include "border/languages.def"
#undef LANGUAGE
	return what;
}

static __always_inline bool lang_jits(const struct sf_lang_walk *w)
{
#define LANGUAGE(number, id, name, frame_type) \
	if (lang_on(number) && name##_jits(w)) \
		return true;
#include "border/languages.def"
#undef LANGUAGE
	return false;
}

/* Whether the code without a row that was recorded as frame n is the runtime's own. */
static __always_inline bool lang_glues(const struct sf_lang_walk *w, u32 n)
{
	if (cfg_native || n != w->end)
		return false;
#define LANGUAGE(number, id, name, frame_type)              \
	if (lang_on(number) && w->language == SF_LANG_##id) \
		return name##_glues();
#include "border/languages.def"
#undef LANGUAGE
	return false;
}

static __always_inline bool lang_left(const struct sf_lang_walk *w)
{
#define LANGUAGE(number, id, name, frame_type)              \
	if (lang_on(number) && w->language == SF_LANG_##id) \
		return name##_left(w);
#include "border/languages.def"
#undef LANGUAGE
	return false;
}

/* Ends the walk: finds the rest of the language's frames, and whether these are all. */
static __always_inline void lang_finish(struct sf_scratch *s, u32 slot)
{
	u32 language;

	if (!s->lang.language &&
	    (s->stop == SF_STOP_JIT || s->stop == SF_STOP_NO_ROW || s->lang.seen >= 0)) {
#define LANGUAGE(number, id, name, frame_type)    \
	if (lang_on(number) && !s->lang.language) \
		name##_missed(s, slot);
#include "border/languages.def"
#undef LANGUAGE
	}
	language = s->lang.language;
	if (!language)
		return;
#define LANGUAGE(number, id, name, frame_type)           \
	if (lang_on(number) && language == SF_LANG_##id) \
		name##_finish(slot);
#include "border/languages.def"
#undef LANGUAGE
	if (s->lang.stop == SF_STOP_COMPLETE && lang_left(&s->lang))
		s->lang.stop = s->stop == SF_STOP_COMPLETE ? SF_STOP_LANG_ANCHOR : s->stop;
}

#endif
