/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Steps through frames of HotSpot's code, x86-64. */
#ifndef SFBPF_LANG_JAVA_X86_BPF_H
#define SFBPF_LANG_JAVA_X86_BPF_H

#include "lang/java/java_blob.bpf.h"

/*
 * Prologues: [stack bang] push rbp; sub rsp (C1, C2), or sub rsp; mov rbp, [rsp + n] (C2).
 * Epilogue: add rsp; pop rbp; a safepoint poll; ret.
 */
static __always_inline u32 java_made(struct sf_lang_walk *w, u64 pc)
{
	const struct sf_java_walk *j = &w->java;
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

/* The sp of an interpreted frame's caller, from what the frame has for it and the frame's end. */
static __always_inline u64 java_sender(u64 sp, u64 end)
{
	return sp;
}

/*
 * Finds the method, and its caller's pc and sp, at the entry of an interpreted method, which has no
 * frame yet.
 */
static __always_inline bool java_at_entry(struct sf_scratch *s, const struct sf_java *d,
					  u64 *ret_method, u64 *ret_ra, u64 *ret_sp)
{
	struct sf_regs *r = &s->regs;

	if (user_u64(r->sp, ret_ra) || !java_in_code(&s->lang.java.rt, *ret_ra))
		return false;
	*ret_method = r->bx;
	*ret_sp = r->sp + 8;
	return true;
}

#endif
