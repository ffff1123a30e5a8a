/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Steps through frames of HotSpot's code, AArch64. */
#ifndef SFBPF_LANG_JAVA_ARM64_BPF_H
#define SFBPF_LANG_JAVA_ARM64_BPF_H

#include "lang/java/java_blob.bpf.h"

#define JAVA_BEFORE	16 /* instructions before pc that are read: an entry barrier is 12 */
#define JAVA_EPILOGUE	5  /* instructions from the last that changes sp to ret, with a poll */
#define JAVA_METHOD	12 /* x12: the method that is called */
#define JAVA_SENDER	19 /* x19: the caller's sp, for an interpreted method */
#define JAVA_SENDER_OLD 13 /* x13: the caller's sp, before JDK 19 */

#define INSN_STP_PRE	   0xa9bf7bfd /* stp x29, x30, [sp, #-16]! */
#define INSN_LDP_POST	   0xa8c17bfd /* ldp x29, x30, [sp], #16 */
#define INSN_RET	   0xd65f03c0
#define INSN_IS_STP(insn)  (((insn)&0xffc07fff) == 0xa9007bfd) /* x29, x30, [sp, #imm] */
#define INSN_IS_LDP(insn)  (((insn)&0xffc07fff) == 0xa9407bfd)
#define INSN_IS_JUMP(insn) (((insn)&0xfc000000) == 0x14000000)
/* Changes of sp by an immediate, or by a register */
#define INSN_IS_SUB_SP(insn) \
	(((insn)&0xff8003ff) == 0xd10003ff || ((insn)&0xffe0ffff) == 0xcb2063ff)
#define INSN_IS_ADD_SP(insn) \
	(((insn)&0xff8003ff) == 0x910003ff || ((insn)&0xffe0ffff) == 0x8b2063ff)

/* The instruction that is n before pc, of those in the window */
#define JAVA_INSN(w, n) \
	(*(u32 *)((w)->window + MASKED(4 * (JAVA_BEFORE - (n)), SF_LANG_WINDOW - 4)))

/*
 * A small frame: sub sp; stp x29, x30, [sp, #n]. A larger one: stp x29, x30, [sp, #-16]!; sub sp.
 * An entry barrier may follow. FRAME_NO_FP: sp is that of the frame, x29 and x30 are the caller's.
 */
static __always_inline u32 java_prologue(struct sf_lang_walk *w, u64 pc)
{
	bool sub = false;

#pragma clang loop unroll(disable)
	for (u32 i = 1; i <= JAVA_BEFORE; i++) {
		u32 insn = JAVA_INSN(w, i);

		if (pc - 4 * i < w->java.code)
			break;
		if (INSN_IS_STP(insn))
			return FRAME_WHOLE;
		if (insn == INSN_STP_PRE)
			return sub ? FRAME_WHOLE : FRAME_PUSHED;
		sub |= INSN_IS_SUB_SP(insn);
	}
	return sub ? FRAME_NO_FP : FRAME_RA;
}

/* ldp x29, x30; add sp, or the other way round; a safepoint poll; ret. */
static __always_inline u32 java_epilogue(struct sf_lang_walk *w)
{
	u32 at = JAVA_INSN(w, 0);
	bool add = false;

	if (at == INSN_LDP_POST)
		return FRAME_PUSHED;
	if (at == INSN_RET)
		return FRAME_RA;
#pragma clang loop unroll(disable)
	for (u32 i = 1; i <= JAVA_EPILOGUE; i++) {
		u32 insn = JAVA_INSN(w, i);

		if (insn == INSN_RET || INSN_IS_JUMP(insn))
			break;
		if (insn == INSN_LDP_POST)
			return FRAME_RA;
		if (INSN_IS_LDP(insn))
			return add ? FRAME_RA : FRAME_NO_FP;
		add |= INSN_IS_ADD_SP(insn);
	}
	return FRAME_WHOLE;
}

static __always_inline u32 java_made(struct sf_lang_walk *w, u64 pc)
{
	if (copy_user(w->window, 4 * (JAVA_BEFORE + 1), pc - 4 * JAVA_BEFORE))
		return FRAME_WHOLE;
	return pc < w->java.complete ? java_prologue(w, pc) : java_epilogue(w);
}

/* Code with frames of a known size: the caller's x29 and the return address are its last words. */
static __always_inline int java_sized(struct sf_scratch *s, u32 made)
{
	struct sf_java_walk *j = &s->lang.java;
	struct sf_regs *r = &s->regs;
	u64 top = r->sp + 8ull * j->words, pair[2];

	if (made == FRAME_RA || made == FRAME_NO_FP)
		return java_caller(r, r->r[SF_ARM64_LR], made == FRAME_RA ? r->sp : top, r->fp);
	if (made == FRAME_PUSHED)
		top = r->sp + 16;
	else if (r->flags & SF_REGS_BY_FP) /* sp is unknown; wrappers of native code keep x29 */
		top = r->fp + 16;
	if (copy_user(pair, sizeof(pair), top - 16))
		return SF_STOP_READ_FAULT;
	return java_caller(r, pair[1], top, pair[0]);
}

/* Stubs without a size: those that call out set x29, the others have the return address in x30. */
static __always_inline int java_stub(struct sf_scratch *s)
{
	struct sf_regs *r = &s->regs;
	u64 pair[2] = {};
	bool framed = r->fp - r->sp <= JAVA_FRAME_MAX && !copy_user(pair, sizeof(pair), r->fp);

	if (!(r->flags & SF_REGS_RA) && java_in_code(&s->lang.java.rt, r->r[SF_ARM64_LR]) &&
	    !(framed && pair[1] == r->r[SF_ARM64_LR]))
		return java_caller(r, r->r[SF_ARM64_LR], r->sp, r->fp);
	if (!framed)
		return SF_STOP_JIT;
	return java_caller(r, pair[1], r->fp + 16, pair[0]);
}

/*
 * The sp of an interpreted frame's caller, from what the frame has for it and the frame's end. The
 * interpreter keeps sp below the part of its stack that is in use. A frame that it calls begins
 * above that, so the caller's sp is within the frame. The caller is then found by x29.
 */
static __always_inline u64 java_sender(u64 sp, u64 end)
{
	return sp < end ? end : sp;
}

/*
 * Finds the method, and its caller's pc and sp, at the entry of an interpreted method, which has no
 * frame yet. The frame at x29, if it is one, has another method then.
 */
static __always_inline bool java_at_entry(struct sf_scratch *s, const struct sf_java *d,
					  u64 *ret_method, u64 *ret_ra, u64 *ret_sp)
{
	u32 sender = d->number_excluded ? JAVA_SENDER : JAVA_SENDER_OLD;
	struct sf_regs *r = &s->regs;
	u64 framed = 0;

	*ret_method = r->r[JAVA_METHOD];
	*ret_ra = r->r[SF_ARM64_LR];
	if (!java_in_code(&s->lang.java.rt, *ret_ra) || java_method(&s->lang, d, *ret_method))
		return false;
	if (r->fp - r->sp <= JAVA_FRAME_MAX && !user_u64(r->fp - 24, &framed) &&
	    framed == *ret_method)
		return false;
	*ret_sp = r->r[sender];
	if (*ret_sp - r->sp > JAVA_FRAME_MAX)
		*ret_sp = r->sp;
	return true;
}

#endif
