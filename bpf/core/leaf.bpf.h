/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The innermost frame, if it is in code without a row.
 *
 * A function sets the frame pointer after it has begun, and one without a frame never does. Until
 * then that register is its caller's, and a step by it leaves out the caller. Where the caller is
 * known for sure, the step is exact. Where there may be one that the step leaves out, the stack
 * is not complete.
 */
#ifndef SFBPF_LEAF_BPF_H
#define SFBPF_LEAF_BPF_H

#include "core/bridge.bpf.h"
#include "core/leave.bpf.h"

#define LEAF_SKIPS 1	     /* leaf_step: see there */
#define LEAF_MOST  (1 << 20) /* bytes of a function, at most */

/* Whether the pc is not in the function that made the frame to which the frame pointer points. */
static __always_inline bool leaf_elsewhere(const struct sf_scratch *s, const struct sf_leave *l)
{
	return l->caller && s->regs.pc - l->caller >= LEAF_MOST;
}

#ifdef __TARGET_ARCH_x86

#define LEAF_ROUNDS 512	      /* a word of the stack, a function, or an instruction takes one */
#define LEAF_REACH  (1 << 16) /* bytes from a function's beginning to the pc, at most */
#define LEAF_SETS   0xff      /* leaf_insn_len: the frame pointer is set */

/* sf_leave.state: what the next round looks at; the return address is below sf_leave.word */
enum { LEAF_WORD, LEAF_TARGET, LEAF_INSN, LEAF_FOUND };

/*
 * Sets of 256 opcodes, one bit each: of one byte, and of two after 0f. These have a ModRM byte, and
 * change no register but those that it names. Other instructions are known by themselves, or not.
 */
static __always_inline bool leaf_has_modrm(u32 op, bool is_two)
{
	u64 set;

	if (op < 0x40)
		set = is_two ? 0x0000ff00ffff0000 : 0x0f0f0f0f0f0f0f0f;
	else if (op < 0x80)
		set = is_two ? 0xc07fffffffffffff : 0x00000a0800000000;
	else if (op < 0xc0)
		set = is_two ? 0xfdc88808ffff0000 : 0x0000000000002ffb;
	else
		set = is_two ? 0x7fffffffffff0077 : 0xc0c00000000f00c3;
	return set >> (op & 63) & 1;
}

/* The bytes from an opcode to the end of its ModRM operand; 0: rsp or rbp may be changed. */
static __always_inline u32 leaf_modrm(u64 w, u32 rex, bool is_group)
{
	u32 modrm = w >> 8 & 0xff;

	/* rsp and rbp are 4 and 5. In a group, the bits for a register are part of the opcode. */
	if ((!is_group && !(rex & REX_R) && (modrm >> 3 & 6) == 4) ||
	    (modrm >= 0xc0 && !(rex & REX_B) && (modrm & 6) == 4))
		return 0;
	return 1 + modrm_len(modrm, w >> 16 & 0xff);
}

/* The instruction at w, which 0f precedes. */
static __always_inline u32 leaf_two_bytes(u64 w, u32 rex)
{
	u32 op = w & 0xff, n;

	if (op == 0x05) /* syscall */
		return 1;
	if ((op & 0xf0) == 0x80) /* jcc */
		return 5;
	if (!leaf_has_modrm(op, true))
		return 0;
	n = leaf_modrm(w, rex, false);
	if (n && ((op & 0xfc) == 0x70 || op == 0xba || op == 0xc2 || (op >= 0xc4 && op <= 0xc6)))
		n++; /* a number follows */
	return n;
}

/* A short instruction without ModRM byte. */
static __always_inline u32 leaf_short(struct sf_leave *l, u64 w, u32 rex)
{
	u32 op = w & 0xff;
	bool is_kept = !(rex & REX_B) && (op & 6) == 4; /* rsp or rbp */

	if ((op & 0xf8) == 0x50) { /* push */
		l->height += 8;
		return 1;
	}
	if ((op < 0x40 && (op & 7) == 4) || (op & 0xf0) == 0x70 || op == 0xa8)
		return 2;
	if ((op < 0x40 && (op & 7) == 5) || op == 0xa9)
		return 5;
	if ((op & 0xf0) == 0xb0 && !is_kept) /* mov imm, %reg */
		return !(op & 8) ? 2 : rex & REX_W ? 9 : 5;
	return op == 0x90 || op == 0x98 || op == 0x99; /* nop, cdqe, cqo */
}

/* The instruction w, after its prefixes. */
static __always_inline u32 leaf_one_byte(struct sf_leave *l, u64 w, u32 rex)
{
	u32 op = w & 0xff, modrm = w >> 8 & 0xff, n;
	bool is_group = (op & 0xfc) == 0x80 || op >= 0xc0;

	if (rex == REX_W && (op == 0x81 || op == 0x83) && modrm == 0xec) { /* sub imm, %rsp */
		s32 imm = op == 0x83 ? (signed char)(w >> 16) : (s32)(w >> 16);

		l->height += imm;
		return imm <= 0 || imm > LEAVE_FRAME ? 0 : op == 0x83 ? 3 : 6;
	}
	/* mov %rsp, %rbp; lea disp(%rsp), %rbp */
	if (rex == REX_W &&
	    (sets_fp(w << 8 | 0x48) || (w & 0xffffff) == 0x246c8d || (w & 0xffffff) == 0x24ac8d))
		return LEAF_SETS;
	if (!leaf_has_modrm(op, false))
		return leaf_short(l, w, rex);
	if (op >= 0xc6 && (op < 0xd0 || op >= 0xfe) && (modrm & 0x38) > (op >= 0xfe ? 8 : 0))
		return 0; /* call, jmp, push, xbegin */
	n = leaf_modrm(w, rex, is_group);
	if (!n)
		return 0;
	if (op == 0x69 || op == 0x81 || op == 0xc7 || (op == 0xf7 && !(modrm & 0x30)))
		return n + 4;
	return n + (op == 0x6b || op == 0x80 || op == 0x83 || (op >= 0xc0 && op <= 0xc6) ||
		    (op == 0xf6 && !(modrm & 0x30)));
}

/*
 * The length of the instruction at w, which does not change rbp, and moves rsp by no more than it
 * adds to l->height. LEAF_SETS: it sets rbp to an address in its own frame. 0: any other, such as
 * one that returns or jumps away.
 */
static __always_inline u32 leaf_insn_len(struct sf_leave *l, u64 w)
{
	u32 n;

	if ((u8)w == 0x0f) {
		n = leaf_two_bytes(w >> 8, l->rex);
		return n ? n + 1 : 0;
	}
	n = leaf_one_byte(l, w, l->rex);
	/* Operands of 16 bits have shorter numbers. */
	return l->is_short && ((n >= 5 && n != LEAF_SETS) || (w & 0xf8) == 0x50) ? 0 : n;
}

/* Whether the word in hand is the one at sp. */
static __always_inline bool leaf_at_sp(const struct sf_scratch *s)
{
	return s->leave.word == s->regs.sp + 8;
}

/* Looks for the next word of the stack that is an address after a call. 1: there is none. */
static __always_inline int leaf_word(struct sf_scratch *s, struct sf_leave *l, u32 slot)
{
	u64 at = l->word, word, before;

	if (at >= s->regs.fp || sf_read_user(&s->regs, at, &word))
		return 1;
	l->word = at + 8;
	/* not a small number, nor a pointer into this frame, nor above all code */
	if (word < 1 << 16 || word - s->regs.sp < s->regs.fp - s->regs.sp ||
	    word > s->regs.entry_sp || (s->faults && !bridge_is_code(slot, word - 1)) ||
	    code_before(s, word, &before) || !after_call(before))
		return 0;
	l->counts = !l->caller || word - l->caller < LEAF_REACH;
	call_target(word, before, l->word, &l->to);
	l->state = LEAF_TARGET;
	return 0;
}

/*
 * Looks at the function that the call leads to. If it cannot have led to the pc, the word is of a
 * call that is over; but not if it is at sp, where code without a frame has its return address: it
 * may have been entered by a jump of that function.
 */
static __always_inline void leaf_target(struct sf_scratch *s, struct sf_leave *l)
{
	u64 to = l->to, reach = s->regs.pc - to, w;

	l->state = LEAF_WORD;
	l->maybe |= l->counts && (!to || leaf_at_sp(s));
	if (to <= CALLED_NOTHING)
		return;
	l->len = SF_LEAVE_CODE;
	if (copy_user(l->code, SF_LEAVE_CODE, to)) {
		l->len = SF_PAGE_MIN - (to & (SF_PAGE_MIN - 1));
		if (copy_user_part(l->code, l->len, SF_LEAVE_CODE, to))
			return;
	}
	w = *(u64 *)l->code;
	if ((u32)w == INSN_ENDBR64) {
		w = *(u64 *)&l->code[4];
		to += 4;
	}
	if ((u8)w == 0xe9) { /* a stub: jmp */
		l->to = to + 5 + (u64)(long long)(s32)(w >> 8);
		l->state = LEAF_TARGET;
	} else if ((u16)w == 0x25ff) { /* jmp *disp(%rip) */
		if (copy_user(&l->to, sizeof(l->to), to + 6 + (u64)(long long)(s32)(w >> 16)))
			l->to = 0;
		l->state = LEAF_TARGET;
	} else if (reach < LEAF_REACH) {
		l->reach = reach;
		l->at = l->height = l->rex = l->is_short = 0;
		l->state = LEAF_INSN;
	} else {
		l->maybe |= l->counts && code_jumps(l->code);
	}
}

/* Follows one instruction on the way from the function's beginning to the pc. */
static __always_inline void leaf_insn(struct sf_scratch *s, struct sf_leave *l)
{
	u32 at = l->at, n;
	bool is_prefix = true;
	u64 w;

	if (at == l->reach) {
		bool is_here = s->regs.sp + l->height + 8 == l->word;

		l->state = is_here ? LEAF_FOUND : LEAF_WORD;
		return;
	}
	w = *(u64 *)&l->code[INDEX(at, SF_LEAVE_CODE)];
	if ((w & 0xf0) == 0x40)
		l->rex = w & 0xf;
	else if ((u8)w == 0x66 || (u8)w == 0x2e || (w & 0xfe) == 0xf2) /* other prefixes */
		l->is_short |= (u8)w == 0x66;
	else
		is_prefix = false;
	n = is_prefix ? 1 : leaf_insn_len(l, w);
	if (!is_prefix)
		l->rex = l->is_short = 0;
	l->at = at + n;
	if (n && n != LEAF_SETS && at + n <= l->len && at + n <= l->reach)
		return;
	l->state = LEAF_WORD;
	if (n != LEAF_SETS)
		l->maybe |= l->counts;
}

static int leaf_round(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_leave *l;

	if (!s)
		return 1;
	l = &s->leave;
	if (l->state == LEAF_WORD)
		return leaf_word(s, l, slot);
	if (l->state == LEAF_TARGET)
		leaf_target(s, l);
	else
		leaf_insn(s, l);
	return l->state == LEAF_FOUND;
}

/*
 * Checks the innermost frame before a step by frame pointer. SF_STEP_GO: the registers are those of
 * the caller, for sure: the code from where a call led to up to the pc is known, and says how far
 * above sp the call's return address is, and it is there. LEAF_SKIPS: there may be a caller that
 * the step leaves out. NOT_MINE: nothing says so. Global: verified once.
 */
__noinline int leaf_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_leave *l;
	u64 ra, before;

	if (!s || s->regs.fp < s->regs.sp || (s->regs.fp & 7) ||
	    copy_user(&ra, sizeof(ra), s->regs.fp + 8) || ra < SF_PAGE_MIN ||
	    copy_user(&before, sizeof(before), ra - SF_CALL_BYTES) || !after_call(before))
		return NOT_MINE;
	if (cfg_note_words)
		s->log_far = ~0ull;
	l = &s->leave;
	call_target(ra, before, s->regs.fp + 16, &l->caller);
	if (l->caller <= CALLED_NOTHING || copy_user(l->code, SF_LEAVE_CODE / 4, l->caller) ||
	    !makes_frame(l->code))
		l->caller = 0;
	l->word = s->regs.sp;
	l->state = LEAF_WORD;
	l->maybe = leaf_elsewhere(s, l);
	bpf_loop(LEAF_ROUNDS, leaf_round, &slot, 0);
	if (l->state != LEAF_FOUND)
		return l->maybe || l->state != LEAF_WORD ? LEAF_SKIPS : NOT_MINE;
	if (copy_user(&ra, sizeof(ra), l->word - 8))
		return NOT_MINE;
	s->regs.pc = ra;
	s->regs.sp = l->word;
	s->regs.flags = SF_REGS_RA;
	return SF_STEP_GO;
}

#else

/* Instructions of AArch64. A hint: nop, paciasp, bti and the like. */
#define A64_IS_HINT(i) (((i)&0xfffff01f) == 0xd503201f)
#define A64_IS_PUSH(i) (((i)&0xffc07fff) == 0xa9807bfd) /* stp x29, x30, [sp, #-N]! */
#define A64_SETS_FP(i) (((i)&0xffc003ff) == 0x910003fd) /* add x29, sp, #N */
#define A64_IS_BL(i)   (((i)&0xfc000000) == 0x94000000)
#define A64_INSNS      (SF_LEAVE_CODE / 4)

/* b, bl; br, blr, ret and the like */
#define A64_JUMPS(i)   (((i)&0x7c000000) == 0x14000000 || ((i)&0xfe000000) == 0xd6000000)

/* Whether it may change x29 or x30: where the registers stand that it sets, if it sets any. */
static __always_inline bool a64_sets_kept(u32 insn)
{
	u32 rd = insn & 31, rt2 = insn >> 10 & 31;

	return rd == SF_ARM64_FP || rd == SF_ARM64_LR ||
	       ((insn & 0x3a000000) == 0x28000000 && (rt2 == SF_ARM64_FP || rt2 == SF_ARM64_LR));
}

/* Whether it may change sp, by itself or as the base of an access to memory. */
static __always_inline bool a64_moves_sp(u32 insn)
{
	return (insn & 31) == SF_ARM64_SP ||
	       ((insn & 0x0a000000) == 0x08000000 && (insn >> 5 & 31) == SF_ARM64_SP);
}

/* Whether the function that begins at `addr` makes a frame record first. */
static __always_inline bool a64_makes_frame(struct sf_leave *l, u64 addr)
{
	const u32 *insn = (const u32 *)l->code;

	if (copy_user(l->code, 12, addr))
		return false;
	return A64_IS_PUSH(insn[0]) ||
	       (A64_IS_HINT(insn[0]) &&
		(A64_IS_PUSH(insn[1]) || (A64_IS_HINT(insn[1]) && A64_IS_PUSH(insn[2]))));
}

/* What the call before a return address calls; 0: not known. */
static __always_inline u64 a64_target(u64 ra)
{
	u32 bl;

	if (ra < SF_PAGE_MIN || copy_user(&bl, sizeof(bl), ra - 4) || !A64_IS_BL(bl))
		return 0;
	return ra - 4 + (u64)(long long)((s32)(bl << 6) >> 4);
}

/* Whether the record was made just now, and the frame pointer does not point to it yet. */
static __always_inline bool a64_pushed(const struct sf_scratch *s)
{
	u64 record[2];
	u32 insn[2];

	return !copy_user(insn, sizeof(insn), s->regs.pc - 4) && A64_IS_PUSH(insn[0]) &&
	       A64_SETS_FP(insn[1]) && !copy_user(record, sizeof(record), s->regs.sp) &&
	       record[0] == s->regs.fp && record[1] == s->regs.r[SF_ARM64_LR];
}

/*
 * Whether the code from `to`, where a call led to, up to the pc sets neither x29 nor x30, and has
 * no jump but conditional ones. *ret_sp: nor changes sp.
 */
static __always_inline bool a64_straight(struct sf_scratch *s, u64 to, bool *ret_sp)
{
	u64 len = s->regs.pc - to;
	u32 i;

	*ret_sp = true;
	if (len > SF_LEAVE_CODE || copy_user(s->leave.code, SF_LEAVE_CODE, to))
		return false;
#pragma clang loop unroll(disable)
	for (i = 0; i < A64_INSNS; i++) {
		u32 insn = *(u32 *)&s->leave.code[INDEX(4 * i, SF_LEAVE_CODE)];

		if (4 * i >= len)
			break;
		if (A64_JUMPS(insn) || (a64_sets_kept(insn) && !A64_IS_PUSH(insn)))
			return false;
		*ret_sp &= !a64_moves_sp(insn);
	}
	return true;
}

/*
 * Checks the innermost frame before a step by frame pointer. x30 has the return address at the
 * beginning of a function, in its prologue, and in a leaf. SF_STEP_GO: it has, for sure, and the
 * registers are those of the caller. LEAF_SKIPS: there may be a caller that the step leaves out.
 * NOT_MINE: nothing says so. Global: verified once.
 */
__noinline int leaf_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_leave *l;
	bool sp_known;
	u64 ra, to;

	if (!s)
		return NOT_MINE;
	if (cfg_note_words)
		s->log_far = ~0ull;
	l = &s->leave;
	ra = STEP_RA(&s->regs, s->regs.r[SF_ARM64_LR]);
	if (ra < SF_PAGE_MIN || !follows_call(ra))
		return NOT_MINE;
	sp_known = a64_makes_frame(l, s->regs.pc);
	to = a64_target(ra);
	if (sp_known || a64_pushed(s) || (to && a64_straight(s, to, &sp_known))) {
		s->regs.pc = ra;
		s->regs.flags = SF_REGS_RA | (sp_known ? 0 : SF_REGS_BY_FP);
		return SF_STEP_GO;
	}
	l->caller = 0;
	if (s->regs.fp >= s->regs.sp && !(s->regs.fp & 7) &&
	    !copy_user(&ra, sizeof(ra), s->regs.fp + 8))
		l->caller = a64_target(STEP_RA(&s->regs, ra));
	if (l->caller && !a64_makes_frame(l, l->caller))
		l->caller = 0;
	return leaf_elsewhere(s, l) ? LEAF_SKIPS : NOT_MINE;
}

#endif
#endif
