/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine instruction as far as it matters to unwinding: what it does to registers that hold
 * addresses on the stack or a caller's values, and where control goes. Registers are DWARF numbers
 * (rows/row.h). The decoders (code_x86.c, code_arm64.c) make these.
 */
#ifndef SFBPF_CODEWALK_CODE_OP_H
#define SFBPF_CODEWALK_CODE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_NO_REG 0xff
#define CODE_REGS   32 /* registers tracked at most */

enum code_kind {
	OP_BAD,		   /* not an instruction, or none that user space may execute */
	OP_OTHER,	   /* only the effects in `writes` and `store_size` */
	OP_NOP,		   /* padding too */
	OP_LEA,		   /* dst = src + imm */
	OP_CONST,	   /* dst = imm */
	OP_ADD,		   /* dst = src + (src2 << shift); src may be CODE_NO_REG: 0 */
	OP_AND,		   /* dst = src & imm */
	OP_COPY,	   /* dst = part of src of `size` bytes, extended as is_signed says */
	OP_LOAD,	   /* dst [and dst2] = memory */
	OP_STORE,	   /* memory = src2 [and src3] */
	OP_COMPARE,	   /* src with imm, or with src2, in `size` bytes */
	OP_COMPARE_MEMORY, /* memory of `size` bytes with imm2 */
	OP_SYSCALL,
	OP_SIGN,  /* the return address register is signed, or authenticated */
	OP_LEAVE, /* x86: sp = fp, pop fp */
	OP_ENTER, /* x86: push fp, fp = sp, sp -= imm */
	OP_CALL,
	OP_RET,
	OP_JUMP,       /* goes to target; 0: unknown */
	OP_JUMP_TABLE, /* goes to one of the 8-byte entries at memory */
	OP_JUMP_REG,   /* goes to src */
	OP_BRANCH,     /* goes to target, or on */
	OP_END,	       /* does not go on: a trap */
};

enum code_cond { /* conditions of OP_BRANCH, where it bounds the compared register */
		 COND_OTHER,
		 COND_ABOVE,	/* unsigned > */
		 COND_BELOW_EQ, /* unsigned <= */
		 COND_ABOVE_EQ, /* unsigned >= */
		 COND_BELOW,	/* unsigned < */
		 COND_NOT_EQ,
};

/*
 * Memory is at base + imm, or at imm if base is CODE_NO_REG; with index it is anywhere after that.
 * Then base += writeback.
 */
struct code_op {
	uint8_t kind, len;
	uint8_t dst, dst2, src, src2, src3;
	uint8_t base, index;
	uint8_t size;  /* bytes of one register in memory, or of an operand */
	uint8_t shift; /* shift of src2, or log2 of the scale of index */
	uint8_t cond;
	bool is_signed;	     /* OP_LOAD and OP_COPY extend the sign */
	bool keeps_flags;    /* what OP_COMPARE said holds after it */
	bool negative;	     /* OP_ADD subtracts */
	bool is_number;	     /* OP_CONST: imm is there as it is, not relative to the instruction */
	bool keeps_result;   /* OP_CALL does not change the result's register */
	uint16_t store_size; /* bytes written at base + imm by an op other than OP_STORE */
	int32_t writeback;
	/* registers whose new value is unknown, unless it is dst; OP_CALL: not of the callee's */
	uint32_t writes;
	/* OP_CALL: registers that the callee leaves alone, beyond the calling convention */
	uint32_t spared;
	/*
	 * Bytes of the stack. OP_CALL, OP_RET: arguments that are removed. OP_OTHER: what is popped
	 * before memory is written
	 */
	int32_t pops;
	int64_t imm;
	/*
	 * OP_COMPARE_MEMORY: the number. OP_CONST: imm + imm2 is the address of code that this
	 * instruction takes, with a later one that adds imm2; -imm: it takes none
	 */
	int64_t imm2;
	uint64_t target; /* virtual address; 0: not known */
};

static inline void code_op_lea(struct code_op *op, uint8_t dst, uint8_t src, int64_t imm)
{
	op->kind = OP_LEA;
	op->dst = dst;
	op->src = src;
	op->imm = imm;
}

static inline void code_op_const(struct code_op *op, uint8_t dst, int64_t imm)
{
	op->kind = OP_CONST;
	op->dst = dst;
	op->imm = imm;
}

/* The registers with another value after it; of a call, those that the callee changes are not. */
static inline uint32_t code_op_writes(const struct code_op *op)
{
	return op->writes | (op->dst != CODE_NO_REG ? 1u << op->dst : 0) |
	       (op->dst2 != CODE_NO_REG ? 1u << op->dst2 : 0);
}

/* What the calling convention and the machine say. */
struct code_arch {
	uint8_t nregs, sp, fp, result, argument; /* argument: the first one */
	uint8_t ra;	      /* register of the return address; CODE_NO_REG: it is on the stack */
	uint8_t ra_bytes;     /* bytes of the return address on the stack at entry */
	uint8_t align;	      /* alignment of instructions */
	bool popped_is_valid; /* a saved value still counts below sp (x86's CFI) */
	uint8_t syscall;      /* register of the number of a system call */
	/* exit and exit_group, clone and clone3 (asm/unistd_64.h, asm-generic/unistd.h of Linux) */
	uint16_t exits[2], clones[2];
	uint32_t callee_saved;
	uint32_t call_clobbers;
	/* Decodes at most `have` bytes; OP_BAD if they are none, with len 1 or align. */
	void (*decode)(const uint8_t *at, size_t have, uint64_t addr, struct code_op *ret);
};

extern const struct code_arch code_arch_arm64;
/* NULL if this program was built without Zydis. */
const struct code_arch *code_arch_x86(void);

#endif
