/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reader and evaluator of .eh_frame (LSB 5.0 Core, 10.6; DWARF 5, 6.4) and of .debug_frame.
 */
#ifndef SFBPF_READERS_EH_FRAME_H
#define SFBPF_READERS_EH_FRAME_H

#include "base/bytes.h"
#include "base/diag.h"
#include "elf/elf_image.h"
#include "rows/row.h"

struct eh_cie;
struct eh_fde;

struct eh_frame {
	struct bytes sec; /* not owned */
	uint64_t addr;	  /* virtual address of the section */
	enum row_arch arch;
	bool debug_frame;    /* .debug_frame's CIE ids and pointers, else .eh_frame's */
	const char *name;    /* ".eh_frame" or ".debug_frame", for notes */
	struct eh_cie *cies; /* each parsed once, ascending by offset */
	size_t ncies, cies_cap;
	struct eh_fde *fdes; /* where the instructions are; fns[].ref is the index */
	size_t nfdes, fdes_cap;
	struct fntab fns; /* sound FDEs only, ascending by start */
};

/*
 * sframe_open for this format. Damage drops its FDE, in a CIE all FDEs that name it. 0 or -ENOMEM.
 */
int eh_frame_open(struct eh_frame *e, struct bytes sec, uint64_t addr, bool debug_frame,
		  enum row_arch arch, const struct elf_image *img, struct diag *diag);
/* sframe_rows for this format. */
int eh_frame_rows(const struct eh_frame *e, const struct fn *fn, struct rowbuf *out,
		  struct diag *diag);
void eh_frame_close(struct eh_frame *e);

/*
 * Finds the bytes: section .eh_frame, else through PT_GNU_EH_FRAME, else .debug_frame (also
 * compressed), which sets *ret_debug_frame. 0, -ENOENT, -ENOMEM, -EIO.
 */
int eh_frame_find(const struct elf_image *img, struct elf_blob *ret, bool *ret_debug_frame,
		  struct diag *diag);

#endif
