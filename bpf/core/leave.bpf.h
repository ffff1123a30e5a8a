/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Steps out of run-time code by its instructions (x86-64).
 *
 * Much of such code is a few instructions around one call or jump: what CPython puts around each
 * call of a function for perf (Python/asm_trampoline.S), GCC's trampolines of nested functions,
 * thunks. If nothing but instructions that leave_insn knows lies between the pc and the return, or
 * a jump that ends a trampoline, then what they do to rsp and rbp is known, and the step is exact.
 *
 * In the innermost frame rbp may still be the frame pointer of the caller: a function sets its own
 * after it has begun, and a leaf may never do so. A step by frame pointer then leaves out the
 * caller. leave_prologue knows the first instructions of functions; see leaf.bpf.h for the others.
 */
#ifndef SFBPF_LEAVE_BPF_H
#define SFBPF_LEAVE_BPF_H

#include "lang/code.bpf.h"
#include "core/probe.bpf.h"

#ifdef __TARGET_ARCH_x86

#define LEAVE_INSNS 16
#define LEAVE_FRAME (1 << 20) /* bytes of a frame, at most */

#define REX_W 8
#define REX_R 4
#define REX_B 1

enum { LEAVE_RBX = 3, LEAVE_RSP = 4, LEAVE_RBP = 5, LEAVE_R10 = 10, LEAVE_R11 = 11 };

/* sf_leave.state: still among known instructions, at the return, at one that is not known */
enum { LEAVE_ON, LEAVE_RETURN, LEAVE_UNKNOWN };

/* Moves sp up, over `bytes`. */
static __always_inline void leave_drop(struct sf_leave *l, s64 bytes)
{
	if (bytes <= 0 || (bytes & 7) || bytes > LEAVE_FRAME)
		l->state = LEAVE_UNKNOWN;
	else
		l->sp += bytes;
}

static __always_inline void leave_pop(struct sf_leave *l, u32 reg)
{
	u64 val = 0;

	if (reg == LEAVE_RSP ||
	    ((reg == LEAVE_RBP || reg == LEAVE_RBX) && copy_user(&val, sizeof(val), l->sp)))
		l->state = LEAVE_UNKNOWN;
	if (reg == LEAVE_RBP)
		l->fp = val;
	if (reg == LEAVE_RBX) {
		l->bx = val;
		l->flags = SF_REGS_BX;
	}
	l->sp += 8;
}

/* The register has another value. */
static __always_inline void leave_set(struct sf_leave *l, u32 reg)
{
	if (reg == LEAVE_RSP || reg == LEAVE_RBP)
		l->state = LEAVE_UNKNOWN;
	if (reg == LEAVE_RBX)
		l->flags = 0;
	if (reg == LEAVE_R10 || reg == LEAVE_R11)
		l->loaded = 1;
}

/* sp is what the frame pointer holds. */
static __always_inline void leave_frame(struct sf_leave *l)
{
	if (l->fp < l->sp || l->fp - l->sp > LEAVE_FRAME)
		l->state = LEAVE_UNKNOWN;
	l->sp = l->fp;
}

/* An instruction with a ModRM byte that names two registers. Returns its length after REX. */
static __always_inline u32 leave_modrm(struct sf_leave *l, u64 w, u32 rex)
{
	u32 op = w & 0xff, modrm = w >> 8 & 0xff;
	u32 reg = (modrm >> 3 & 7) | (rex & REX_R ? 8 : 0);
	u32 rm = (modrm & 7) | (rex & REX_B ? 8 : 0);

	if ((op == 0x83 || op == 0x81) && modrm == 0xc4 && rex == REX_W) { /* add imm, %rsp */
		leave_drop(l, op == 0x83 ? (signed char)(w >> 16) : (s32)(w >> 16));
		return op == 0x83 ? 3 : 6;
	}
	if (op == 0x8d && (w >> 16 & 0xff) == 0x24 && rex == REX_W) { /* lea disp(%rsp), %rsp */
		if (modrm == 0x64) {
			leave_drop(l, (signed char)(w >> 24));
			return 4;
		}
		if (modrm == 0xa4) {
			leave_drop(l, (s32)(w >> 24));
			return 7;
		}
	}
	if (modrm < 0xc0)
		return 0;
	if (op == 0x89 && modrm == 0xec && rex == REX_W) /* mov %rbp, %rsp */
		leave_frame(l);
	else if (op == 0x89 || op == 0x31) /* mov, xor */
		leave_set(l, rm);
	else if (op == 0x8b || op == 0x33)
		leave_set(l, reg);
	else if (op != 0x85) /* test */
		return 0;
	return 2;
}

/* The instruction w, without its REX prefix. Returns its length; 0: it is not known. */
static __always_inline u32 leave_op(struct sf_leave *l, u64 w, u32 rex)
{
	u32 op = w & 0xff, reg = (op & 7) | (rex & REX_B ? 8 : 0);

	if ((op & 0xf8) == 0x58) {
		leave_pop(l, reg);
		return 1;
	}
	if ((op & 0xf8) == 0xb8) { /* mov imm, %reg */
		leave_set(l, reg);
		return rex & REX_W ? 9 : 5;
	}
	if (op == 0xff && ((w >> 8 & 0xff) == 0xe2 || (w >> 8 & 0xff) == 0xe3) && (rex & REX_B) &&
	    (l->loaded || (rex & REX_W))) { /* jmp *%r10, *%r11; GCC's has a superfluous REX.W */
		l->state = LEAVE_RETURN;
		return 2;
	}
	if (op == 0xc3 || op == 0xc9)
		return 0;
	return leave_modrm(l, w, rex);
}

/* Follows one instruction. 1: the walk is over. */
static int leave_insn(u32 round, void *ctx)
{
	u32 slot = *(u32 *)ctx, n;
	struct sf_scratch *s = scratch_of(slot);
	struct sf_leave *l;
	u64 w;

	if (!s)
		return 1;
	l = &s->leave;
	w = *(u64 *)&l->code[INDEX(l->at, SF_LEAVE_CODE)];
	if ((u8)w == 0xc3 || (u16)w == 0xc3f3) { /* ret, rep ret */
		l->state = LEAVE_RETURN;
		n = (u8)w == 0xc3 ? 1 : 2;
	} else if ((u8)w == 0xc9) { /* leave */
		leave_frame(l);
		leave_pop(l, LEAVE_RBP);
		n = 1;
	} else if ((u8)w == 0x90) { /* nop */
		n = 1;
	} else if ((u32)w == 0xfa1e0ff3) { /* endbr64 */
		n = 4;
	} else if ((w & 0xffffff) == 0x77f8c5) { /* vzeroupper */
		n = 3;
	} else if ((w & 0xf0) == 0x40) {
		n = leave_op(l, w >> 8, w & 0xf);
		n += n != 0;
	} else {
		n = leave_op(l, w, 0);
	}
	l->at += n;
	if (!n || l->at > l->len)
		l->state = LEAVE_UNKNOWN;
	return l->state != LEAVE_ON;
}

#define INSN_ENDBR64 0xfa1e0ff3
#define INSN_PUSH_BP 0x55

/* mov %rsp, %rbp, in either encoding; only the first 3 bytes of w are looked at */
static __always_inline bool sets_fp(u64 w)
{
	return (w & 0xffffff) == 0xe58948 || (w & 0xffffff) == 0xec8b48;
}

/* Whether code begins with [endbr64;] push %rbp; mov %rsp, %rbp. */
static __always_inline bool makes_frame(const u8 *code)
{
	u64 w = *(u64 *)code;

	if ((u32)w == INSN_ENDBR64)
		w = *(u64 *)&code[4];
	return (u8)w == INSN_PUSH_BP && sets_fp(w >> 8);
}

/*
 * Whether rbp is not set yet in a prologue, push %rbp; mov %rsp, %rbp. l->sp is then where the
 * return address is. A word that has just been pushed is what rbp holds.
 */
static __always_inline bool leave_prologue(const struct sf_scratch *s, struct sf_leave *l)
{
	u64 w = *(u64 *)l->code, pushed;
	u8 before;

	if (l->len < 12)
		return false;
	if (sets_fp(w)) {
		if (copy_user(&before, sizeof(before), s->regs.pc - 1) || before != INSN_PUSH_BP ||
		    copy_user(&pushed, sizeof(pushed), l->sp) || pushed != l->fp)
			return false;
		l->sp += 8;
		return true;
	}
	return makes_frame(l->code);
}

/*
 * SF_STEP_GO: the registers are those of the caller, for sure. Else NOT_MINE. Global: not in the
 * hot path, and verified once.
 */
__noinline int leave_step(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct sf_leave *l;
	u64 ra;

	if (!s)
		return NOT_MINE;
	l = &s->leave;
	l->sp = s->regs.sp;
	l->fp = s->regs.fp;
	l->bx = s->regs.bx;
	l->flags = s->regs.flags & SF_REGS_BX;
	l->at = l->loaded = 0;
	l->state = LEAVE_ON;
	l->len = SF_PAGE_MIN - (s->regs.pc & (SF_PAGE_MIN - 1));
	if (l->len > SF_LEAVE_CODE)
		l->len = SF_LEAVE_CODE;
	if (copy_user_part(l->code, l->len, SF_LEAVE_CODE, s->regs.pc))
		return NOT_MINE;
	if ((s->regs.flags & SF_REGS_FULL) && leave_prologue(s, l))
		l->state = LEAVE_RETURN;
	else
		bpf_loop(LEAVE_INSNS, leave_insn, &slot, 0);
	if (l->state != LEAVE_RETURN || copy_user(&ra, sizeof(ra), l->sp) ||
	    !(follows_call(ra) || probe_replaced(s, ra)))
		return NOT_MINE;
	s->regs.pc = ra;
	s->regs.sp = l->sp + 8;
	s->regs.fp = l->fp;
	s->regs.bx = l->bx;
	s->regs.flags = SF_REGS_RA | l->flags;
	if (cfg_note_words) /* the memo does not know what was read here */
		s->log_far = ~0ull;
	return SF_STEP_GO;
}

#else

static __always_inline int leave_step(u32 slot)
{
	return NOT_MINE;
}

#endif
#endif
