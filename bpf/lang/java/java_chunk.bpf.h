/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Virtual threads that go on after a pause, from HotSpot 21 on.
 *
 * A virtual thread that pauses has its frames in an object, a StackChunk. When it goes on, HotSpot
 * copies the innermost frames to the stack of a carrier thread. Their return address is then in a
 * stub, the return barrier, and the others remain in the chunk until the thread returns to them.
 * Frames in a chunk have the layout of frames on the stack, with one difference: a saved frame
 * pointer, and the sp of an interpreted frame's caller, are stored as distances in words.
 *
 * The frame of Continuation.enterSpecial follows the frames on the stack. It has a
 * ContinuationEntry, which leads to the Continuation. The Continuation leads to its newest chunk.
 * The offsets of the fields of these objects are in their classes' descriptions of fields
 * (FieldInfo), and are read once for an address space.
 */
#ifndef SFBPF_LANG_JAVA_CHUNK_BPF_H
#define SFBPF_LANG_JAVA_CHUNK_BPF_H

#include "lang/java/java_blob.bpf.h"
#include "lang/java/java_scopes.bpf.h"

#define JAVA_ENTRY_BYTES 64 /* size of a ContinuationEntry; saved fp and return address follow */
#define JAVA_ENTRY_STEPS 16 /* steps of 16 bytes to it: it follows arguments for the last frame */
#define JAVA_CLASS	 8  /* offset in an object: its class, compressed or not */
#define JAVA_MARK_CLASS	 42 /* shift of the class in an object's first word (compact headers) */
#define JAVA_FIELDS	 32 /* fields of a class */
#define JAVA_FIELDS_LEN	 512
#define JAVA_CHUNKS	 8  /* chunks of a continuation that are looked at, until one has frames */
#define JAVA_CHUNKS_ALL	 64 /* chunks in a sample */
#define JAVA_LEARNS	 16

/* sf_runtime.class_form and oop_form: how objects refer to their class, and to one another */
enum { CLASS_NARROW, CLASS_COMPACT, CLASS_WHOLE, CLASS_FORMS };
enum { OOP_NARROW, OOP_WHOLE, OOP_COLOURED };

/* Flags of a field: for each that is set, one more number follows in its description */
#define JAVA_FIELD_INITIAL   (1 << 0)
#define JAVA_FIELD_GENERIC   (1 << 2)
#define JAVA_FIELD_CONTENDED (1 << 4)

static __always_inline u64 java_class(const struct sf_runtime *rt, u64 object, u32 form)
{
	u64 v;

	if (!object || (object & 7) ||
	    user_u64(object + (form == CLASS_COMPACT ? 0 : JAVA_CLASS), &v))
		return 0;
	if (form == CLASS_WHOLE)
		return v;
	v = form == CLASS_COMPACT ? v >> JAVA_MARK_CLASS : (u32)v;
	return rt->class_base + (v << rt->class_shift);
}

/*
 * The object that a field has; 0: none. OOP_COLOURED is a pointer of ZGC: on x86-64, one of the
 * bits 12 to 15 is set, and the address begins above that bit.
 */
static __always_inline u64 java_oop(const struct sf_runtime *rt, u64 field)
{
	u64 v;

	if (user_u64(field, &v))
		return 0;
	if (rt->oop_form == OOP_NARROW)
		return (u32)v ? rt->oop_base + ((u64)(u32)v << rt->oop_shift) : 0;
	if (rt->oop_form == OOP_WHOLE)
		return v;
#if defined(__TARGET_ARCH_x86)
	return v >> (v & 0x1000 ? 13 : v & 0x2000 ? 14 : v & 0x4000 ? 15 : 16);
#else
	return v >> 16;
#endif
}

/* Notes the field whose description is at j->byte, if it is one of those that are needed. */
static int java_field(u32 round, void *ctx)
{
	struct sf_scratch *s = scratch_of(*(u32 *)ctx);
	const struct sf_java *d;
	struct sf_java_walk *j;
	u32 name, at, flags;
	u64 text;

	if (!s)
		return 1;
	j = &s->lang.java;
	d = java_lang(j->rt.module);
	if (!d || round >= j->high)
		return 1;
	name = java_number(&s->lang, 1);
	java_number(&s->lang, 1); /* its signature */
	at = java_number(&s->lang, 1);
	java_number(&s->lang, 1); /* access flags */
	flags = java_number(&s->lang, 1);
	if (flags & JAVA_FIELD_INITIAL)
		java_number(&s->lang, 1);
	if (flags & JAVA_FIELD_GENERIC)
		java_number(&s->lang, 1);
	if (flags & JAVA_FIELD_CONTENDED)
		java_number(&s->lang, 1);
	if (user_u64(j->pool + d->pool_bytes + 8ull * name, &text) ||
	    copy_user(&j->len, sizeof(j->len), text + d->symbol_len) || j->len > 7 ||
	    user_u64(text + d->symbol_body, &text))
		return 0;
	text &= (1ull << 8 * (j->len & 7)) - 1;
	if (text == 0x6c696174) /* tail */
		j->rt.tail = at;
	else if (text == 0x7073) /* sp */
		j->rt.chunk_sp = at;
	else if (text == 0x646c696863ull) /* child */
		j->rt.child = at;
	else if (text == 0x746e65726170ull) /* parent */
		j->rt.chunk_parent = at;
	else if (text == 0x657a6973) /* size */
		j->rt.chunk_size = at;
	else if (text == 0x6d6f74746f62ull) /* bottom */
		j->rt.chunk_bottom = at;
	else if (text == 0x657a6973677261ull) /* argsize */
		j->rt.chunk_args = at;
	return 0;
}

/* Reads the fields that the class j->holder declares. */
__noinline int java_fields(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_java *d;
	struct sf_java_walk *j;
	u64 list;
	u32 n = 0;

	if (!s)
		return 0;
	j = &s->lang.java;
	d = java_lang(j->rt.module);
	s->lang.win_len = 0;
	if (!d || !j->holder || user_u64(j->holder + d->klass_pool, &j->pool) ||
	    user_u64(j->holder + d->klass_fields, &list) || copy_user(&n, 4, list))
		return 0;
	if (copy_user(s->lang.window, AT_MOST(n, JAVA_FIELDS_LEN), list + 4))
		return 0;
	j->byte = 0;
	j->high = java_number(&s->lang, 1);
	java_number(&s->lang, 1); /* fields that HotSpot adds */
	bpf_loop(JAVA_FIELDS, java_field, &slot, 0);
	return 0;
}

/*
 * Tries one combination: where the entry has the continuation, how objects refer to their class,
 * and whether that class or its superclass declares `tail`. 1: found, or the entry is unreadable.
 */
static int java_try(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	const struct sf_java *d;
	struct sf_java_walk *j;
	struct sf_runtime *rt;
	u64 object;

	if (!s)
		return 1;
	j = &s->lang.java;
	rt = &j->rt;
	d = java_lang(rt->module);
	rt->entry_object = round & 1 ? 16 : 8;
	rt->class_form = round >> 2;
	if (!d || user_u64(j->entry + rt->entry_object, &object))
		return 1;
	j->holder = java_class(rt, object, rt->class_form);
	if ((round & 2) && j->holder && user_u64(j->holder + d->klass_super, &j->holder))
		j->holder = 0;
	rt->tail = 0;
	java_fields(slot);
	return rt->tail != 0;
}

/* Reads the layout of the StackChunk that a field refers to. false: it is no StackChunk. */
static __always_inline bool java_layout(struct sf_scratch *s, u32 slot, const struct sf_java *d,
					u64 field)
{
	struct sf_java_walk *j = &s->lang.java;
	struct sf_runtime *rt = &j->rt;
	u32 layout = 0;

	j->holder = java_class(rt, java_oop(rt, field), rt->class_form);
	rt->chunk_sp = rt->chunk_bottom = rt->chunk_args = 0;
	java_fields(slot);
	if ((!rt->chunk_bottom && !(rt->chunk_args && rt->chunk_size)) ||
	    copy_user(&layout, 4, j->holder + d->klass_layout))
		rt->chunk_sp = 0;
	rt->chunk_stack = layout & ~7u;
	return rt->chunk_sp;
}

/* Finds the offsets of fields, from j->entry. rt->chunk_sp 0: they are not known. */
static __always_inline void java_learn(struct sf_scratch *s, u32 slot)
{
	struct sf_java_walk *j = &s->lang.java;
	struct sf_runtime *rt = &j->rt;
	const struct sf_java *d = java_lang(rt->module);
	u32 shift[2];
	u64 object;

	rt->learns++;
	rt->tail = 0;
	if (!d || !d->klass_fields || user_u64(rt->bias + d->oop_base, &rt->oop_base) ||
	    user_u64(rt->bias + d->class_base, &rt->class_base) ||
	    copy_user(&shift[0], 4, rt->bias + d->oop_shift) ||
	    copy_user(&shift[1], 4, rt->bias + d->class_shift))
		return;
	rt->oop_shift = shift[0] & 31;
	rt->class_shift = shift[1] & 31;
	bpf_loop(2 * 2 * CLASS_FORMS, java_try, &slot, 0);
	if (!rt->tail || user_u64(j->entry + rt->entry_object, &object))
		return;
	/* If references have 4 bytes, one of these neighbours is not aligned to 8. */
	rt->oop_form = (rt->tail | rt->child | rt->chunk_parent) & 7 ? OOP_NARROW : OOP_WHOLE;
	if (java_layout(s, slot, d, object + rt->tail) || rt->oop_form == OOP_NARROW)
		return;
	rt->oop_form = OOP_COLOURED;
	java_layout(s, slot, d, object + rt->tail);
}

/*
 * Goes on in the chunk, or in a chunk before it. 0; 1: none has frames; -1: not readable. Not
 * inlined: its variables would be in java_chunk's part of the BPF stack while java_learn runs.
 */
static __noinline int java_chunk_enter(struct sf_scratch *s, u64 chunk)
{
	struct sf_java_walk *j = &s->lang.java;
	struct sf_runtime *rt = &j->rt;
	u64 stack, pair[2];
	u32 sp, end, args;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < JAVA_CHUNKS && chunk; i++) {
		args = 0;
		if (s->lang.spent.java.chunks++ >= JAVA_CHUNKS_ALL ||
		    copy_user(&sp, 4, chunk + rt->chunk_sp) ||
		    copy_user(&end, 4,
			      chunk + (rt->chunk_bottom ? rt->chunk_bottom : rt->chunk_size)) ||
		    (!rt->chunk_bottom && copy_user(&args, 4, chunk + rt->chunk_args)))
			return -1;
		end -= args;
		if (sp < end) {
			stack = chunk + rt->chunk_stack + 8ull * sp;
			if (copy_user(pair, sizeof(pair), stack - 16))
				return -1;
			s->lang.begin.java.chunk = chunk;
			j->chunk_end = chunk + rt->chunk_stack + 8ull * end;
			s->regs.pc = STEP_RA(&s->regs, pair[1]);
			s->regs.sp = stack;
			s->regs.fp = stack - 16 + 8 * pair[0];
			s->regs.flags = SF_REGS_RA;
			return 0;
		}
		chunk = java_oop(rt, chunk + rt->chunk_parent);
	}
	return chunk ? -1 : 1;
}

/*
 * The caller's sp of an interpreted frame in a chunk, from what the frame has for it and for its
 * local variables, which end where the caller's frame begins.
 */
static __always_inline u64 java_chunk_sender(const struct sf_java_walk *j, u64 fp, u64 sp,
					     u64 locals)
{
	return fp + 8 * locals + 8 >= j->chunk_end ? j->chunk_end : fp + 8 * sp;
}

/* Records a frame without a name where frames are missing. Always 0. */
static __always_inline int java_unknown(struct sf_scratch *s)
{
	s->lang.stop = SF_STOP_LANG_ANCHOR;
	pc_record(s, SF_FRAME_LANG_WORD(SF_LANG_JAVA, 0, 0));
	return 0;
}

/*
 * Finds the ContinuationEntry that follows the frames on the stack: it has no addresses of code,
 * and is followed by one. Reads the frame that follows. 0: not found; fp may lead to the frame.
 */
static __always_inline u64 java_entry(struct sf_scratch *s)
{
	struct sf_java_walk *j = &s->lang.java;
	u64 at = (s->regs.sp + 15) & ~15ull;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < JAVA_ENTRY_STEPS; i++, at += 16) {
		if (copy_user(j->carrier, sizeof(j->carrier), at + JAVA_ENTRY_BYTES))
			break;
		if (java_in_code(&j->rt, j->carrier[1])) {
			j->carrier_sp = at + JAVA_ENTRY_BYTES + 16;
			return at;
		}
	}
	if (copy_user(j->carrier, sizeof(j->carrier), s->regs.fp))
		j->carrier[1] = 0;
	j->carrier_sp = s->regs.fp + 16;
	return 0;
}

/*
 * Goes on at the return barrier, or at the end of a chunk, with the next frames in a chunk, or with
 * those of the carrier thread. Always 0.
 */
__noinline int java_chunk(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_java_walk *j;
	struct sf_runtime *rt;
	u64 next = 0;
	bool lost;
	int more;

	if (!s)
		return 0;
	j = &s->lang.java;
	rt = &j->rt;
	if (s->lang.begin.java.chunk) {
		lost = j->chunk_lost;
		if (!lost)
			next = java_oop(rt, s->lang.begin.java.chunk + rt->chunk_parent);
	} else {
		j->entry = java_entry(s);
		if (j->entry && !rt->chunk_sp && rt->learns < JAVA_LEARNS) {
			java_learn(s, slot);
			java_store(s, rt);
		}
		lost = !j->entry || !rt->chunk_sp || user_u64(j->entry + rt->entry_object, &next);
		if (!lost)
			next = java_oop(rt, next + rt->tail);
		lost |= !next;
	}
	more = lost || !next ? 1 : java_chunk_enter(s, next);
	if (!more)
		return 0;
	lost |= more < 0 || !s->lang.begin.java.chunk;
	s->regs.pc = STEP_RA(&s->regs, j->carrier[1]);
	s->regs.sp = j->carrier_sp;
	s->regs.fp = j->carrier[0];
	s->regs.flags = SF_REGS_RA;
	s->lang.begin.java.chunk = 0;
	return lost ? java_unknown(s) : 0;
}

#endif
