/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that .eh_frame describes by one row, with their machine code: the row may be wrong in
 * parts of the code, which the instructions prove (code_framed.h, code_inner.h).
 */
#ifndef SFBPF_READERS_ONE_ROW_H
#define SFBPF_READERS_ONE_ROW_H

#include "base/bytes.h"
#include "elf/elf_image.h"
#include "readers/eh_frame.h"
#include "rows/row.h"

struct one_row_fn {
	uint64_t start; /* virtual address */
	struct row row;
	struct bytes text; /* its machine code */
};

/* Which functions are wanted, and what is done with each. */
struct one_row_kind {
	uint32_t code_min;  /* bytes of code of a function */
	uint32_t code_max;  /* bytes of code in all of a file; functions beyond are left out */
	uint32_t insns_max; /* bytes of call frame instructions */
	/* Whether the instructions may make such a row, at little cost; NULL: they may. */
	bool (*may_be)(const struct eh_frame *eh, const struct eh_fde *fde);
	bool (*is)(const struct row *row);
	/* Appends better rows, ascending. 0 or -ENOMEM. */
	int (*take)(void *ctx, const struct one_row_fn *fn, struct rowbuf *out);
};

/* Calls take for each function of that kind, by ascending address. 0 or -ENOMEM. */
int one_row_each(const struct eh_frame *eh, const struct elf_image *img,
		 const struct one_row_kind *kind, void *ctx, struct rowbuf *out);

#endif
