/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * HotSpot in an address space: its libjvm, its heaps of code, and the blobs of code in these.
 */
#ifndef SFBPF_LANG_JAVA_BLOB_BPF_H
#define SFBPF_LANG_JAVA_BLOB_BPF_H

#include "lang/java/java_scopes.bpf.h"
#include "core/space.bpf.h"

enum { JAVA_UNKNOWN, JAVA_NONE, JAVA_KNOWN }; /* sf_java_begin.state */
enum { JAVA_STUB, JAVA_COMPILED, JAVA_INTERPRETED, JAVA_GAP };

#define JAVA_FAILURES  16	 /* scopes that could not be read, in a sample */
#define JAVA_TRIES     16	 /* searches for libjvm in one address space; no more after these */
#define JAVA_HOPS      16	 /* hops in the segment map */
#define JAVA_FREE      0xff	 /* a free segment in the segment map */
#define JAVA_FRAME_MAX (1 << 20) /* bytes of a frame */
#define JAVA_BLOB      128	 /* bytes of a blob that are read, from 11 on */

/* Registers of HotSpot's code: the JavaThread, the bytecode that the interpreter executes */
#if defined(__TARGET_ARCH_x86)
#define JAVA_THREAD 15
#define JAVA_BCP    13
#elif defined(__TARGET_ARCH_arm64)
#define JAVA_THREAD 28
#define JAVA_BCP    22
#endif

#define LATER_JAVA_FILE	  LATER(SF_LANG_JAVA, 0) /* java_file, then java_frame again */
#define LATER_JAVA_SCOPES LATER(SF_LANG_JAVA, 1) /* java_scopes, then java_frame again */
#define LATER_JAVA_CHUNK  LATER(SF_LANG_JAVA, 2) /* java_chunk */

/* ---- The runtime of the address space ---- */

/*
 * The key is MM_ID modulo SF_RUNTIMES. Address spaces with the same key replace each other's entry,
 * and find their runtime again. A hash, because its values are replaced as a whole.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_RUNTIMES);
	__type(key, u32);
	__type(value, struct sf_runtime);
} runtimes SEC(".maps");

static __always_inline void java_store(struct sf_scratch *s, const struct sf_runtime *rt)
{
	u32 key = rt->space & (SF_RUNTIMES - 1);

	bpf_map_update_elem(&runtimes, &key, rt, BPF_ANY);
}

/* Notes the address space's libjvm, whose code is mapped as s->vmas[i]. Always 0. */
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
	s->lang.begin.java.state = JAVA_UNKNOWN;
	return 0;
}

/* Finds libjvm by the JavaThread. 0, -1, or LATER_JAVA_FILE. */
static __always_inline int java_by_thread(struct sf_scratch *s)
{
	struct sf_runtime *rt = &s->lang.java.rt;
	struct sf_vma *v = &s->lang.other;
	const struct sf_java *d;
	u64 vtable;

	if (!(s->regs.flags & SF_REGS_FULL) || user_u64(s->regs.r[JAVA_THREAD], &vtable) || !vtable)
		return -1;
	if (s->lang.begin.java.file != vtable) {
		s->lang.begin.java.file = vtable;
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
	s->lang.begin.java.state = JAVA_NONE;
	id = MM_ID(s->mm);
	key = id & (SF_RUNTIMES - 1);
	have = bpf_map_lookup_elem(&runtimes, &key);
	if (have && have->space == id)
		*rt = *have;
	else
		__builtin_memset(rt, 0, sizeof(*rt));
	d = rt->module ? java_lang(rt->module) : NULL;
	if (d && rt->nheaps && rt->space == id) {
		s->lang.begin.java.state = JAVA_KNOWN;
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
			s->lang.begin.java.state = JAVA_UNKNOWN;
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
	s->lang.begin.java.state = JAVA_KNOWN;
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
 * The kind of the blobs with a name. JAVA_GAP: the stubs of continuations, one of which frames of a
 * virtual thread return to that went on after a pause (java_chunk.bpf.h).
 */
static __always_inline u32 java_kind(struct sf_lang_walk *w, u64 name)
{
	struct sf_java_walk *j = &w->java;
	u64 text, more = 0;

	if (name == w->begin.java.name)
		return j->kind;
	if (user_u64(name, &text))
		return JAVA_STUB;
	w->begin.java.name = name;
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
	j->kind_here = java_kind(w, OBJECT64(w, d->blob_name));
	j->words = OBJECT32(w, d->blob_frame_size);
	j->blob = blob;
	j->code = d->code_is_offset ? blob + OBJECT32(w, d->blob_code) : OBJECT64(w, d->blob_code);
	j->complete = j->code;
	j->complete += d->complete_bytes == 2 ? (u16)OBJECT32(w, d->blob_complete)
					      : OBJECT32(w, d->blob_complete);
	j->method = OBJECT64(w, d->nmethod_method);
	return 0;
}

/* ---- Steps, for both architectures ---- */

/*
 * Steps to the caller, whose sp is above the frame's. It may be equal in the innermost frame, if
 * the return address is in a register.
 */
static __always_inline int java_caller(struct sf_regs *r, u64 ra, u64 sp, u64 fp)
{
	if (sp < r->sp || (sp == r->sp && (r->flags & SF_REGS_RA)))
		return SF_STOP_BAD_CFA;
	ra = STEP_RA(r, ra);
	r->pc = ra;
	r->sp = sp;
	r->fp = fp;
	r->flags = SF_REGS_RA;
	return ra ? SF_STEP_GO : SF_STOP_ZERO_RA;
}

/*
 * What is there of the innermost frame: all; the return address alone; that and the saved frame
 * pointer; all but the saved frame pointer
 */
enum { FRAME_WHOLE, FRAME_RA, FRAME_PUSHED, FRAME_NO_FP };

#endif
