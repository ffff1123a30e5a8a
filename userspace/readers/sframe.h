/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reader of .sframe, versions 1, 2 and 3, of every ABI that GNU binutils defines
 * (libsframe/doc/sframe-spec.texi). A section goes through its parts in this order:
 *
 *   sframe_table.c	section -> tables: headers, and the bytes between and after tables
 *   sframe_anchor.c	table -> what the function starts are relative to
 *   sframe_fde.c	table -> function descriptors, whose layout depends on the version
 *   sframe_rows.c	function -> rows, which versions 1 to 3 encode alike (except s390x in 2)
 *   sframe.c		entry points
 *
 * Offsets named *_off count bytes from the section's start, unless said otherwise.
 */
#ifndef SFBPF_READERS_SFRAME_H
#define SFBPF_READERS_SFRAME_H

#include "base/bytes.h"
#include "base/diag.h"
#include "elf/elf_image.h"
#include "rows/row.h"

/* Tables in one section. A linker that only concatenates leaves one for each object. */
#define SFRAME_MAX_TABLES (1u << 20)

struct sframe_table {	 /* one SFrame header with its tables; a section may hold several */
	uint64_t offset; /* the header, bytes from the section's start */
	uint8_t version, flags, abi;
	int8_t fixed_fp, fixed_ra;
	bool be;
	uint32_t nfdes, nfres;
	uint64_t fde_off, fre_off, fre_len; /* bytes from the section's start */
	/* Function starts are relative to the table's header instead of to their field */
	bool section_relative;
};

struct sframe {
	struct bytes sec; /* not owned */
	uint64_t addr;	  /* virtual address of the section */
	enum row_arch arch;
	struct sframe_table *tables;
	uint32_t ntables;
	struct fntab fns; /* sound functions only; ref = table << 32 | FDE index */
};

/* Program headers, which decide what function starts are relative to */
struct sframe_bounds {
	const struct elf_phdr *phdrs;
	uint32_t nphdrs;
};

/*
 * Parses headers and the function index. A damaged FDE is noted and left out. 0 even if no function
 * is sound (fns.n == 0); -ENOMEM. The bytes must outlive s. Without program headers (bounds NULL or
 * empty: a relocatable object) it is not known where code lies, and every start is accepted. The
 * rows of all functions together are at most half as many as the section's bytes.
 */
int sframe_open(struct sframe *s, struct bytes sec, uint64_t addr, enum row_arch arch,
		const struct sframe_bounds *bounds, struct diag *diag);
/*
 * Appends fn's rows in ascending order, within [fn->start, fn->end). Damage in any of them is noted
 * and costs the function all its rows. fn is one of s->fns, perhaps with a smaller end. 0 or
 * -ENOMEM.
 */
int sframe_rows(const struct sframe *s, const struct fn *fn, struct rowbuf *out, struct diag *diag);
void sframe_close(struct sframe *s);

/* Finds the bytes: section by type or name, else PT_GNU_SFRAME. 0, -ENOENT, -ENOMEM, -EIO. */
int sframe_find(const struct elf_image *img, struct elf_blob *ret, struct diag *diag);

#endif
