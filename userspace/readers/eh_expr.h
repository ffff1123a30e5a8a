/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF expressions in call frame information (DWARF 5, 2.5 and 6.4.2), read as rules.
 *
 * The expression is evaluated symbolically: a value is a constant, reg + off, *(reg + off) + off2,
 * an element of an array of words (reg + off + 8 * reg), or the step of a PLT. An expression with
 * any other value has no rule. This accepts every spelling of a shape (breg/bregx, lit/const,
 * plus/plus_uconst/minus, either order of operands) without a list of patterns.
 */
#ifndef SFBPF_READERS_EH_EXPR_H
#define SFBPF_READERS_EH_EXPR_H

#include "base/bytes.h"
#include "rows/row.h"

enum eh_expr_kind {
	EXPR_NONE,	/* none of the shapes */
	EXPR_CONST,	/* off */
	EXPR_LIN,	/* base + off */
	EXPR_MEM,	/* *(base + off) + off2 */
	EXPR_WORDS,	/* 8 * index */
	EXPR_INDEX,	/* base + off + 8 * index */
	EXPR_INDEX_MEM, /* *(base + off + 8 * index) + off2 */
	EXPR_PC_BITS,	/* pc & (rep - 1) */
	EXPR_PC_STEP,	/* (pc & (rep - 1)) >= at ? add : 0 */
	EXPR_PLT,	/* base + off + PC_STEP */
};

#define EXPR_CFA 0xffffffffu /* base: the CFA instead of a register */

struct eh_expr {
	enum eh_expr_kind kind;
	uint32_t base;	/* DWARF register number or EXPR_CFA */
	uint32_t index; /* DWARF register number */
	uint32_t rep, at;
	int64_t off, off2, add;
};

/*
 * cfa_pushed: the CFA is on the stack at the start, as for all but DW_CFA_def_cfa_expression.
 * Cannot fail: EXPR_NONE if the value has none of the shapes.
 */
struct eh_expr eh_expr_eval(struct bytes expr, uint8_t addr_size, uint32_t pc_reg, bool cfa_pushed);

#endif
