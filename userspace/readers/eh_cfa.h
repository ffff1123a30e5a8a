/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evaluates call frame instructions (DWARF 5, 6.4.2) into rows: the part of the .eh_frame reader
 * that knows opcodes. Internal to the reader: eh_frame.c walks the records and owns the CIEs.
 *
 * Only the columns of a row are tracked (CFA, RA, FP, and rbx on x86-64); rules of other registers
 * are skipped.
 */
#ifndef SFBPF_READERS_EH_CFA_H
#define SFBPF_READERS_EH_CFA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "readers/eh_frame.h"
#include "readers/eh_record.h"

/* DWARF 5, 7.24; LSB 5.0 Core, 10.5.2 (GNU); DWARF for the Arm 64-bit Architecture (0x2b-0x2d) */
enum {
	DW_CFA_nop = 0x00,
	DW_CFA_set_loc = 0x01,
	DW_CFA_advance_loc1 = 0x02,
	DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04,
	DW_CFA_offset_extended = 0x05,
	DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07,
	DW_CFA_same_value = 0x08,
	DW_CFA_register = 0x09,
	DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b,
	DW_CFA_def_cfa = 0x0c,
	DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e,
	DW_CFA_def_cfa_expression = 0x0f,
	DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11,
	DW_CFA_def_cfa_sf = 0x12,
	DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14,
	DW_CFA_val_offset_sf = 0x15,
	DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d,
	DW_CFA_AARCH64_set_ra_state = 0x2b,
	DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2c,
	DW_CFA_AARCH64_negate_ra_state = 0x2d,
	DW_CFA_GNU_args_size = 0x2e,
	DW_CFA_GNU_negative_offset_extended = 0x2f,
	/* Opcodes that hold 6 bits of operand */
	DW_CFA_advance_loc = 0x40,
	DW_CFA_offset = 0x80,
	DW_CFA_restore = 0xc0,
};

/*
 * The rules at one location. Each is a rule_pack() word, so that setting, comparing and appending
 * it are single instructions. Only the CFA has a second offset.
 */
/*
 * COL_SINK takes the rules of registers that no row has; it is never read. COL_SP is SP_IS_CFA
 * unless an instruction says otherwise, as in code that jumps to another frame.
 */
enum cfa_column { COL_RA, COL_FP, COL_BX, COL_SINK, COL_SP, NCOLS };

#define SP_IS_CFA rule_pack(RULE_CFA, 0, 0)

struct cfa_state {
	uint64_t start;		  /* where the rules start to hold */
	uint64_t cfa, col[NCOLS]; /* rule_pack() */
	/* Offset of the last register rule; DW_CFA_def_cfa_register keeps it */
	int64_t cfa_off;
	int32_t off2; /* second offset of the CFA rule */
	/* If plt_rep: added to the CFA where pc % plt_rep >= plt_at */
	int32_t plt_add;
	uint16_t cfa_reg; /* register of the last register rule */
	uint16_t plt_rep;
	uint8_t plt_at;
	uint8_t flags; /* ROW_* */
	bool expr;     /* the CFA rule is an expression, not cfa_reg + cfa_off */
};

struct eh_cie {
	uint64_t offset, end; /* its record, bytes from the section's start */
	uint64_t id_pos;      /* its CIE id, likewise */
	uint64_t code_align;
	int64_t data_align;
	uint32_t ra_reg;
	uint32_t nregs;	 /* registers that a rule can name */
	uint8_t id_size; /* 4 or 8: bytes of the CIE pointers to it */
	uint8_t addr_size;
	uint8_t fde_enc, lsda_enc; /* DW_EH_PE_* */
	bool sized;		   /* 'z': FDEs carry the length of their augmentation data */
	bool signal;		   /* 'S' */
	bool loose;		   /* see struct eh_rec */
	bool sound;		   /* if not, its FDEs are dropped */
	/*
	 * Sound, and its FDEs have the common form: a pc-relative start and a range of 4 bytes
	 * each, and the length of the augmentation data
	 */
	bool plain;
	struct eh_ptr_bases bases;
	/* enum cfa_column of each register that an opcode's 6 bits can name */
	uint8_t column[64];
	struct cfa_state init; /* state after the initial instructions */
};

struct eh_fde {
	/*
	 * Bytes from the section's start. Until the FDE is parsed, insns is the position of its CIE
	 * pointer.
	 */
	uint32_t insns, insns_end;
	/* Index. Until the FDE is parsed: the CIE's offset, NO_CIE if out of range. */
	uint32_t cie;
	bool dwarf64, loose; /* see struct eh_rec */
};

/* A range of instructions: [pos, end) of the section. */
struct eh_insns {
	struct bytes sec;
	uint64_t pos, end;
	enum row_arch arch;
	const char *section; /* its name, for notes */
};

static inline struct eh_insns eh_insns_of(const struct eh_frame *e, uint64_t pos, uint64_t end)
{
	return (struct eh_insns){
		.sec = e->sec, .pos = pos, .end = end, .arch = e->arch, .section = e->name
	};
}

/* Evaluates the initial instructions into cie->init. False (and a note): the CIE is damaged. */
bool eh_cfa_init(struct eh_cie *cie, const struct eh_insns *insns, struct diag *diag);
/*
 * Appends the rows of the function [start, end). Damage is noted and ends the rows: the rules at
 * the location where it is found are not used. 0 or -ENOMEM.
 */
int eh_cfa_rows(const struct eh_cie *cie, const struct eh_insns *insns, uint64_t start,
		uint64_t end, struct rowbuf *out, struct diag *diag);
/* The row of rules that are not a PLT's; end is 0 */
void eh_cfa_row(const struct cfa_state *rules, struct row *ret);

#endif
