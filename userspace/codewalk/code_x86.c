/* SPDX-License-Identifier: BSD-2-Clause */
/* x86-64 instructions, decoded by Zydis. */
#include "codewalk/code_op.h"

#ifndef HAVE_ZYDIS

const struct code_arch *code_arch_x86(void)
{
	return NULL;
}

#else

#include <Zydis/Zydis.h>

#include "rows/row.h"

#define X86_REGS 16
#define BIT(reg) (1u << (reg))

/* DWARF numbers in the order of ZYDIS_REGISTER_RAX and so on. */
static const uint8_t dwarf_numbers[X86_REGS] = { 0, 2, 1,  3,  7,  6,  4,  5,
						 8, 9, 10, 11, 12, 13, 14, 15 };

/* The DWARF number of the register that `reg` is part of. */
static uint8_t number(ZydisRegister reg)
{
	ZydisRegister full;

	if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
		return dwarf_numbers[reg - ZYDIS_REGISTER_RAX];
	if (reg < ZYDIS_REGISTER_AL || reg > ZYDIS_REGISTER_R15)
		return CODE_NO_REG;
	full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
	return full >= ZYDIS_REGISTER_RAX && full <= ZYDIS_REGISTER_R15
		       ? dwarf_numbers[full - ZYDIS_REGISTER_RAX]
		       : CODE_NO_REG;
}

struct insn {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t addr;
};

static bool is_reg(const struct insn *in, unsigned int n)
{
	return in->i.operand_count > n && in->op[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       number(in->op[n].reg.value) != CODE_NO_REG;
}

static bool is_mem(const struct insn *in, unsigned int n)
{
	return in->i.operand_count > n && in->op[n].type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static bool is_imm(const struct insn *in, unsigned int n)
{
	return in->i.operand_count > n && in->op[n].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static uint8_t reg_of(const struct insn *in, unsigned int n)
{
	return number(in->op[n].reg.value);
}

/* base, index, shift and imm of memory; false: not expressible (a segment, 32-bit addresses). */
static bool memory(const struct insn *in, unsigned int n, struct code_op *op)
{
	const ZydisDecodedOperandMem *m = &in->op[n].mem;

	if (in->i.address_width != 64 || m->segment == ZYDIS_REGISTER_FS ||
	    m->segment == ZYDIS_REGISTER_GS || m->type == ZYDIS_MEMOP_TYPE_VSIB)
		return false;
	op->imm = m->disp.has_displacement ? m->disp.value : 0;
	op->base = CODE_NO_REG;
	op->index = m->index == ZYDIS_REGISTER_NONE ? CODE_NO_REG : number(m->index);
	op->shift = m->scale == 8 ? 3 : m->scale == 4 ? 2 : m->scale == 2 ? 1 : 0;
	if (m->base == ZYDIS_REGISTER_RIP)
		op->imm += (int64_t)(in->addr + in->i.length);
	else if (m->base != ZYDIS_REGISTER_NONE)
		op->base = number(m->base);
	return m->base == ZYDIS_REGISTER_NONE || m->base == ZYDIS_REGISTER_RIP ||
	       op->base != CODE_NO_REG;
}

/* Registers and memory that the instruction writes, as its tables say. */
static void effects(const struct insn *in, struct code_op *op)
{
	for (unsigned int n = 0; n < in->i.operand_count; n++) {
		const ZydisDecodedOperand *o = &in->op[n];

		if (!(o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (is_reg(in, n))
			op->writes |= BIT(reg_of(in, n));
		else if (is_mem(in, n) && memory(in, n, op) && op->index == CODE_NO_REG)
			op->store_size = o->size / 8;
	}
	if (!op->store_size)
		op->base = op->index = CODE_NO_REG;
}

#define FIRST_PAGE 4096 /* bytes of virtual addresses, where nothing is mapped */

/* A store there is a trap: some programs end so on purpose, and the compiler knows it. */
static bool stores_to_first_page(const struct code_op *op)
{
	return (op->store_size || op->kind == OP_STORE) && op->base == CODE_NO_REG &&
	       op->index == CODE_NO_REG && op->imm >= 0 && op->imm < FIRST_PAGE;
}

static void take_mov(const struct insn *in, struct code_op *op)
{
	const unsigned int bytes = in->op[0].size / 8, from = in->op[1].size / 8;

	op->keeps_flags = true;
	op->size = (uint8_t)from;
	if (is_reg(in, 0) && is_imm(in, 1) && bytes >= 4) {
		op->is_number = true;
		code_op_const(op, reg_of(in, 0),
			      bytes == 8 ? in->op[1].imm.value.s
					 : (int64_t)(uint32_t)in->op[1].imm.value.u);
	} else if (is_reg(in, 0) && is_reg(in, 1) && bytes == 8 && from == 8) {
		code_op_lea(op, reg_of(in, 0), reg_of(in, 1), 0);
	} else if (is_reg(in, 0) && is_reg(in, 1) && bytes >= 4) {
		op->kind = OP_COPY;
		op->dst = reg_of(in, 0);
		op->src = reg_of(in, 1);
	} else if (is_reg(in, 0) && is_mem(in, 1) && bytes >= 4 && memory(in, 1, op)) {
		op->kind = OP_LOAD;
		op->dst = reg_of(in, 0);
	} else if (is_mem(in, 0) && is_reg(in, 1) && bytes == 8 && op->store_size) {
		op->kind = OP_STORE;
		op->src2 = reg_of(in, 1);
		op->size = 8;
		op->store_size = 0;
	}
}

static void take_lea(const struct insn *in, struct code_op *op)
{
	op->keeps_flags = true;
	if (in->op[0].size != 64 || !memory(in, 1, op))
		return;
	if (op->index != CODE_NO_REG && !op->imm) {
		op->kind = OP_ADD;
		op->dst = reg_of(in, 0);
		op->src = op->base;
		op->src2 = op->index;
	}
	if (op->index != CODE_NO_REG)
		return;
	if (op->base == CODE_NO_REG)
		code_op_const(op, reg_of(in, 0), op->imm);
	else
		code_op_lea(op, reg_of(in, 0), op->base, op->imm);
}

static void take_add(const struct insn *in, struct code_op *op)
{
	bool negative = in->i.mnemonic == ZYDIS_MNEMONIC_SUB;

	if (!is_reg(in, 0) || in->op[0].size != 64)
		return;
	if (is_imm(in, 1)) {
		int64_t by = in->op[1].imm.value.s;

		code_op_lea(op, reg_of(in, 0), reg_of(in, 0), negative ? -by : by);
	} else if (is_reg(in, 1)) {
		op->kind = OP_ADD;
		op->dst = op->src = reg_of(in, 0);
		op->src2 = reg_of(in, 1);
		op->negative = negative;
	}
}

static void take_and(const struct insn *in, struct code_op *op)
{
	if (!is_reg(in, 0) || !is_imm(in, 1) || in->op[0].size < 32)
		return;
	op->kind = OP_AND;
	op->dst = op->src = reg_of(in, 0);
	op->imm = in->op[0].size == 64 ? in->op[1].imm.value.s
				       : (int64_t)(uint32_t)in->op[1].imm.value.u;
}

/* An immediate as an unsigned number of the operand's size. */
static int64_t unsigned_imm(const struct insn *in, unsigned int size)
{
	return in->op[1].imm.value.s & (size < 8 ? (1ll << size * 8) - 1 : -1);
}

static void take_compare(const struct insn *in, struct code_op *op)
{
	op->size = (uint8_t)(in->op[0].size / 8);
	if (is_mem(in, 0) && is_imm(in, 1)) {
		if (!memory(in, 0, op) || op->base == CODE_NO_REG)
			return;
		op->kind = OP_COMPARE_MEMORY;
		op->imm2 = unsigned_imm(in, op->size);
		return;
	}
	if (!is_reg(in, 0))
		return;
	op->src = reg_of(in, 0);
	if (is_reg(in, 1))
		op->src2 = reg_of(in, 1);
	else if (is_imm(in, 1))
		op->imm = unsigned_imm(in, op->size);
	else
		return;
	op->kind = OP_COMPARE;
}

static void take_push(const struct insn *in, struct code_op *op)
{
	op->kind = OP_STORE;
	op->base = X86_RSP;
	op->index = CODE_NO_REG;
	op->size = in->i.operand_width == 16 ? 2 : 8;
	op->imm = op->writeback = -op->size;
	op->src2 = is_reg(in, 0) && op->size == 8 ? reg_of(in, 0) : CODE_NO_REG;
	op->writes = 0;
	op->store_size = 0;
	op->keeps_flags = true;
}

static void take_pop(const struct insn *in, struct code_op *op)
{
	const bool mem = is_mem(in, 0) && in->op[0].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT;

	if (mem) {
		if (op->store_size == 8)
			op->pops = 8;
		else
			op->kind = OP_BAD;
		return;
	}
	op->kind = OP_LOAD;
	op->base = X86_RSP;
	op->index = CODE_NO_REG;
	op->size = in->i.operand_width == 16 ? 2 : 8;
	op->imm = 0;
	op->writeback = op->size;
	op->dst = is_reg(in, 0) && in->i.mnemonic == ZYDIS_MNEMONIC_POP ? reg_of(in, 0)
									: CODE_NO_REG;
	op->writes = 0;
}

/* Jump, call or branch: where to. */
static void take_target(const struct insn *in, struct code_op *op, enum code_kind kind)
{
	op->writes = 0;
	op->store_size = 0;
	op->kind = (uint8_t)kind;
	if (is_imm(in, 0) && in->op[0].imm.is_relative) {
		op->target = in->addr + in->i.length + (uint64_t)in->op[0].imm.value.s;
	} else if (kind == OP_JUMP && is_reg(in, 0)) {
		op->kind = OP_JUMP_REG;
		op->src = reg_of(in, 0);
	} else if (kind == OP_JUMP && is_mem(in, 0) && memory(in, 0, op)) {
		op->kind = OP_JUMP_TABLE;
	} else if (kind == OP_CALL && is_mem(in, 0) && !memory(in, 0, op)) {
		op->base = op->index = CODE_NO_REG;
		op->imm = 0;
	}
}

static void take_branch(const struct insn *in, struct code_op *op)
{
	take_target(in, op, OP_BRANCH);
	op->keeps_flags = true;
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_JNBE:
		op->cond = COND_ABOVE;
		break;
	case ZYDIS_MNEMONIC_JBE:
		op->cond = COND_BELOW_EQ;
		break;
	case ZYDIS_MNEMONIC_JNB:
		op->cond = COND_ABOVE_EQ;
		break;
	case ZYDIS_MNEMONIC_JB:
		op->cond = COND_BELOW;
		break;
	case ZYDIS_MNEMONIC_JNZ:
		op->cond = COND_NOT_EQ;
		break;
	default:
		break;
	}
}

static bool forbidden(const struct insn *in)
{
	switch (in->i.meta.category) {
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_VTX:
		return true;
	default:
		return (in->i.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) ||
		       in->i.mnemonic == ZYDIS_MNEMONIC_CLI ||
		       in->i.mnemonic == ZYDIS_MNEMONIC_STI ||
		       in->i.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	}
}

static void take_syscall(const struct insn *in, struct code_op *op)
{
	op->writes |= BIT(X86_RAX); /* the tables know of rcx and r11 */
	if (in->i.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		op->kind = OP_SYSCALL;
}

#define POPS_MAX 128 /* bytes; more are no arguments of a function */

/* Such a return is not SysV's: most are not code at all. */
static void take_pops(const struct insn *in, struct code_op *op)
{
	const uint64_t pops = in->op[0].imm.value.u;

	if (pops % 8 || pops > POPS_MAX)
		op->kind = OP_BAD;
	else
		op->pops = (int32_t)pops;
}

static void take_control(const struct insn *in, struct code_op *op)
{
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		take_target(in, op, OP_CALL);
		break;
	case ZYDIS_MNEMONIC_JMP:
		take_target(in, op, OP_JUMP);
		break;
	case ZYDIS_MNEMONIC_RET:
		op->kind = OP_RET;
		op->writes = 0;
		if (is_imm(in, 0))
			take_pops(in, op);
		break;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_INT3:
		op->kind = OP_END;
		break;
	case ZYDIS_MNEMONIC_LEAVE:
		op->kind = OP_LEAVE;
		op->writes = 0;
		break;
	case ZYDIS_MNEMONIC_ENTER:
		op->kind = in->op[1].imm.value.u ? OP_BAD : OP_ENTER;
		op->imm = (int64_t)in->op[0].imm.value.u;
		op->writes = 0;
		op->store_size = 0;
		break;
	default:
		if (in->i.meta.category == ZYDIS_CATEGORY_COND_BR ||
		    in->i.mnemonic == ZYDIS_MNEMONIC_XBEGIN)
			take_branch(in, op);
		else if (forbidden(in))
			op->kind = OP_BAD;
		else if (in->i.meta.category == ZYDIS_CATEGORY_SYSCALL)
			take_syscall(in, op);
		else if (in->i.meta.category == ZYDIS_CATEGORY_NOP ||
			 in->i.meta.category == ZYDIS_CATEGORY_WIDENOP)
			op->kind = OP_NOP;
	}
}

static void take_data(const struct insn *in, struct code_op *op)
{
	switch (in->i.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		take_mov(in, op);
		break;
	case ZYDIS_MNEMONIC_MOVSXD:
		take_mov(in, op);
		op->is_signed = true;
		op->keeps_flags = true;
		break;
	case ZYDIS_MNEMONIC_CDQE:
		op->kind = OP_COPY;
		op->dst = op->src = 0;
		op->size = 4;
		op->is_signed = op->keeps_flags = true;
		break;
	case ZYDIS_MNEMONIC_LEA:
		take_lea(in, op);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		take_add(in, op);
		break;
	case ZYDIS_MNEMONIC_AND:
		take_and(in, op);
		break;
	case ZYDIS_MNEMONIC_CMP:
		take_compare(in, op);
		break;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		take_push(in, op);
		break;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
		take_pop(in, op);
		break;
	default:
		take_control(in, op);
	}
}

static const ZydisDecoder *decoder(void)
{
	static ZydisDecoder d;
	static bool ready;

	if (!ready) {
		ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ready = true;
	}
	return &d;
}

/*
 * Whether operands that the assembler does not write matter here. Those of control flow, push and
 * pop are known; the only one of arithmetic is the flags. Each costs a tenth of the decoding.
 */
static bool hidden_operands_count(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_POP:
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_WIDENOP:
		return false;
	case ZYDIS_CATEGORY_BINARY:
	case ZYDIS_CATEGORY_LOGICAL:
	case ZYDIS_CATEGORY_SHIFT:
		return i->operand_count != i->operand_count_visible + 1;
	default:
		return true;
	}
}

/* A prefix. A jump may lead behind it: glibc's malloc() leaves it out if there is one thread. */
#define LOCK	 0xf0

static const uint8_t sub_rsp_rax[] = { 0x48, 0x29, 0xc4 };

static void decode(const uint8_t *at, size_t have, uint64_t addr, struct code_op *ret)
{
	ZydisDecoderContext context;
	struct insn in;

	*ret = (struct code_op){ .kind = OP_BAD,
				 .len = 1,
				 .dst = CODE_NO_REG,
				 .dst2 = CODE_NO_REG,
				 .src = CODE_NO_REG,
				 .src2 = CODE_NO_REG,
				 .src3 = CODE_NO_REG,
				 .base = CODE_NO_REG,
				 .index = CODE_NO_REG };
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder(), &context, at, have, &in.i)))
		return;
	if (*at == LOCK) {
		ret->kind = OP_OTHER;
		ret->keeps_flags = true;
		return;
	}
	if (!hidden_operands_count(&in.i))
		in.i.operand_count = in.i.operand_count_visible;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeOperands(decoder(), &context, &in.i, in.op,
						     in.i.operand_count)))
		return;
	in.addr = addr;
	ret->kind = OP_OTHER;
	ret->len = in.i.length;
	effects(&in, ret);
	take_data(&in, ret);
	if (stores_to_first_page(ret))
		ret->kind = OP_END;
	/* Functions that probe the stack for a large frame return the size, which is in rax. */
	ret->keeps_result = ret->kind == OP_CALL && have - ret->len >= sizeof(sub_rsp_rax) &&
			    !memcmp(at + ret->len, sub_rsp_rax, sizeof(sub_rsp_rax));
}

const struct code_arch *code_arch_x86(void)
{
	static const struct code_arch x86 = {
		.nregs = X86_REGS,
		.sp = X86_RSP,
		.fp = X86_RBP,
		.result = X86_RAX,
		.argument = 5, /* rdi */
		.syscall = X86_RAX,
		.exits = { 60, 231 },
		.clones = { 56, 435 },
		.ra = CODE_NO_REG,
		.ra_bytes = 8,
		.align = 1,
		.popped_is_valid = true,
		.callee_saved = BIT(3) | BIT(6) | BIT(12) | BIT(13) | BIT(14) | BIT(15),
		.call_clobbers = BIT(0) | BIT(1) | BIT(2) | BIT(4) | BIT(5) | BIT(8) | BIT(9) |
				 BIT(10) | BIT(11),
		.decode = decode,
	};

	return &x86;
}

#endif
