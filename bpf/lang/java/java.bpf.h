/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of Java in HotSpot (struct sf_java, made by userspace/languages/java.c).
 *
 * HotSpot's code is in anonymous memory, in up to three heaps. A heap's segment map leads from a pc
 * to the CodeBlob that it is in. A blob of compiled code has the size of its frames and its method.
 * An interpreted frame is found by the frame pointer, and has its method. Stubs have either, or
 * nothing but the return address. They are stepped over, and shown with --native only.
 *
 * The address space's libjvm is found when the unwinder meets its code, or by the register that
 * holds the JavaThread in all code of Java: its first word points to a table in libjvm's data.
 */
#ifndef SFBPF_LANG_JAVA_BPF_H
#define SFBPF_LANG_JAVA_BPF_H

#include "core/file.bpf.h"
#include "lang/code.bpf.h"
#include "lang/java/java_blob.bpf.h"
#include "lang/java/java_chunk.bpf.h"
#include "lang/java/java_scopes.bpf.h"
#if defined(__TARGET_ARCH_x86)
#include "lang/java/java_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "lang/java/java_arm64.bpf.h"
#else
#error "no steps through HotSpot's frames for this architecture"
#endif

/* The index of a bytecode, which is its position. 0: it is not in the method in hand. */
static __always_inline u32 java_bci(const struct sf_lang_walk *w, const struct sf_java *d, u64 bcp)
{
	u64 bci = bcp - w->cookie - d->const_bytes;

	return bci < 0x10000 ? bci : 0;
}

/* fp - 24: method, last sp, the caller's sp, the caller's fp, the return address */
static __always_inline int java_interpreted(struct sf_scratch *s, const struct sf_java *d,
					    bool *ret_named, u32 *ret_position)
{
	struct sf_regs *r = &s->regs;
	u64 f[5], bcp = r->r[JAVA_BCP];

	*ret_named = false;
	if (!(r->flags & SF_REGS_RA) && java_at_entry(s, d, &f[0], &f[4], &f[2])) {
		*ret_named = !java_method(&s->lang, d, f[0]);
		return java_caller(r, f[4], f[2], r->fp);
	}
	if (r->fp - r->sp > JAVA_FRAME_MAX)
		return SF_STOP_JIT;
	if (copy_user(f, sizeof(f), r->fp - 24))
		return SF_STOP_READ_FAULT;
	*ret_named = !java_method(&s->lang, d, f[0]);
	if (cfg_lines && (r->flags & SF_REGS_RA) && user_u64(r->fp - d->bcp_below, &bcp))
		bcp = 0;
	*ret_position = java_bci(&s->lang, d, bcp);
	if (s->lang.begin.java.chunk) {
		if (user_u64(r->fp - d->bcp_below + 8, &f[0]))
			return SF_STOP_READ_FAULT;
		f[2] = java_chunk_sender(&s->lang.java, r->fp, f[2], f[0]);
		f[3] = r->fp + 8 * f[3];
	}
	f[2] = java_sender(f[2], r->fp + 16);
	if (f[2] - r->fp - 16 > JAVA_FRAME_MAX)
		return SF_STOP_JIT;
	return java_caller(r, f[4], f[2], f[3]);
}

/* Whether the compiled code at an address may run methods that it has inlined. */
static __always_inline bool java_inlined(struct sf_lang_walk *w, const struct sf_java *d, u64 at,
					 u32 made)
{
	struct sf_java_walk *j = &w->java;
	u64 h = j->method;

	if (!d->pcs || made != FRAME_WHOLE || at < j->complete ||
	    w->spent.java.failed >= JAVA_FAILURES)
		return false;
	FOLD(h, OBJECT64(w, d->immutable ? d->immutable : d->scopes), FOLD_MUL1);
	FOLD(h, j->complete, FOLD_MUL2);
	FOLD(h, j->words, FOLD_MUL1);
	/* The number of the compilation. What is left may be the same in other code. */
	if (d->nmethod_id && !copy_user(&j->byte, 4, j->blob + d->nmethod_id))
		FOLD(h, j->byte, FOLD_MUL2);
	j->cookie = h;
	return true;
}

/* Records a frame that has one word. */
static __always_inline int java_one(struct sf_scratch *s, u32 slot, bool named, int stop, u64 at,
				    u32 flags, u32 position)
{
	u64 word = SF_FRAME_JIT << SF_FRAME_KIND_SHIFT | (at & SF_FRAME_ADDR_MASK) |
		   (u64)(flags & SF_REGS_RA) << 59;

	if (named)
		word = lang_word(s, slot, SF_LANG_JAVA, java_describe, position);
	else if (s->lang.java.kind_here != JAVA_STUB)
		word = SF_FRAME_LANG_WORD(SF_LANG_JAVA, 0, 0);
	else if (!cfg_native && stop == SF_STEP_GO)
		return stop;
	return pc_record(s, word);
}

/* Completes a step within a chunk. SF_STEP_GO, or LATER_JAVA_CHUNK where its frames end. */
static __always_inline int java_in_chunk(struct sf_scratch *s, int stop)
{
	struct sf_java_walk *j = &s->lang.java;

	if (j->kind_here != JAVA_INTERPRETED)
		s->regs.fp = s->regs.sp - 16 + 8 * s->regs.fp;
	if (s->regs.sp + 16 > j->chunk_end)
		return LATER_JAVA_CHUNK;
	j->chunk_lost = stop != SF_STEP_GO;
	return stop == SF_STEP_GO ? stop : LATER_JAVA_CHUNK;
}

/*
 * Records the frames at s->regs, if they are of Java, and steps to their caller. NOT_MINE,
 * SF_STEP_GO or a stop.
 */
__noinline int java_frame(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_code_pc *e = NULL;
	const struct sf_java *d;
	struct sf_java_walk *j;
	bool named = false;
	u32 flags, made, n, position = 0;
	int stop;
	u64 at;

	if (!s)
		return NOT_MINE;
	j = &s->lang.java;
	flags = s->regs.flags;
	at = s->regs.pc - (flags & SF_REGS_RA);
	if (s->lang.begin.java.state == JAVA_UNKNOWN && java_enter(slot) == LATER_JAVA_FILE)
		return LATER_JAVA_FILE;
	d = s->lang.begin.java.state == JAVA_KNOWN && !java_blob(slot, at) ? java_lang(j->rt.module)
									   : NULL;
	if (!d) {
		j->chunk_lost = s->lang.begin.java.chunk != 0;
		return s->lang.begin.java.chunk ? LATER_JAVA_CHUNK : NOT_MINE;
	}
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	if (s->lang.language != SF_LANG_JAVA)
		s->lang.stop = SF_STOP_COMPLETE;
	s->lang.language = SF_LANG_JAVA;
	if (j->kind_here == JAVA_GAP)
		return LATER_JAVA_CHUNK;
	if (j->kind_here == JAVA_INTERPRETED) {
		stop = java_interpreted(s, d, &named, &position);
	} else {
		made = flags & SF_REGS_RA ? FRAME_WHOLE : java_made(&s->lang, s->regs.pc);
		if (j->kind_here == JAVA_COMPILED && java_inlined(&s->lang, d, at, made)) {
			e = java_known(s, at);
			if (!e)
				return LATER_JAVA_SCOPES;
			n = s->n;
			if (pc_record_all(s, e) != SF_STEP_GO)
				return SF_STOP_DEPTH;
			if (*(volatile const u64 *)&e->at != at) { /* another CPU reused it */
				s->n = n;
				return LATER_JAVA_SCOPES;
			}
		} else if (j->kind_here == JAVA_COMPILED) {
			named = !java_method(&s->lang, d, j->method);
		}
		stop = (s32)j->words > 0 ? java_sized(s, made) : java_stub(s);
	}
	if (!e && java_one(s, slot, named, stop, at, flags, position) != SF_STEP_GO)
		return SF_STOP_DEPTH;
	if (s->lang.begin.java.chunk)
		return java_in_chunk(s, stop);
	if (stop != SF_STEP_GO)
		s->lang.stop = stop;
	return stop;
}

/* ---- What lang.bpf.h calls ---- */

/*
 * Resolves the file that is mapped at s->lang.begin.java.file, as s->lang.other. Its state is
 * SF_MOD_JIT if there is none. Always 0.
 */
__noinline int java_file(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 vma, inode;
	struct sf_vma *v;

	if (!s)
		return 0;
	v = &s->lang.other;
	v->state = SF_MOD_JIT;
	vma = vma_near(slot, s->lang.begin.java.file);
	inode = vma ? vma_inode(vma) : 0;
	if (!inode)
		return 0;
	v->delta = vma_delta(vma);
	vma_file(s, v, vma, inode);
	return 0;
}

static __always_inline void java_met(u32 slot, u32 i)
{
	java_note(slot, i);
}

static __always_inline int java_unrowed(struct sf_scratch *s, u32 slot, u32 found)
{
	return vma_at(s, found)->state == SF_MOD_JIT ? java_frame(slot) : NOT_MINE;
}

static __always_inline int java_later(u32 slot, int what)
{
	if (what == LATER_JAVA_FILE)
		java_file(slot);
	else if (what == LATER_JAVA_SCOPES)
		java_scopes(slot);
	else if (what == LATER_JAVA_CHUNK)
		java_chunk(slot);
	else
		return what;
	return LATER_ROUND;
}

static __always_inline bool java_jits(const struct sf_lang_walk *w)
{
	return w->language == SF_LANG_JAVA;
}

/* The frames are the native walk's own. */
static __always_inline void java_finish(u32 slot)
{
	lang_native_end(slot);
}

#define LANG	 java
#define LANG_HAS (LANG_MET | LANG_UNROWED | LANG_JITS | LANG_FINISH)
#include "lang/defaults.h"

#endif
