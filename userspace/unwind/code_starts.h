/* SPDX-License-Identifier: BSD-2-Clause */
/* Which code the tables of a file describe, and where functions start without them. */
#ifndef SFBPF_UNWIND_CODE_STARTS_H
#define SFBPF_UNWIND_CODE_STARTS_H

#include "rows/fntab.h"
#include "unwind/code_fn.h"
#include "unwind/row_stream.h"

/* Bytes. Shorter holes between functions are padding (as in pack_internal.h). */
#define CODE_PADDING 16

struct code_ranges {
	struct code_range *v; /* ascending, disjoint */
	size_t n, cap;
};

/* What functions of either table cover; the gaps between, above padding. 0 or -ENOMEM. */
int code_described(const struct unwind_file *file, struct code_ranges *ret);
int code_gaps(const struct unwind_file *file, const struct code_ranges *described,
	      struct code_ranges *ret);
/*
 * Functions by sized symbols, of .symtab and .dynsym, sorted and without overlaps. A compiler's
 * cold part of another function is none, although it has such a symbol. 0 or -ENOMEM.
 */
int code_symbols(const struct elf_image *img, struct fntab *ret);
/* The first address that a process executes in this file. False: it is no program. */
bool code_entry(const struct elf_image *img, uint64_t *ret);
/* The first range that ends after the address, or NULL; the range that holds it, or NULL. */
const struct code_range *code_range_from(const struct code_ranges *r, uint64_t addr);
const struct code_range *code_range_of(const struct code_ranges *r, uint64_t addr);

#endif
