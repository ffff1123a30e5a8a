/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known between two instructions of a function: which registers and which words of the
 * stack hold addresses relative to the CFA, or values that belong to the caller. From it follows
 * the row of the instruction.
 */
#ifndef SFBPF_CODEWALK_CODE_STATE_H
#define SFBPF_CODEWALK_CODE_STATE_H

#include <stddef.h>
#include <string.h>

#include "codewalk/code_op.h"
#include "rows/row.h"

enum code_val_kind {
	VAL_UNKNOWN,
	VAL_ORIG,  /* what register `off` held at entry; n: signed (AArch64's return address) */
	VAL_STACK, /* base + off, see sym */
	VAL_CONST, /* off */
	VAL_BOUND, /* off at most, in its low `size` bytes; n: only because it has no more bits */
	/* Entry of `size` bytes of a table at address off with n entries (0: not known) */
	VAL_ENTRY,
	VAL_TARGET, /* such an entry << shift, added to the address in `sym` */
};

struct code_val { /* zeroed beyond what the kind uses, so that it can be compared as bytes */
	uint8_t kind, size;
	uint8_t shift;
	uint8_t is_signed;
	uint16_t n;
	uint8_t masked; /* VAL_BOUND, VAL_ENTRY, VAL_TARGET: a mask says so; fewer may occur */
	uint8_t zero;
	/*
	 * VAL_STACK: 0: the CFA; else a value of sp that could not be computed, such as an aligned
	 * one, named by the address of the instruction that made it. VAL_TARGET: the address.
	 */
	uint64_t sym;
	int64_t off;
};

struct code_slot { /* 8 bytes at base `sym` + off hold val */
	uint64_t sym;
	int64_t off;
	struct code_val val;
};

#define CODE_SLOTS 24

struct code_place { /* base + (index << shift) + disp; index may be CODE_NO_REG */
	uint8_t base, index, shift;
	int64_t disp;
};

struct code_state {
	struct code_val reg[CODE_REGS];
	uint32_t nslots;
	/*
	 * The last comparison: of a register with a number or with another register, or of memory
	 * at `place` with a number
	 */
	uint8_t cmp_reg, cmp_with, cmp_size;
	bool cmp_memory;
	int64_t cmp_imm;
	struct code_place cmp_place;
	/* The memory at bound_place is at most `bound`; its base CODE_NO_REG: none is known */
	struct code_place bound_place;
	uint8_t bound_size;
	int64_t bound;
	struct code_slot slot[CODE_SLOTS]; /* the caller's values, addresses; last: see below */
};

/* A state is 2 KB, and is copied at each jump. Slots that are not used are left out. */
static inline void code_state_copy(struct code_state *to, const struct code_state *from)
{
	memcpy(to, from, offsetof(struct code_state, slot) + from->nslots * sizeof(from->slot[0]));
}

void code_state_entry(struct code_state *s, const struct code_arch *arch);
/*
 * The state after the instruction at `at`. False: the function does what no row can describe, such
 * as to write its return address.
 */
bool code_state_apply(struct code_state *s, const struct code_arch *arch, const struct code_op *op,
		      uint64_t at);
/* Whether the branch depends on a comparison that tells something. */
static inline bool code_state_branch_tells(const struct code_state *s, const struct code_op *op)
{
	return s->cmp_reg != CODE_NO_REG && op->cond != COND_OTHER;
}
/* Narrows the state on one way of such a branch: taken, or not. */
void code_state_branch(struct code_state *s, const struct code_arch *arch, const struct code_op *op,
		       bool taken);

/* Where an indirect jump leads: VAL_TARGET, or VAL_UNKNOWN. */
struct code_val code_state_jump(const struct code_state *s, const struct code_op *op);

enum code_merge { MERGE_SAME, MERGE_CHANGED, MERGE_CONFLICT };
/*
 * Keeps in `into` what both say. Conflict: the distance of sp from the CFA is known in both, and
 * differs.
 */
enum code_merge code_state_merge(struct code_state *into, const struct code_state *from,
				 const struct code_arch *arch);

/* The registers' values are not known. */
void code_state_forget(struct code_state *s, const struct code_arch *arch, uint32_t regs);

bool code_state_conflict(const struct code_state *a, const struct code_state *b,
			 const struct code_arch *arch);

/* Whether sp and the caller's fp are as at entry, as before a call of a function's start. */
bool code_state_is_entry(const struct code_state *s, const struct code_arch *arch);
/* Whether a return here is one: sp and the return address are as at entry. */
bool code_state_may_return(const struct code_state *s, const struct code_arch *arch);
/*
 * x86-64: whether a jump to the register is a return: its address was popped into it. Then sp is
 * set as before a return instruction.
 */
bool code_state_unpop_ra(struct code_state *s, const struct code_arch *arch, uint8_t reg);
/* Whether a system call here has one of two numbers. */
bool code_state_syscall_is(const struct code_state *s, const struct code_arch *arch,
			   const uint16_t numbers[2]);
/* Whether all of the caller's registers hold its values. */
bool code_state_restored(const struct code_state *s, const struct code_arch *arch);
/*
 * Whether a register of the caller was saved where functions save the first one, and overwritten
 * then.
 */
bool code_state_saves(const struct code_state *s, const struct code_arch *arch);
/* Whether the register is known to lie at a constant distance from the CFA. */
bool code_state_gives_cfa(const struct code_state *s, uint8_t reg);
#define VAL_RETURN_ADDRESS 16 /* its number on x86-64, which no register has */

/* The register's value at entry. */
static inline bool val_is_orig(const struct code_val *v, uint8_t reg)
{
	return v->kind == VAL_ORIG && v->off == reg;
}

/* An address at a known distance from the CFA. */
static inline bool val_from_cfa(const struct code_val *v)
{
	return v->kind == VAL_STACK && !v->sym;
}

/* What is known of the stack at that place; NULL: nothing. */
static inline const struct code_val *code_state_slot(const struct code_state *s, uint64_t sym,
						     int64_t off)
{
	for (uint32_t i = 0; i < s->nslots; i++)
		if (s->slot[i].off == off && s->slot[i].sym == sym)
			return &s->slot[i].val;
	return NULL;
}

/*
 * The row without its range. by_fp: the CFA is given by fp as long as that is known. False: there
 * is no expression for the CFA or the return address. That of the caller's fp may be RULE_NONE.
 */
bool code_state_row(const struct code_state *s, const struct code_arch *arch, bool by_fp,
		    struct row *ret);

#endif
