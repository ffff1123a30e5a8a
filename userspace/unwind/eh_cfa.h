/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evaluates call frame instructions (DWARF 5, 6.4.2) into rows: the part of the .eh_frame reader that knows
 * opcodes. eh_frame.c walks the records and owns the CIEs; nobody else includes this.
 *
 * Only the columns that a row has are tracked (CFA, RA, FP, on x86-64 rbx); rules for others are read past.
 */
#ifndef SFBPF_UNWIND_EH_CFA_H
#define SFBPF_UNWIND_EH_CFA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "unwind/eh_record.h"
#include "unwind/row.h"

/*
 * The rules at one location, half the size of a row: a rule is the first 8 bytes of a struct rule as one number, so
 * that setting, comparing and appending are single instructions. Only the CFA has a second offset.
 */
enum cfa_column { COL_RA, COL_FP, COL_BX, COL_SINK, NCOLS };	/* COL_SINK: of registers that no row has; nobody reads it */

struct cfa_state {
	uint64_t start;			/* where the rules begin to hold */
	uint64_t cfa, col[NCOLS];	/* rule_pack() */
	int64_t cfa_off;		/* of the last register rule: DW_CFA_def_cfa_register keeps it */
	int32_t off2;			/* of the CFA rule */
	int32_t plt_add;		/* with plt_rep: what the CFA grows by where pc % plt_rep >= plt_at */
	uint16_t cfa_reg;		/* of the last register rule */
	uint16_t plt_rep;
	uint8_t plt_at;
	uint8_t flags;			/* ROW_* */
	bool expr;			/* the CFA rule is an expression, not cfa_reg + cfa_off */
};

struct eh_cie {
	uint64_t offset, end;		/* of its record, bytes from the section's start */
	uint64_t id_pos;		/* of its CIE id, likewise */
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra_reg;
	uint32_t nregs;			/* registers that a rule can name */
	uint8_t id_size;		/* 4 or 8: bytes of the CIE pointers to it */
	uint8_t addr_size;
	uint8_t fde_enc, lsda_enc;	/* DW_EH_PE_* */
	bool sized;			/* 'z': FDEs carry the length of their augmentation data */
	bool signal;			/* 'S' */
	bool loose;			/* see struct eh_rec */
	bool sound;			/* else its FDEs are lost */
	bool plain;			/* sound, and FDEs with two relative fields of 4 bytes and the length of their augmentation data */
	struct eh_ptr_bases bases;
	uint8_t column[64];		/* enum cfa_column of the registers that an opcode can hold */
	struct cfa_state init;		/* after the initial instructions */
};

/* One stretch of instructions: [pos, end) of the section. */
struct eh_insns {
	struct bytes sec;
	uint64_t pos, end;
	enum row_arch arch;
	const char *section;	/* its name, for notes */
};

/* Evaluates the initial instructions into cie->init. False (and a note): the CIE is damaged. */
bool eh_cfa_init(struct eh_cie *cie, const struct eh_insns *insns, struct diag *diag);
/*
 * Appends the rows of the function [start, end). Damage is noted and ends them: the rules of the place where
 * it is found are not trusted. 0 or -ENOMEM.
 */
int eh_cfa_rows(const struct eh_cie *cie, const struct eh_insns *insns, uint64_t start, uint64_t end,
		struct rowbuf *out, struct diag *diag);

#endif
