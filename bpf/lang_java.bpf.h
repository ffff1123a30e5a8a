/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Frames of Java in HotSpot (struct sf_java, made by userspace/lang/java.c).
 *
 * HotSpot's code is in anonymous memory, in up to three heaps. A heap's segment map leads from a pc
 * to the CodeBlob that it is in. A blob of compiled code has the size of its frames and its method.
 * An interpreted frame is found by rbp, and has its method. Stubs have either, or nothing but the
 * return address. They are stepped over, and shown with --native only.
 *
 * The address space's libjvm is found when the unwinder meets its code, or by r15, which holds the
 * JavaThread in all code of Java: its first word points to a table in libjvm's data.
 */
#ifndef SFBPF_LANG_JAVA_BPF_H
#define SFBPF_LANG_JAVA_BPF_H

#include "lang_code.bpf.h"
#include "lang_java_scopes.bpf.h"
#include "space.bpf.h"

#ifdef __TARGET_ARCH_x86

enum { JAVA_UNKNOWN, JAVA_NONE, JAVA_KNOWN }; /* sf_java_walk.state */
enum { JAVA_STUB, JAVA_COMPILED, JAVA_INTERPRETED, JAVA_GAP };

#define JAVA_FAILURES  16	 /* scopes that could not be read, in a sample */
#define JAVA_TRIES     16	 /* in an address space with code that is not Java's */
#define JAVA_HOPS      16	 /* in the segment map */
#define JAVA_FREE      0xff	 /* in the segment map */
#define JAVA_FRAME_MAX (1 << 20) /* bytes of a frame */
#define JAVA_BLOB      128	 /* bytes of a blob that are read, from 11 on */
#define JAVA_THREAD    15	 /* r15 */
#define JAVA_BCP       13	 /* r13: the bytecode that the interpreter executes */

/* ---- The runtime of the address space ---- */

static __always_inline void java_store(struct sf_scratch *s, const struct sf_runtime *rt)
{
	u32 key = rt->space & (SF_RUNTIMES - 1);

	bpf_map_update_elem(&runtimes, &key, rt, BPF_ANY);
}

/* Notes the address space's libjvm, whose code is mapped as slot i of s->vmas. */
static __always_inline int java_note(u32 slot, u32 i)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_runtime *rt;
	const struct sf_java *d;
	struct sf_vma *v;

	if (!s)
		return 0;
	v = vma_at(s, i);
	d = java_lang(v->word >> SF_FRAME_MODULE_SHIFT);
	if (!d)
		return 0;
	rt = &s->lang.java.rt;
	__builtin_memset(rt, 0, sizeof(*rt));
	rt->space = MM_ID(s->mm);
	rt->module = v->word >> SF_FRAME_MODULE_SHIFT;
	rt->bias = -v->delta - d->code_skew;
	java_store(s, rt);
	s->lang.java.state = JAVA_UNKNOWN;
	return 0;
}

/* Finds libjvm by the JavaThread in r15. 0, -1, or LATER_JAVA_FILE. */
static __always_inline int java_by_thread(struct sf_scratch *s)
{
	struct sf_runtime *rt = &s->lang.java.rt;
	struct sf_vma *v = &s->lang.java.file;
	const struct sf_java *d;
	u64 table;

	if (!(s->regs.flags & SF_REGS_FULL) || user_u64(s->regs.r[JAVA_THREAD], &table) || !table)
		return -1;
	if (s->lang.java.file_addr != table) {
		s->lang.java.file_addr = table;
		return LATER_JAVA_FILE;
	}
	if (v->state == SF_MOD_LOADING || v->state == SF_MOD_RETRY) {
		if (!s->cause)
			s->cause = SF_STOP_NOT_LOADED;
		rt->tries = 0;
		return -1;
	}
	d = v->state == SF_MOD_READY ? java_lang(v->word >> SF_FRAME_MODULE_SHIFT) : NULL;
	if (!d)
		return -1;
	rt->module = v->word >> SF_FRAME_MODULE_SHIFT;
	rt->bias = -v->delta - d->data_skew;
	return 0;
}

/* Reads where the heaps of code are. They do not move. 0 or -1. */
static __always_inline int java_heaps(struct sf_runtime *rt, const struct sf_java *d)
{
	u64 list, data = rt->bias + d->heaps, heap;
	u32 i, n = 1;

	if (d->list_data &&
	    (user_u64(data, &list) || copy_user(&n, sizeof(n), list + d->list_len) ||
	     user_u64(list + d->list_data, &data)))
		return -1;
	for (i = 0; i < SF_JAVA_HEAPS; i++) {
		if (i >= n)
			break;
		if (user_u64(data + 8 * i, &heap) ||
		    copy_user(&rt->heaps[i].low, 16, heap + d->heap_memory) ||
		    user_u64(heap + d->heap_segmap, &rt->heaps[i].segmap) ||
		    copy_user(&rt->shift, sizeof(rt->shift), heap + d->heap_shift))
			return -1;
	}
	rt->nheaps = i;
	rt->shift &= 31;
	return n ? 0 : -1;
}

/* Finds the runtime of s->mm. 0, -1, or LATER_JAVA_FILE. */
__noinline int java_enter(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_java *d;
	struct sf_runtime *rt, *have;
	int err;
	u32 key;
	u64 id;

	if (!s)
		return -1;
	rt = &s->lang.java.rt;
	s->lang.java.state = JAVA_NONE;
	id = MM_ID(s->mm);
	key = id & (SF_RUNTIMES - 1);
	have = bpf_map_lookup_elem(&runtimes, &key);
	if (have && have->space == id)
		*rt = *have;
	else
		__builtin_memset(rt, 0, sizeof(*rt));
	d = rt->module ? java_lang(rt->module) : NULL;
	if (d && rt->nheaps && rt->space == id) {
		s->lang.java.state = JAVA_KNOWN;
		return 0;
	}
	rt->space = id;
	if (!d) {
		rt->module = rt->nheaps = 0;
		if (rt->tries >= JAVA_TRIES)
			return -1;
		rt->tries++;
		err = java_by_thread(s);
		if (err == LATER_JAVA_FILE) {
			s->lang.java.state = JAVA_UNKNOWN;
			return err;
		}
		if (err) {
			java_store(s, rt);
			return -1;
		}
		d = java_lang(rt->module);
	}
	if (!d || java_heaps(rt, d))
		return -1;
	java_store(s, rt);
	s->lang.java.state = JAVA_KNOWN;
	return 0;
}

/* ---- Blobs ---- */

static __always_inline bool java_in_code(const struct sf_runtime *rt, u64 addr)
{
	bool in = false;

	for (u32 i = 0; i < SF_JAVA_HEAPS; i++)
		in |= addr - rt->heaps[i].low < rt->heaps[i].high - rt->heaps[i].low;
	return in;
}

/*
 * A virtual thread that goes on after a pause has its innermost frames on the stack. The return
 * address below them is in the stubs of continuations, and the others are still in the heap.
 */
static __always_inline u32 java_kind(struct sf_java_walk *j, u64 name)
{
	u64 text, more = 0;

	if (name == j->name)
		return j->kind;
	if (user_u64(name, &text))
		return JAVA_STUB;
	j->name = name;
	j->kind = JAVA_STUB;
	if (text == 0x00646f6874656d6eull || text == 0x6e2065766974616eull) /* nmethod, native n */
		j->kind = JAVA_COMPILED;
	else if (text == 0x6572707265746e49ull) /* Interpre */
		j->kind = JAVA_INTERPRETED;
	else if (text == 0x74756f5262757453ull && !user_u64(name + 14, &more) &&
		 more == 0x61756e69746e6f63ull) /* StubRoutines (continua */
		j->kind = JAVA_GAP;
	return j->kind;
}

/* Reads the blob that holds an address: to w->object and its fields to the walk. 0 or -1. */
__noinline int java_blob(u32 slot, u64 at)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_lang_walk *w;
	const struct sf_java *d;
	struct sf_java_walk *j;
	u64 low = 0, map = 0, seg, blob;
	u32 hop, len;

	if (!s)
		return -1;
	w = &s->lang;
	j = &w->java;
	d = java_lang(j->rt.module);
	for (u32 i = 0; i < SF_JAVA_HEAPS; i++) {
		if (at - j->rt.heaps[i].low < j->rt.heaps[i].high - j->rt.heaps[i].low) {
			low = j->rt.heaps[i].low;
			map = j->rt.heaps[i].segmap;
		}
	}
	if (!d || !low)
		return -1;
	seg = (at - low) >> (j->rt.shift & 31);
	for (hop = 0; hop < JAVA_HOPS; hop++) {
		u8 tag = JAVA_FREE;

		if (copy_user(&tag, 1, map + seg) || tag == JAVA_FREE || tag > seg)
			return -1;
		if (!tag)
			break;
		seg -= tag;
	}
	blob = low + (seg << (j->rt.shift & 31)) + d->block_bytes;
	len = d->scopes_is_offset ? SF_JAVA_BLOB : JAVA_BLOB;
	if (hop == JAVA_HOPS || copy_user(w->object, len, blob))
		return -1;
	j->kind_here = java_kind(j, OBJECT64(w, d->blob_name));
	j->words = OBJECT32(w, d->blob_frame_size);
	j->blob = blob;
	j->code = d->code_is_offset ? blob + OBJECT32(w, d->blob_code) : OBJECT64(w, d->blob_code);
	j->complete = j->code;
	j->complete += d->complete_bytes == 2 ? (u16)OBJECT32(w, d->blob_complete)
					      : OBJECT32(w, d->blob_complete);
	j->method = OBJECT64(w, d->nmethod_method);
	return 0;
}

/* ---- Steps ---- */

static __always_inline int java_caller(struct sf_regs *r, u64 ra, u64 sp, u64 fp)
{
	if (sp <= r->sp)
		return SF_STOP_BAD_CFA;
	r->pc = ra;
	r->sp = sp;
	r->fp = fp;
	r->flags = SF_REGS_RA;
	return ra ? SF_STEP_GO : SF_STOP_ZERO_RA;
}

/* How much of its frame the code has made, or has left */
enum { FRAME_WHOLE, FRAME_RA, FRAME_PUSHED, FRAME_NO_FP };

/*
 * Prologues: [stack bang] push rbp; sub rsp (C1, C2), or sub rsp; mov rbp, [rsp + n] (C2).
 * Epilogue: add rsp; pop rbp; a safepoint poll; ret.
 */
static __always_inline u32 java_made(const struct sf_java_walk *j, u64 pc)
{
	u8 b[16]; /* b[8]: at pc */
	u32 next;

	if (copy_user(b, sizeof(b), pc - 8))
		return FRAME_WHOLE;
	next = b[8] | b[9] << 8 | b[10] << 16;
	if (pc < j->complete) {
		if (next == 0x7f8141 ||
		    (b[0] == 0x41 && b[1] == 0x81 && b[2] == 0x7f)) /* entry barrier */
			return FRAME_WHOLE;
		if (b[7] == 0x55)
			return FRAME_PUSHED;
		if (b[4] == 0x48 && b[5] == 0x83 && b[6] == 0xec)
			return b[3] == 0x55 ? FRAME_WHOLE : FRAME_NO_FP;
		if (b[1] == 0x48 && b[2] == 0x81 && b[3] == 0xec)
			return b[0] == 0x55 ? FRAME_WHOLE : FRAME_NO_FP;
		return FRAME_RA;
	}
	if (b[8] == 0x5d) /* pop rbp */
		return FRAME_PUSHED;
	if (b[8] == 0xc3 || (b[8] == 0x41 && b[9] == 0x85 && b[11] == 0xc3))
		return FRAME_RA;
	/* cmp rsp, [r15 + poll]; ja. To 16: test [poll], eax, or its address from r15 first */
	if (b[7] == 0x5d &&
	    ((next | 0xc00000) == 0xe73b49 || next == 0x978b4d || b[8] == 0x85 || b[8] == 0xc5))
		return FRAME_RA;
	if (b[8] == 0x0f && b[9] == 0x87 &&
	    ((b[1] == 0x49 && b[2] == 0x3b && b[3] == 0xa7) ||
	     (b[4] == 0x49 && b[5] == 0x3b && b[6] == 0x67)))
		return FRAME_RA;
	return FRAME_WHOLE;
}

/* Code with frames of a known size: the caller's rbp and the return address are its last words. */
static __always_inline int java_sized(struct sf_scratch *s, u32 made)
{
	struct sf_java_walk *j = &s->lang.java;
	struct sf_regs *r = &s->regs;
	u64 top = r->sp + 8ull * j->words, pair[2];

	if (made == FRAME_RA)
		top = r->sp + 8;
	else if (made == FRAME_PUSHED)
		top = r->sp + 16;
	if (copy_user(pair, sizeof(pair), top - 16))
		return SF_STOP_READ_FAULT;
	return java_caller(r, pair[1], top,
			   made == FRAME_WHOLE || made == FRAME_PUSHED ? pair[0] : r->fp);
}

/* Stubs without a size: those that call out set rbp, the others have only the return address. */
static __always_inline int java_stub(struct sf_scratch *s)
{
	struct sf_regs *r = &s->regs;
	u64 pair[2];

	if (!(r->flags & SF_REGS_RA)) {
		if (user_u64(r->sp, &pair[0]))
			return SF_STOP_READ_FAULT;
		if (java_in_code(&s->lang.java.rt, pair[0]))
			return java_caller(r, pair[0], r->sp + 8, r->fp);
	}
	if (r->fp - r->sp > JAVA_FRAME_MAX)
		return SF_STOP_JIT;
	if (copy_user(pair, sizeof(pair), r->fp))
		return SF_STOP_READ_FAULT;
	return java_caller(r, pair[1], r->fp + 16, pair[0]);
}

/* The index of a bytecode, which is its position. 0: it is not in the method in hand. */
static __always_inline u32 java_bci(const struct sf_lang_walk *w, const struct sf_java *d, u64 bcp)
{
	u64 bci = bcp - w->cookie - d->const_bytes;

	return bci < 0x10000 ? bci : 0;
}

/* fp - 24: method, last sp, the caller's sp, the caller's rbp, the return address */
static __always_inline int java_interpreted(struct sf_scratch *s, const struct sf_java *d,
					    bool *ret_named, u32 *ret_position)
{
	struct sf_regs *r = &s->regs;
	u64 f[5], top, bcp = r->r[JAVA_BCP];

	*ret_named = false;
	/* At the entry of a method, its frame is not there yet. */
	if (!(r->flags & SF_REGS_RA) && !user_u64(r->sp, &top) &&
	    java_in_code(&s->lang.java.rt, top)) {
		*ret_named = !java_method(&s->lang, d, r->bx);
		return java_caller(r, top, r->sp + 8, r->fp);
	}
	if (r->fp - r->sp > JAVA_FRAME_MAX)
		return SF_STOP_JIT;
	if (copy_user(f, sizeof(f), r->fp - 24))
		return SF_STOP_READ_FAULT;
	*ret_named = !java_method(&s->lang, d, f[0]);
	if (cfg_lines && (r->flags & SF_REGS_RA) && user_u64(r->fp - d->bcp_below, &bcp))
		bcp = 0;
	*ret_position = java_bci(&s->lang, d, bcp);
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

	if (!d->pcs || made != FRAME_WHOLE || at < j->complete || j->failed >= JAVA_FAILURES)
		return false;
	FOLD(h, OBJECT64(w, d->immutable ? d->immutable : d->scopes), FOLD_MUL1);
	FOLD(h, j->complete, FOLD_MUL2);
	FOLD(h, j->words, FOLD_MUL1);
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
		word = lang_word(s, slot, SF_LANG_JAVA, position);
	else if (s->lang.java.kind_here != JAVA_STUB)
		word = SF_FRAME_LANG_WORD(SF_LANG_JAVA, 0, 0);
	else if (!cfg_native && stop == SF_STEP_GO)
		return stop;
	return pc_record(s, word);
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
	if (j->state == JAVA_UNKNOWN && java_enter(slot) == LATER_JAVA_FILE)
		return LATER_JAVA_FILE;
	if (j->state != JAVA_KNOWN || java_blob(slot, at))
		return NOT_MINE;
	d = java_lang(j->rt.module);
	if (!d)
		return NOT_MINE;
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	if (s->lang.language != SF_LANG_JAVA)
		s->lang.stop = SF_STOP_COMPLETE;
	s->lang.language = SF_LANG_JAVA;
	if (j->kind_here == JAVA_INTERPRETED) {
		stop = java_interpreted(s, d, &named, &position);
	} else {
		made = flags & SF_REGS_RA ? FRAME_WHOLE : java_made(j, s->regs.pc);
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
	if (j->kind_here == JAVA_GAP)
		s->lang.stop = SF_STOP_LANG_ANCHOR;
	if (stop != SF_STEP_GO)
		s->lang.stop = stop;
	return stop;
}

#else

static __always_inline int java_note(u32 slot, u32 i)
{
	return 0;
}

static __always_inline int java_frame(u32 slot)
{
	return NOT_MINE;
}

static __always_inline int java_describe(struct sf_lang_walk *w)
{
	return -1;
}

static __always_inline int java_scopes(u32 slot)
{
	return 0;
}

#endif
#endif
