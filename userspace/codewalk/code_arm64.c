/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AArch64 instructions. All have four bytes, and few forms matter to unwinding, so masks decode
 * them (Arm ARM, C4.1). Others are taken to write their Rd or Rt field, where results go.
 */
#include <string.h>

#include "base/arm64.h"
#include "codewalk/code_op.h"

#define FP 29
#define LR 30
#define SP 31

#define BIT(reg) (1u << (reg))
#define RD(i)	 ((uint8_t)((i)&31))
#define RN(i)	 ((uint8_t)((i) >> 5 & 31))
#define RT2(i)	 ((uint8_t)((i) >> 10 & 31))
#define RM(i)	 ((uint8_t)((i) >> 16 & 31))

static int64_t extend(uint64_t v, unsigned int bits)
{
	return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

/* Bits lsb.. of the instruction, as a number with sign. */
static int64_t field(uint32_t insn, unsigned int lsb, unsigned int bits)
{
	return extend(insn >> lsb, bits);
}

/* A general register that is written; 31 is the zero register there. */
static uint32_t written(uint8_t reg)
{
	return reg == SP ? 0 : BIT(reg);
}

static uint8_t gpr(uint8_t reg)
{
	return reg == SP ? CODE_NO_REG : reg;
}

static void to_const(struct code_op *op, uint8_t dst, int64_t imm)
{
	code_op_const(op, dst, imm);
	op->keeps_flags = true;
}

/* Branches, exceptions, system instructions. */
static void take_branch(uint32_t i, uint64_t addr, struct code_op *op)
{
	if ((i & 0x7c000000) == 0x14000000) { /* b, bl */
		op->kind = i >> 31 ? OP_CALL : OP_JUMP;
		op->target = addr + (uint64_t)(field(i, 0, 26) * 4);
		op->writes = i >> 31 ? BIT(LR) : 0;
	} else if ((i & 0xff000000) == 0x54000000) { /* b.cond */
		static const uint8_t conds[16] = { [1] = COND_NOT_EQ,
						   [2] = COND_ABOVE_EQ,
						   [3] = COND_BELOW,
						   [8] = COND_ABOVE,
						   [9] = COND_BELOW_EQ };

		op->kind = OP_BRANCH;
		op->cond = conds[i & 15];
		op->target = addr + (uint64_t)(field(i, 5, 19) * 4);
		op->keeps_flags = true;
		if ((i & 14) == 14) /* always */
			op->kind = OP_JUMP;
	} else if ((i & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
		op->kind = OP_BRANCH;
		op->target = addr + (uint64_t)(field(i, 5, 19) * 4);
	} else if ((i & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
		op->kind = OP_BRANCH;
		op->target = addr + (uint64_t)(field(i, 5, 14) * 4);
	} else if ((i & 0xfffffc1f) == 0xd65f0000 || (i & 0xfffffbff) == 0xd65f0bff) {
		op->kind = RN(i) == LR || (i & 0x800) ? OP_RET : OP_JUMP_REG; /* ret, retaa */
		op->src = RN(i);
	} else if ((i & 0xfeff0000) == 0xd63f0000) { /* blr, with or without authentication */
		op->kind = OP_CALL;
		op->writes = BIT(LR);
	} else if ((i & 0xfeff0000) == 0xd61f0000) {
		op->kind = OP_JUMP_REG;
		op->src = RN(i);
	} else if ((i & 0xff000000) == 0xd4000000) { /* svc, brk, udf: exceptions */
		op->kind = (i & 0xffe0001f) == 0xd4000001 ? OP_SYSCALL : OP_END;
		op->writes = op->kind == OP_SYSCALL ? BIT(0) : 0;
	} else if ((i & 0xfffff01f) == 0xd503201f) { /* hints */
		/* paciasp, pacibsp, paciaz, autiasp, ...: CRm 3 with the key and sign in op2 */
		op->kind = (i >> 8 & 15) == 3 ? OP_SIGN : OP_NOP;
	} else if ((i & 0xffc00000) == 0xd5000000) { /* msr, mrs, barriers, cache operations */
		op->writes = i & 0x00200000 ? written(RD(i)) : 0;
	} else {
		op->kind = OP_BAD;
	}
}

/* Data processing with an immediate. */
static void take_immediate(uint32_t i, uint64_t addr, struct code_op *op)
{
	const bool wide = i >> 31;

	if (arm64_is_adr(i)) {
		to_const(op, gpr(RD(i)), (int64_t)arm64_adr_target(i, addr));
	} else if ((i & 0x1f800000) == 0x11000000) { /* add, sub */
		int64_t imm = (int64_t)(i >> 10 & 0xfff) << (i & 0x400000 ? 12 : 0);
		const bool flags = i & 0x20000000;

		op->writes = flags ? written(RD(i)) : BIT(RD(i));
		if (flags && RD(i) == SP && i & 0x40000000) { /* cmp */
			op->kind = OP_COMPARE;
			op->src = RN(i);
			op->imm = imm;
			op->size = wide ? 8 : 4;
		} else if (wide && !(flags && RD(i) == SP)) {
			code_op_lea(op, RD(i), RN(i), i & 0x40000000 ? -imm : imm);
			op->keeps_flags = !flags;
		}
	} else if ((i & 0x1f800000) == 0x12000000) { /* and, orr, eor, ands */
		op->writes = (i >> 29 & 3) == 3 ? written(RD(i)) : BIT(RD(i));
		op->keeps_flags = (i >> 29 & 3) != 3;
		if ((i & 0xffc00000) == 0x92400000 && RD(i) == SP) { /* and sp, x, #-2^n */
			op->kind = OP_AND;
			op->dst = SP;
			op->src = RN(i);
			op->imm = -16;
		}
	} else if ((i & 0x1f800000) == 0x12800000) { /* movn, movz, movk */
		int64_t v = (int64_t)((uint64_t)(i >> 5 & 0xffff) << (i >> 21 & 3) * 16);

		op->writes = written(RD(i));
		op->keeps_flags = true;
		op->is_number = true;
		if ((i >> 29 & 3) == 2)
			to_const(op, gpr(RD(i)), v);
		else if (!(i >> 29 & 3))
			to_const(op, gpr(RD(i)), wide ? ~v : (int64_t)(uint32_t)~v);
	} else {
		op->writes = written(RD(i)); /* bfm, extr */
		op->keeps_flags = true;
		if ((i & 0x7fbffc00) == 0x53001c00 || (i & 0x7fbffc00) == 0x53003c00) {
			op->kind = OP_COPY; /* uxtb, uxth */
			op->dst = gpr(RD(i));
			op->src = gpr(RN(i));
			op->size = i & 0x2000 ? 2 : 1;
		}
	}
}

/* Data processing with registers. */
static void take_register(uint32_t i, struct code_op *op)
{
	const bool wide = i >> 31;

	op->writes = written(RD(i));
	if ((i & 0x7fe0ffe0) == 0x2a0003e0) { /* mov */
		op->keeps_flags = true;
		op->src = gpr(RM(i));
		if (wide) {
			code_op_lea(op, gpr(RD(i)), op->src, 0);
		} else {
			op->kind = OP_COPY;
			op->dst = gpr(RD(i));
			op->size = 4;
		}
	} else if ((i & 0x1f200000) == 0x0b200000) { /* add, sub, with an extended register */
		const bool flags = i & 0x20000000;
		const uint8_t option = i >> 13 & 7;

		op->writes = flags ? written(RD(i)) : BIT(RD(i));
		op->keeps_flags = !flags;
		if (wide && !flags) {
			op->kind = OP_ADD;
			op->dst = RD(i);
			op->src = RN(i);
			op->src2 = gpr(RM(i));
			op->shift = i >> 10 & 7;
			op->negative = i & 0x40000000;
			op->is_signed = option >= 4;
		}
	} else if ((i & 0x1f200000) == 0x0b000000 && wide && !(i & 0x20000000)) {
		op->keeps_flags = true; /* add, sub, with a shifted register */
		op->kind = OP_ADD;
		op->dst = gpr(RD(i));
		op->src = gpr(RN(i));
		op->src2 = gpr(RM(i));
		op->shift = i >> 22 & 3 ? 63 : i >> 10 & 63;
		op->negative = i & 0x40000000;
	} else if ((i & 0x7fe0001f) == 0x6b00001f) { /* cmp */
		op->kind = OP_COMPARE;
		op->src = gpr(RN(i));
		op->src2 = gpr(RM(i));
		op->size = wide ? 8 : 4;
		if (op->src2 == CODE_NO_REG)
			op->kind = OP_OTHER;
	} else {
		op->keeps_flags = !(i & 0x20000000);
	}
}

static void take_pair(uint32_t i, struct code_op *op)
{
	const bool simd = i & 0x04000000, load = i & 0x00400000;
	const unsigned int mode = i >> 23 & 3; /* 0: no allocate, 1: post, 2: offset, 3: pre */
	const unsigned int opc = i >> 30;
	const unsigned int each = simd ? 4u << opc : opc == 2 ? 8 : 4;
	const int32_t by = (int32_t)field(i, 15, 7) * (int32_t)each;

	op->keeps_flags = true;
	op->base = RN(i);
	op->imm = mode == 1 ? 0 : by;
	op->writeback = mode & 1 ? by : 0;
	if (simd) {
		op->store_size = load ? 0 : (uint16_t)(2 * each);
		return;
	}
	op->size = (uint8_t)each;
	if (load) {
		op->kind = OP_LOAD;
		op->dst = gpr(RD(i));
		op->dst2 = gpr(RT2(i));
		op->is_signed = opc == 1;
		op->writes = written(RD(i)) | written(RT2(i));
	} else {
		op->kind = OP_STORE;
		op->src2 = gpr(RD(i));
		op->src3 = gpr(RT2(i));
		/* A pair of zero registers is stored too */
		if (op->src3 == CODE_NO_REG) {
			op->kind = OP_OTHER;
			op->store_size = (uint16_t)(2 * each);
		}
	}
}

/* One register: immediate offsets, with writeback or not, and register offsets. */
static void take_single(uint32_t i, struct code_op *op)
{
	const bool simd = i & 0x04000000;
	const unsigned int opc = i >> 22 & 3, log = simd && opc & 2 ? 4 : i >> 30;
	const bool load = simd ? opc & 1 : opc != 0;

	op->keeps_flags = true;
	op->base = RN(i);
	op->size = (uint8_t)(1u << log);
	if (i & 0x01000000) { /* unsigned offset */
		op->imm = (int64_t)(i >> 10 & 0xfff) << log;
	} else if (!(i & 0x00200000)) {
		const unsigned int mode = i >> 10 & 3; /* 1: post, 3: pre */

		op->imm = mode == 1 ? 0 : field(i, 12, 9);
		op->writeback = mode & 1 ? (int32_t)field(i, 12, 9) : 0;
	} else if ((i >> 10 & 3) == 2) { /* register offset */
		op->index = gpr(RM(i));
		op->shift = i & 0x1000 ? (uint8_t)log : 0;
	} else { /* atomics */
		op->base = CODE_NO_REG;
		op->writes = written(RD(i));
		return;
	}
	if (simd || (i >> 30 == 3 && opc == 2)) { /* or a prefetch */
		op->store_size = load || op->index != CODE_NO_REG ? 0 : op->size;
		return;
	}
	if (load) {
		op->kind = OP_LOAD;
		op->dst = gpr(RD(i));
		op->is_signed = opc >= 2;
		op->writes = written(RD(i));
	} else if (op->index == CODE_NO_REG) {
		op->kind = OP_STORE;
		op->src2 = gpr(RD(i));
	}
}

static void take_memory(uint32_t i, uint64_t addr, struct code_op *op)
{
	(void)addr;
	if ((i & 0x3a000000) == 0x28000000) {
		take_pair(i, op);
	} else if ((i & 0x3a000000) == 0x38000000) {
		take_single(i, op);
	} else {
		/* Literals, exclusives (Rs is written), SIMD structures (Rn may be written) */
		op->writes = i & 0x04000000 ? 0 : written(RD(i)) | written(RM(i)) | written(RT2(i));
		if ((i & 0xbe800000) == 0x0c800000)
			op->writes = BIT(RN(i));
		op->keeps_flags = true;
	}
}

/*
 * SIMD and floating point: only conversions, FMOV, UMOV and SMOV write general registers (Arm ARM,
 * C4.1). Compilers clear all of v0 to v31 before a return (-fzero-call-used-regs).
 */
static bool writes_general(uint32_t i)
{
	return ((i & 0x7f200000) == 0x1e000000) || /* fixed point */
	       ((i & 0x7f20fc00) == 0x1e200000) || /* integers */
	       ((i & 0xbfe0ec00) == 0x0e002c00);
}

#define ADD_AHEAD 8 /* instructions between adrp and add, at most */

/* What an add after adrp adds to the page's address in reg; -page: there is none. */
static int64_t added_to_page(const uint8_t *at, size_t have, uint8_t reg, int64_t page)
{
	uint32_t i;

	for (size_t k = 1; k <= ADD_AHEAD && 4 * k + 4 <= have; k++) {
		memcpy(&i, at + 4 * k, 4);
		if ((i & 0xffc00000) == 0x91000000 && RN(i) == reg && RD(i) == reg)
			return i >> 10 & 0xfff;
		if (arm64_is_jump(i))
			break;
	}
	return -page;
}

static void decode(const uint8_t *at, size_t have, uint64_t addr, struct code_op *ret)
{
	uint32_t i;

	*ret = (struct code_op){ .kind = OP_BAD,
				 .len = 4,
				 .dst = CODE_NO_REG,
				 .dst2 = CODE_NO_REG,
				 .src = CODE_NO_REG,
				 .src2 = CODE_NO_REG,
				 .src3 = CODE_NO_REG,
				 .base = CODE_NO_REG,
				 .index = CODE_NO_REG };
	if (have < 4)
		return;
	memcpy(&i, at, 4);
	ret->kind = OP_OTHER;
	switch (i >> 25 & 15) {
	case 8:
	case 9:
		take_immediate(i, addr, ret);
		if (arm64_is_adr(i) && i >> 31)
			ret->imm2 = added_to_page(at, have, RD(i), ret->imm);
		break;
	case 10:
	case 11:
		take_branch(i, addr, ret);
		break;
	case 4:
	case 6:
	case 12:
	case 14:
		take_memory(i, addr, ret);
		break;
	case 5:
	case 13:
		take_register(i, ret);
		break;
	case 7:
	case 15: /* SIMD and floating point */
		ret->writes = writes_general(i) ? written(RD(i)) : 0;
		break;
	case 2: /* SVE */
		ret->writes = written(RD(i));
		break;
	default: /* unallocated; udf is a trap */
		ret->kind = i >> 16 ? OP_BAD : OP_END;
	}
}

const struct code_arch code_arch_arm64 = {
	.nregs = 32,
	.sp = SP,
	.fp = FP,
	.ra = LR,
	.syscall = 8,
	.exits = { 93, 94 },
	.clones = { 220, 435 },
	.ra_bytes = 0,
	.align = 4,
	.callee_saved = 0x3ff80000,  /* x19 to x29 */
	.call_clobbers = 0x4007ffff, /* x0 to x18, x30 */
	.decode = decode,
};
