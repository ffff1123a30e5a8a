/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The row: for a range of code, how the caller's CFA, return address (RA) and frame pointer (FP)
 * are recovered.
 *
 * All readers produce rows. A row is SFrame V3's flexible rule with one more offset, which covers
 * all that compilers and linkers emit as .eh_frame too. Registers are DWARF numbers of the file's
 * architecture.
 */
#ifndef SFBPF_ROWS_ROW_H
#define SFBPF_ROWS_ROW_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* DWARF numbers of x86-64's registers */
#define X86_RAX 0
#define X86_RDX 1
#define X86_RCX 2
#define X86_RBX 3
#define X86_RBP 6
#define X86_RSP 7
#define X86_R12 12

enum row_arch { ROW_ARCH_NONE, ROW_ARCH_X86_64, ROW_ARCH_AARCH64, ROW_ARCH_S390X };

enum rule_kind {
	/* CFA, RA: cannot be expressed; FP: in Go's code, none of whose rows needs FP; "?" */
	RULE_NONE,
	RULE_SAME,    /* unchanged (FP, BX: no rule in the table) */
	RULE_UNDEF,   /* RA: undefined, this is the outermost frame; FP: value lost */
	RULE_CFA,     /* CFA + off */
	RULE_CFA_MEM, /* *(CFA + off) */
	RULE_REG,     /* reg + off */
	RULE_REG_MEM, /* *(reg + off); a CFA rule adds the row's cfa_off2 */
	/* CFA only: *(sp + off + 8 * reg) + cfa_off2; OpenSSL's Montgomery multiplication */
	RULE_INDEX_MEM,
};

struct rule {	      /* 8 bytes, so that it can be handled as a word */
	uint8_t kind; /* enum rule_kind */
	uint8_t reg;  /* DWARF number, for RULE_REG and the kinds after it */
	uint16_t zero;
	int32_t off; /* bytes */
};

_Static_assert(sizeof(struct rule) == 8 && offsetof(struct rule, reg) == 1 &&
		       offsetof(struct rule, off) == 4,
	       "rule_pack() makes one");

/*
 * A struct rule as the word that it is in memory, so that it is set and compared by one
 * instruction. Readers set reg to 0 for kinds without a register.
 */
static inline uint64_t rule_pack(enum rule_kind kind, uint8_t reg, int32_t off)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
	return (uint64_t)kind | (uint64_t)reg << 8 | (uint64_t)(uint32_t)off << 32;
#else
	return (uint64_t)kind << 56 | (uint64_t)reg << 48 | (uint32_t)off;
#endif
}

static inline void rule_unpack(struct rule *rule, uint64_t packed)
{
	memcpy(rule, &packed, 8);
}

static inline uint64_t rule_packed(const struct rule *rule)
{
	uint64_t packed;

	memcpy(&packed, rule, 8);
	return packed;
}

/* ROW_CODE: from machine code (code_rows.h), or from a Go program's own table (go_rows.h) */
enum row_source { ROW_SFRAME, ROW_EH_FRAME, ROW_CODE };

#define ROW_SIGNAL 0x1 /* signal frame: the RA is an interrupted pc, not a return address */
/*
 * If innermost and 0 is in the result register, it is a new thread's outermost frame (trampoline.h)
 */
#define ROW_CHILD  0x4
/*
 * The caller is not known, whatever the rules and the frame pointer say: the code is about to jump
 * to another frame
 */
#define ROW_LOST   0x8
/* A function begins here, of code that one row describes: it may call code made at run time */
#define ROW_LEADS  0x10
#define ROW_PAC	   0x2 /* AArch64: the RA (saved or in LR) carries a pointer authentication code */

/*
 * plt_rep != 0: the rows of one repeating block (a PLT). Each row has START and END of the whole
 * function and holds where (pc - start) % plt_rep >= plt_at, up to the next row's plt_at.
 */
struct row {
	uint64_t start, end; /* virtual addresses, half-open */
	struct rule cfa, ra, fp;
	/* x86-64 rbx, from .eh_frame only: ld.so's lazy resolver has a CFA based on it */
	struct rule bx;
	int32_t cfa_off2; /* bytes, of a CFA that is in memory */
	uint32_t plt_rep, plt_at;
	uint8_t source; /* enum row_source */
	uint8_t flags;	/* ROW_* */
	/* Not 0: CFA and RA are on another stack, by this rule of the file's go_rows */
	uint8_t go;
};

/* Whether both are rows of one repeating block. */
static inline bool row_same_block(const struct row *a, const struct row *b)
{
	return a->plt_rep && a->plt_rep == b->plt_rep && a->start == b->start;
}

/*
 * Whether the RA is in the caller's frame. No function saves it there: the CFA is another address
 * than the caller's sp, and the table does not say so (__longjmp() of AArch64).
 */
static inline bool ra_is_foreign(const struct rule *ra, uint8_t flags)
{
	return ra->kind == RULE_CFA_MEM && ra->off >= 0 && !(flags & ROW_SIGNAL);
}

/* Whether the row says where the caller is, or that there is none. */
static inline bool row_usable(const struct row *r)
{
	if (r->flags & ROW_LOST)
		return false;
	return r->ra.kind == RULE_UNDEF || r->go ||
	       (r->cfa.kind != RULE_NONE && r->ra.kind != RULE_NONE);
}

struct rowbuf {
	struct row *rows;
	size_t n, cap;
};

/* 0 or -ENOMEM. */
int rowbuf_push(struct rowbuf *b, const struct row *row);
void rowbuf_free(struct rowbuf *b);
void rowbuf_sort(struct rowbuf *b); /* sorts by start, then by end */

/*
 * One function of a table. ref identifies it to its reader. fntab_arrange sorts functions, clips
 * overlaps and drops those outside the executable segments.
 */
struct fn {
	uint64_t start, end; /* virtual addresses, half-open */
	uint64_t ref;
};

struct fntab {
	struct fn *fns;
	size_t n, cap;
};

int fntab_push(struct fntab *t, uint64_t start, uint64_t end, uint64_t ref);
void fntab_free(struct fntab *t);

struct row_regs { /* DWARF register numbers of an architecture */
	uint8_t sp, fp, ra;
	const char *const *names;
	unsigned int nnames;
};

const struct row_regs *row_arch_regs(enum row_arch arch);
/* EM_X86_64, EM_AARCH64, EM_S390; anything else ROW_ARCH_NONE. */
enum row_arch row_arch_of_machine(uint16_t machine);
enum row_arch row_arch_native(void); /* this program's */

bool rule_equal(const struct rule *a, const struct rule *b);
bool row_same_rules(const struct row *a, const struct row *b); /* all but start and end */

#endif
