/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/eh_expr.h"

#define EXPR_DEPTH 8 /* stack; the deepest expression of a linker or compiler has 3 */

/* DWARF 5, 7.7.1 */
enum {
	DW_OP_addr = 0x03,
	DW_OP_deref = 0x06,
	DW_OP_const1u = 0x08,
	DW_OP_const1s = 0x09,
	DW_OP_const2u = 0x0a,
	DW_OP_const2s = 0x0b,
	DW_OP_const4u = 0x0c,
	DW_OP_const4s = 0x0d,
	DW_OP_const8u = 0x0e,
	DW_OP_const8s = 0x0f,
	DW_OP_constu = 0x10,
	DW_OP_consts = 0x11,
	DW_OP_dup = 0x12,
	DW_OP_drop = 0x13,
	DW_OP_over = 0x14,
	DW_OP_swap = 0x16,
	DW_OP_and = 0x1a,
	DW_OP_minus = 0x1c,
	DW_OP_mul = 0x1e,
	DW_OP_plus = 0x22,
	DW_OP_plus_uconst = 0x23,
	DW_OP_shl = 0x24,
	DW_OP_ge = 0x2a,
	DW_OP_gt = 0x2b,
	DW_OP_lit0 = 0x30,
	DW_OP_lit31 = 0x4f,
	DW_OP_breg0 = 0x70,
	DW_OP_breg31 = 0x8f,
	DW_OP_bregx = 0x92,
	DW_OP_nop = 0x96,
};

struct expr_stack {
	struct eh_expr at[EXPR_DEPTH];
	unsigned int n;
	bool lost; /* a value has no shape, or the stack over- or underflowed */
};

static void push(struct expr_stack *s, const struct eh_expr *e)
{
	if (s->n == EXPR_DEPTH || e->kind == EXPR_NONE)
		s->lost = true;
	else
		s->at[s->n++] = *e;
}

static struct eh_expr pop(struct expr_stack *s)
{
	if (s->n)
		return s->at[--s->n];
	s->lost = true;
	return (struct eh_expr){ .kind = EXPR_NONE };
}

static struct eh_expr number(int64_t n)
{
	return (struct eh_expr){ .kind = EXPR_CONST, .off = n };
}

static struct eh_expr linear(uint32_t base, int64_t off)
{
	return (struct eh_expr){ .kind = EXPR_LIN, .base = base, .off = off };
}

/* Arithmetic wraps around as on the target, so it is done unsigned. */
static int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static struct eh_expr add(struct eh_expr a, struct eh_expr b)
{
	if (a.kind == EXPR_CONST ||
	    ((a.kind == EXPR_PC_STEP || a.kind == EXPR_WORDS) && b.kind == EXPR_LIN)) {
		struct eh_expr t = a;

		a = b;
		b = t;
	}
	if (b.kind == EXPR_CONST) {
		if (a.kind == EXPR_MEM || a.kind == EXPR_INDEX_MEM)
			a.off2 = wrap_add(a.off2, b.off);
		else if (a.kind == EXPR_CONST || a.kind == EXPR_LIN || a.kind == EXPR_PLT ||
			 a.kind == EXPR_INDEX)
			a.off = wrap_add(a.off, b.off);
		else
			a.kind = EXPR_NONE;
	} else if (a.kind == EXPR_LIN && b.kind == EXPR_PC_STEP) {
		b.kind = EXPR_PLT;
		b.base = a.base;
		b.off = a.off;
		a = b;
	} else if (a.kind == EXPR_LIN && b.kind == EXPR_WORDS) {
		a.kind = EXPR_INDEX;
		a.index = b.index;
	} else {
		a.kind = EXPR_NONE;
	}
	return a;
}

static struct eh_expr bit_and(struct eh_expr a, struct eh_expr b, uint32_t pc_reg)
{
	struct eh_expr bits = { .kind = EXPR_NONE };

	if (a.kind == EXPR_CONST) {
		struct eh_expr t = a;

		a = b;
		b = t;
	}
	/* Blocks of 2 to 256 bytes: PLT entries are 8 to 32. */
	if (a.kind == EXPR_LIN && a.base == pc_reg && a.off == 0 && b.kind == EXPR_CONST &&
	    b.off > 0 && b.off < 256 && (b.off & (b.off + 1)) == 0) {
		bits.kind = EXPR_PC_BITS;
		bits.rep = (uint32_t)b.off + 1;
	}
	return bits;
}

/* Signed comparison, DWARF 5, 2.5.1.5; the bits are never negative. */
static struct eh_expr at_least(struct eh_expr bits, struct eh_expr limit)
{
	if (bits.kind != EXPR_PC_BITS || limit.kind != EXPR_CONST || limit.off < 0)
		return (struct eh_expr){ .kind = EXPR_NONE };
	bits.kind = EXPR_PC_STEP;
	bits.at = limit.off < bits.rep ? (uint32_t)limit.off : bits.rep; /* rep: never */
	bits.add = 1;
	return bits;
}

static struct eh_expr scale(struct eh_expr a, struct eh_expr by, bool shift)
{
	int64_t factor = shift ? (int64_t)1 << (by.off & 31) : by.off;

	if (a.kind == EXPR_LIN && a.off == 0 && a.base != EXPR_CFA && by.kind == EXPR_CONST &&
	    factor == 8)
		return (struct eh_expr){ .kind = EXPR_WORDS, .index = a.base };
	if (a.kind != EXPR_PC_STEP || by.kind != EXPR_CONST || by.off < 0 ||
	    by.off > (shift ? 16 : 1 << 16) || a.add > 1 << 16)
		a.kind = EXPR_NONE;
	else
		a.add *= factor;
	return a;
}

static void binary(struct expr_stack *s, uint8_t op, uint32_t pc_reg)
{
	struct eh_expr b = pop(s), a = pop(s), r = { .kind = EXPR_NONE };

	if (s->lost)
		return;
	switch (op) {
	case DW_OP_plus:
		r = add(a, b);
		break;
	case DW_OP_minus:
		if (b.kind == EXPR_CONST) {
			b.off = (int64_t)(0 - (uint64_t)b.off);
			r = add(a, b);
		}
		break;
	case DW_OP_and:
		r = bit_and(a, b, pc_reg);
		break;
	case DW_OP_ge:
		r = at_least(a, b);
		break;
	case DW_OP_gt:
		b.off = wrap_add(b.off, 1);
		r = at_least(a, b);
		break;
	case DW_OP_shl:
		r = scale(a, b, true);
		break;
	case DW_OP_mul:
		r = a.kind == EXPR_CONST ? scale(b, a, false) : scale(a, b, false);
		break;
	}
	push(s, &r);
}

static void deref(struct expr_stack *s)
{
	struct eh_expr a = pop(s);

	if (a.kind == EXPR_INDEX)
		a.kind = EXPR_INDEX_MEM;
	else
		a.kind = a.kind == EXPR_LIN ? EXPR_MEM : EXPR_NONE;
	a.off2 = 0;
	push(s, &a);
}

static void rearrange(struct expr_stack *s, uint8_t op)
{
	struct eh_expr top = pop(s), below;

	if (op == DW_OP_drop)
		return;
	if (op == DW_OP_dup) {
		push(s, &top);
		push(s, &top);
		return;
	}
	below = pop(s);
	if (op == DW_OP_over)
		push(s, &below);
	push(s, &top);
	push(s, &below);
}

/* Reads a constant. False if op does not push one. */
static bool constant(struct bytes *b, uint8_t op, uint8_t addr_size, int64_t *ret)
{
	switch (op) {
	case DW_OP_addr:
		*ret = addr_size == 4 ? (int64_t)bytes_u32(b) : bytes_s64(b);
		return true;
	case DW_OP_const1u:
		*ret = bytes_u8(b);
		return true;
	case DW_OP_const1s:
		*ret = bytes_s8(b);
		return true;
	case DW_OP_const2u:
		*ret = bytes_u16(b);
		return true;
	case DW_OP_const2s:
		*ret = bytes_s16(b);
		return true;
	case DW_OP_const4u:
		*ret = bytes_u32(b);
		return true;
	case DW_OP_const4s:
		*ret = bytes_s32(b);
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		*ret = bytes_s64(b);
		return true;
	case DW_OP_constu:
		*ret = (int64_t)bytes_uleb(b);
		return true;
	case DW_OP_consts:
		*ret = bytes_sleb(b);
		return true;
	default:
		*ret = op - DW_OP_lit0;
		return op >= DW_OP_lit0 && op <= DW_OP_lit31;
	}
}

static void step(struct expr_stack *s, struct bytes *b, uint8_t addr_size, uint32_t pc_reg)
{
	uint8_t op = bytes_u8(b);
	struct eh_expr e = { .kind = EXPR_NONE };
	int64_t n;

	if (constant(b, op, addr_size, &n)) {
		e = number(n);
	} else if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		e = linear(op - DW_OP_breg0, bytes_sleb(b));
	} else if (op == DW_OP_bregx) {
		uint64_t reg = bytes_uleb(b);

		e = linear(reg < EXPR_CFA ? (uint32_t)reg : EXPR_CFA - 1, bytes_sleb(b));
	} else if (op == DW_OP_plus_uconst) {
		e = add(pop(s), number((int64_t)bytes_uleb(b)));
	} else if (op == DW_OP_deref) {
		deref(s);
		return;
	} else if (op == DW_OP_nop) {
		return;
	} else if (op == DW_OP_dup || op == DW_OP_drop || op == DW_OP_over || op == DW_OP_swap) {
		rearrange(s, op);
		return;
	} else {
		binary(s, op, pc_reg);
		return;
	}
	push(s, &e);
}

struct eh_expr eh_expr_eval(struct bytes expr, uint8_t addr_size, uint32_t pc_reg, bool cfa_pushed)
{
	struct expr_stack s = { .n = 0 };
	struct eh_expr cfa = linear(EXPR_CFA, 0);

	if (cfa_pushed)
		push(&s, &cfa);
	while (bytes_left(&expr) && !s.lost)
		step(&s, &expr, addr_size, pc_reg);
	if (s.lost || expr.err || !s.n)
		return (struct eh_expr){ .kind = EXPR_NONE };
	return s.at[s.n - 1];
}
