/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Bridges over code that was made at run time and keeps no frame pointer: PCRE2's, LuaJIT's.
 *
 * Such code has no rows, so its frame's size is unknown. But its caller's return address is above
 * sp, and says by the call before it whether the caller could have entered such code. The walk goes
 * on from the first one that does, in a file with rows, and counts if it reaches the outermost
 * frame. If it breaks within a few frames, the next return address is tried. If it breaks later,
 * only addresses that follow a call of run-time code are tried. A frame of its own
 * (SF_FRAME_BRIDGE) stands for what lies between.
 *
 * The frame of run-time code may hold return addresses of calls that are over, and the walk from
 * one of them can join the real stack. So the call counts: compiled functions enter run-time code
 * by an indirect call, or jump there. A direct call of an ordinary function does not lead there.
 * And where such a walk joins the real stack, the return address is that of another call.
 */
#ifndef SFBPF_BRIDGE_BPF_H
#define SFBPF_BRIDGE_BPF_H

#include "lang/lang.bpf.h"
#include "core/ra_check.bpf.h"
#include "core/stack.bpf.h"

#ifdef __TARGET_ARCH_x86

#define BRIDGE_REACH  4096 /* bytes of the stack above the gap */
/* What may be looked at in a stack, in all gaps. A word takes 1, the code before it 4 more. */
#define BRIDGE_WORDS  1024
#define BRIDGE_CODE   4
#define BRIDGE_WIDE   4096 /* words, once in a stack, where nothing was found */
#define BRIDGE_ABSENT 512  /* what an absent page takes of these */
#define BRIDGE_FRAMES 4	   /* a walk that breaks after more than these may be right */
#define BRIDGE_SAVED  8	   /* words below the return address that may be the caller's rbp */
#define BRIDGE_FAR    32   /* words if rbp itself is not the caller's: Mono saves it below locals */
#define BRIDGE_FP_MAX (1u << 20) /* bytes from the return address to the frame pointer */
#define ENTRY_ROW     (8 << 2)	 /* packed: CFA = rsp + 8, as at the entry of each function */

/* sf_bridge.far: where a wider search may begin. Registers: as the run-time code left them. */
enum bridge_far {
	BRIDGE_SP,
	BRIDGE_REGS,	/* sp, or where a callee-saved register points */
	BRIDGE_WIDENED, /* no place: there was one in this stack */
};

/*
 * The walk ends in the gap: what was found beyond it has no proof. Frames that were dropped with it
 * may be those of a language that was met before. Returns the stop.
 */
static __always_inline int bridge_fail(struct sf_scratch *s)
{
	s->gap = 0;
	if (s->lang_at == LANG_BRIDGE)
		s->lang_at = LANG_NATIVE;
	if (!s->bridged)
		return s->bridge.stop;
	s->n = s->bridged;
	s->bridged = 0;
	if (s->bridge.language && s->lang.first >= s->n)
		s->lang.stop = SF_STOP_JIT;
	s->lang.language = s->bridge.language;
	return SF_STOP_JIT;
}

/*
 * Handles the end of a walk that passed run-time code. Sets s->stop, and lang_at to LANG_BRIDGE if
 * the walk goes on with a search from where the last one ended. Global: not in the hot path, and
 * verified once. Always 0.
 */
__noinline int bridge_retry(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u32 stop, broken;

	if (!s)
		return 0;
	stop = s->stop;
	if (stop == SF_STOP_ZERO_RA)
		s->stop = stop = zero_check(slot);
	if (stop == SF_STOP_COMPLETE && s->cause != SF_STOP_NOT_LOADED)
		return 0;
	if (!s->bridged)
		s->bridge.stop = stop;
	broken = s->n == s->gap || stop == SF_STOP_BAD_CFA || stop == SF_STOP_NO_MODULE ||
		 stop == SF_STOP_ZERO_RA || stop == SF_STOP_READ_FAULT;
	/* The language's frames that the walk has taken cannot be taken again. */
	broken &= !s->bridge.here || s->lang.first < s->gap;
	if (broken) {
		s->bridge.sure |= s->n - s->gap > BRIDGE_FRAMES;
		s->lang_at = LANG_BRIDGE;
	} else {
		s->stop = bridge_fail(s);
	}
	return 0;
}

/*
 * Whether the address is in code. Of pointers to data, so many can lead to absent pages that the
 * search would end before a return address is found (CODE_FAULTS).
 */
static __always_inline bool bridge_is_code(u32 slot, u64 addr)
{
	u64 vma = vma_near(slot, addr);

	return vma && (KLOAD(vma, struct vm_area_struct, vm_flags) & VM_EXEC);
}

/* Looks at the next word of the stack. 1: it is the address after a call, or the search is over. */
static int bridge_word(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_bridge *b;
	u64 word;

	if (!s)
		return 1;
	b = &s->bridge;
	if (!b->left || b->at - b->sp >= b->reach)
		return 1;
	if (sf_read_user(&s->regs, b->at, &word)) {
		if (b->far != BRIDGE_WIDENED || b->left <= BRIDGE_ABSENT)
			return 1;
		b->left -= BRIDGE_ABSENT;
		b->at = (b->at | (SF_PAGE_MIN - 1)) + 1;
		return 0;
	}
	b->left--;
	b->at += 8;
	if (word < b->low || word > b->high || word - b->stack < b->stack_len)
		return 0;
	b->left = b->left > BRIDGE_CODE ? b->left - BRIDGE_CODE : 0;
	if (s->faults && !bridge_is_code(slot, word - 1))
		return 0;
	if (code_before(s, word, &b->before) || !after_call(b->before))
		return 0;
	b->ra = word;
	return 1;
}

#define TOP_BIT (1ull << 63)

/*
 * TOP_BIT is set if two numbers below 2^63 are equal, or not. Searches of code have no branches:
 * the verifier would go through the rest of the bytes after each of them.
 */
#define EQUAL(x, y)   OPAQUE((u64)((x) ^ (y)) - 1)
#define UNEQUAL(x, y) OPAQUE(-(u64)((x) ^ (y)))

/* jmp *OPERAND */
static __always_inline u64 is_indirect_jump(const u8 *code)
{
	return EQUAL(code[0], 0xff) & EQUAL(code[1] & 0x38, 0x20);
}

/* Whether there is an indirect jump among the first bytes of a function, but no PLT stub. */
static __always_inline bool code_jumps(const u8 *code)
{
	u64 found = 0;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < SF_BRIDGE_CODE - 1; i++)
		found |= is_indirect_jump(code + i) & UNEQUAL(code[i + 1], 0x25);
	return found & TOP_BIT;
}

/* Whether the first 16 bytes of a function are a jump, as in stubs of a PLT. */
static __always_inline bool jumps_on(const u8 *code)
{
	u64 found = 0;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < 15; i++)
		found |= is_indirect_jump(code + i) | EQUAL(code[i], 0xe9);
	return found & TOP_BIT;
}

/* b->to is a PLT stub: sets b->to to what it jumps to; 0: not known. */
static __always_inline void bridge_stub(struct sf_bridge *b)
{
	u64 stub = b->to, at;
	u32 i;

	b->to = 0;
	b->left = b->left > BRIDGE_CODE ? b->left - BRIDGE_CODE : 0;
	if (!b->left || copy_user(b->code, 16, stub))
		return;
#pragma clang loop unroll(disable)
	for (i = 0; i < 8; i++)
		if (b->code[i] == 0xff && b->code[i + 1] == 0x25) {
			at = stub + i + 6;
			at += (u64)(long long)*(s32 *)&b->code[i + 2];
			if (copy_user(&b->to, sizeof(b->to), at))
				b->to = 0;
			return;
		}
}

/*
 * Whether a call of the function at b->to, in mapping `found`, may have led to run-time code. Else
 * sets b->to to what is to be looked at next, if it was a PLT stub, or to 0.
 */
static __always_inline bool bridge_leads(struct sf_scratch *s, u32 slot, int found)
{
	const struct sf_rule *rule;
	struct sf_vma *v;
	u64 to = s->bridge.to;
	u32 code;

	s->bridge.to = 0;
	if (found < 0)
		return false;
	v = vma_at(s, found);
	if (v->state != SF_MOD_READY || (s->bridge.sure && s->bridge.far != BRIDGE_WIDENED))
		return v->state == SF_MOD_JIT;
	code = row_search(slot, found, (to + v->delta) & SF_FRAME_OFFSET_MASK) & 0xffff;
	if (code != SF_RULE_GAP && code != ENTRY_ROW) {
		if (!(code & SF_RULE_INDEXED))
			return true; /* hand-written, such as LuaJIT's interpreter */
		rule = rule_find((struct sf_tables *)&v->first_page, code);
		if (!rule)
			return false;
		if (rule->flags & SF_RULE_PLT) {
			s->bridge.to = to;
			bridge_stub(&s->bridge);
			return false;
		}
		if (rule->cfa_reg != SF_REG_SP || rule->cfa_off != 8 ||
		    (rule->flags & SF_RULE_LEADS))
			return true;
	}
	if (copy_user(s->bridge.code, SF_BRIDGE_CODE, to))
		return false;
	if (*(u16 *)s->bridge.code == 0x25ff) { /* a stub of Mono's, whose tables have none */
		s->bridge.to = to;
		bridge_stub(&s->bridge);
		return false;
	}
	barrier(); /* else the loop is entered in its middle, which 6.1's verifier refuses */
	return code_jumps(s->bridge.code);
}

#define CALLED_NOTHING 1

/*
 * Sets *to to what the call before a return address calls; 0: not known. before: the bytes there;
 * sp: of the caller, right above the return address.
 */
static __always_inline void call_target(u64 ra, u64 before, u64 sp, u64 *to)
{
	u64 slot = sp + (u64)(long long)(signed char)(before >> 56);

	*to = ra + (u64)(long long)(s32)(before >> 32);
	if ((before >> 16 & 0xffff) == 0x15ff) { /* call through a pointer at a constant address */
		slot = *to;
	} else if ((before >> 32 & 0xffffff) != 0x2454ff) { /* not through the caller's frame */
		if ((before >> 24 & 0xff) != 0xe8)
			*to = 0;
		return;
	}
	if (copy_user(to, sizeof(*to), slot) || !*to)
		*to = CALLED_NOTHING;
}

/* Whether a word may be a frame pointer above the return address at `above`. */
static __always_inline bool bridge_is_fp(u64 word, u64 above)
{
	return !(word & 7) && word - above - 8 < BRIDGE_FP_MAX && holds_return(word + 8);
}

/*
 * Sets the caller's frame pointer, if it has one: run-time code that uses rbp has saved it, which
 * is done first. Global: verified once. Always 0.
 */
__noinline int bridge_fp(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 word, above;
	u32 i, n;

	if (!s)
		return 0;
	above = s->bridge.at - 8; /* where the return address is */
	n = bridge_is_fp(s->bridge.fp, above) ? BRIDGE_SAVED : BRIDGE_FAR;
	s->regs.fp = s->bridge.fp;
#pragma clang loop unroll(disable)
	for (i = 1; i <= BRIDGE_FAR; i++) {
		if (i > n || above - 8 * i < s->bridge.sp ||
		    copy_user(&word, sizeof(word), above - 8 * i))
			break;
		if (!bridge_is_fp(word, above))
			continue;
		s->regs.fp = word;
		break;
	}
	return 0;
}

/* Goes on from the current return address. SF_STEP_GO or a stop. */
static __always_inline int bridge_enter(struct sf_scratch *s, u32 slot)
{
	struct sf_bridge *b = &s->bridge;
	u32 n = s->gap;

	if (b->row == SF_RULE_GAP || n >= SF_MAX_USER)
		return bridge_fail(s); /* this may be the caller, so a later one is not */
	bridge_fp(slot);
	if ((b->row & SF_RULE_BASE_FP) && !(b->row & SF_RULE_INDEXED) &&
	    !bridge_is_fp(s->regs.fp, b->at - 8))
		return bridge_fail(s);
	*frame_at(s, n) = SF_FRAME_BRIDGE;
	s->n = n + 1;
	if (!s->bridged)
		s->bridged = n;
	s->regs.sp = b->at;
	s->regs.pc = b->ra;
	s->regs.flags = SF_REGS_RA;
	s->cause = 0;
	s->go_sp = 0;
	s->lang.language = b->here;
	s->lang_at = LANG_NATIVE;
	b->joins = 1;
	return SF_STEP_GO;
}

/*
 * The address whose mapping bridge_look needs next: of the function that was called before the
 * current return address, or of the next return address. 0: none is left.
 */
__noinline u64 bridge_next(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 vma;

	if (!s)
		return 0;
	if (s->bridge.to)
		return s->bridge.to;
	vma = vma_near(slot, s->bridge.sp);
	s->bridge.stack = vma ? KLOAD(vma, struct vm_area_struct, vm_start) : 0;
	s->bridge.stack_len = vma ? KLOAD(vma, struct vm_area_struct, vm_end) - s->bridge.stack : 0;
	s->bridge.ra = 0;
	/* Files are mapped between the program and its stack. */
	s->bridge.low = KLOAD(s->mm, struct mm_struct, start_code);
	s->bridge.high = KLOAD(s->mm, struct mm_struct, start_stack);
	if (cfg_note_words) /* the memo does not know what is read here */
		s->log_far = ~0ull;
	bpf_loop(BRIDGE_WIDE, bridge_word, &slot, 0);
	return s->bridge.ra ? s->bridge.ra - 1 : 0;
}

/* Where the thread's own stack is: its top, and the mapping's start in *ret_start. 0: not there. */
static __always_inline u64 own_stack(u32 slot, u64 top, u64 *ret_start)
{
	u64 vma = top ? vma_near(slot, top) : 0;

	*ret_start = vma ? KLOAD(vma, struct vm_area_struct, vm_start) : 0;
	return vma ? top : 0;
}

/* What holds an address in that code: sp, or a register that calls do not change. */
static __always_inline u64 bridge_held(const struct sf_scratch *s, u32 i)
{
	return i ? s->regs.r[INDEX(0xfedc630u >> 4 * i, 16)]
		 : s->bridge.sp; /* rbx, rbp, r12 .. r15 */
}

/*
 * Nothing was found in reach. Erlang's code runs on a stack of its own, and a register points into
 * the stack of the thread, which has 16 KiB of data there. So the search goes on up to the stack's
 * top: from sp, or else from such a register. The top is where the process's stack began, or the
 * thread's descriptor, which C libraries put there. So much of a stack holds return addresses of
 * many calls that are over: of a call through a register, nothing tells that it led to this code,
 * and it does not count. 1: there is something to search.
 */
__noinline int bridge_widen(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	u64 entry, tp;
	u32 i, n, k;

	if (!s || s->bridge.far == BRIDGE_WIDENED)
		return 0;
	n = s->bridge.far == BRIDGE_REGS ? 7 : 1;
	/* Opaque, or one instruction loads either, which the verifier refuses. */
	entry = OPAQUE(s->regs.entry_sp);
	tp = OPAQUE(user_tp());
	s->bridge.far = BRIDGE_WIDENED;
#pragma clang loop unroll(disable)
	for (k = 0; k < 2; k++) {
		u64 start, top = own_stack(slot, k ? tp : entry, &start);

#pragma clang loop unroll(disable)
		for (i = 0; i < 7; i++) {
			u64 at = bridge_held(s, i);

			if (i >= n || at - start >= top - start || (at & 7))
				continue;
			if (i)
				s->bridge.sp = s->bridge.at = at;
			s->bridge.sure = 1;
			s->bridge.left = BRIDGE_WIDE;
			s->bridge.reach = top - at < 8 * BRIDGE_WIDE ? top - at : 8 * BRIDGE_WIDE;
			return 1;
		}
	}
	return 0;
}

/*
 * Checks a step of a walk that a bridge began. A return address that follows a direct call of a
 * function in another file than the frame that the walk came from contradicts that frame, unless
 * the function only jumps on. The frame is then of a call that is over, and the return address is
 * that of a later call from the caller's frame. So the bridge's own return address is put off, and
 * another one is looked for below this one. The contradiction is no proof, as a function may end in
 * a jump: if there is no other, the first one counts. Global: not in the hot path.
 */
__noinline int bridge_join(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_bridge *b;
	u64 before, to;
	struct sf_vma *v;

	if (!s)
		return SF_STEP_GO;
	b = &s->bridge;
	v = vma_at(s, s->vma_last);
	if (!(s->regs.flags & SF_REGS_RA) || code_before(s, s->regs.pc, &before) ||
	    (before >> 24 & 0xff) != 0xe8)
		return SF_STEP_GO;
	to = s->regs.pc + (u64)(long long)(s32)(before >> 32);
	if (to - v->start < v->len || copy_user(b->code, 16, to) || jumps_on(b->code))
		return SF_STEP_GO;
	if (!b->doubt_ra) {
		b->doubt_ra = b->ra;
		b->doubt_at = b->at;
		b->doubt_row = b->row;
	}
	b->reach = s->regs.sp - 8 - b->sp;
	return SF_STOP_BAD_CFA;
}

/* Goes on from the return address that bridge_join has put off: there is no other. */
static __always_inline int bridge_no_other(struct sf_scratch *s, u32 slot)
{
	struct sf_bridge *b = &s->bridge;
	int stop;

	b->ra = b->doubt_ra;
	b->at = b->doubt_at;
	b->row = b->doubt_row;
	b->reach = BRIDGE_REACH;
	b->doubt_ra = 0;
	stop = bridge_enter(s, slot);
	b->joins = 0;
	return stop;
}

/*
 * Goes on from the current return address, if the caller of run-time code can have it. found: the
 * slot of the mapping that bridge_next asked for; negative: none. SF_STEP_GO, also if the next
 * round has to look on; or a stop. A call of vma_find from here would need too much stack.
 */
__noinline int bridge_look(u32 slot, int found)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_bridge *b;
	struct sf_vma *v;
	bool leads;

	if (!s)
		return SF_STOP_JIT;
	b = &s->bridge;
	if (b->to) {
		leads = bridge_leads(s, slot, found);
		return leads ? bridge_enter(s, slot) : SF_STEP_GO;
	}
	if (!b->ra && b->doubt_ra)
		return bridge_no_other(s, slot);
	if (!b->ra)
		return bridge_widen(slot) ? SF_STEP_GO : bridge_fail(s);
	v = vma_at(s, found);
	if (found < 0 || v->state == SF_MOD_JIT)
		return SF_STEP_GO;
	b->row = SF_RULE_GAP;
	if (v->state == SF_MOD_READY)
		b->row = row_search(slot, found, (b->ra - 1 + v->delta) & SF_FRAME_OFFSET_MASK) &
			 0xffff;
	if (b->row == SF_RULE_END)
		return SF_STEP_GO;
	call_target(b->ra, b->before, b->at, &b->to);
	return b->to || b->sure ? SF_STEP_GO : bridge_enter(s, slot);
}

/* The result of a walk with a bridge. */
static __always_inline void bridge_end(struct sf_scratch *s)
{
	if (s->stop == SF_STOP_COMPLETE)
		s->stop = SF_STOP_BRIDGED;
	else
		s->stop = bridge_fail(s);
}

/* Whether the walk is within a few frames after a bridge, so that bridge_join may say more. */
static __always_inline bool bridge_is_near(const struct sf_scratch *s)
{
	return s->gap && s->n - s->gap <= BRIDGE_FRAMES && s->bridge.joins;
}

/* Notes where the walk is in run-time code, whose frame was recorded. */
static __always_inline void bridge_note(struct sf_scratch *s)
{
	struct sf_bridge *b = &s->bridge;

	if (lang_jits(&s->lang))
		return;
	if (!s->gap) {
		b->left = BRIDGE_WORDS;
		b->far = s->regs.flags & SF_REGS_FULL ? BRIDGE_REGS : BRIDGE_SP;
		s->faults = 0; /* drops those of the search for code of YJIT */
	} else if (b->far == BRIDGE_REGS && s->n != s->gap + 1) {
		b->far = BRIDGE_SP; /* other code than this may have changed them */
	}
	b->reach = BRIDGE_REACH;
	s->gap = s->n;
	b->sp = b->at = s->regs.sp;
	b->to = b->sure = b->doubt_ra = b->joins = 0;
	b->fp = s->regs.fp;
	b->here = s->lang.language;
	if (!s->bridged)
		b->language = b->here;
}

#else

static __always_inline bool bridge_is_near(const struct sf_scratch *s)
{
	return false;
}

static __always_inline int bridge_join(u32 slot)
{
	return SF_STEP_GO;
}

static __always_inline int bridge_retry(u32 slot)
{
	return 0;
}

static __always_inline u64 bridge_next(u32 slot)
{
	return 0;
}

static __always_inline int bridge_look(u32 slot, int found)
{
	return SF_STOP_JIT;
}

static __always_inline void bridge_end(struct sf_scratch *s)
{
}

static __always_inline void bridge_note(struct sf_scratch *s)
{
}

#endif
#endif
