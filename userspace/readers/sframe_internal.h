/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the parts of the SFrame reader. A section goes through them in this order:
 *
 *   sframe_table.c	section -> tables: headers, and the bytes between and after tables
 *   sframe_anchor.c	table -> what the function starts are relative to
 *   sframe_fde.c	table -> function descriptors, whose layout depends on the version
 *   sframe_rows.c	function -> rows, which versions 1 to 3 encode alike (except s390x in 2)
 *   sframe.c		entry points
 *
 * Offsets named *_off count bytes from the section's start, unless said otherwise.
 */
#ifndef SFBPF_READERS_SFRAME_INTERNAL_H
#define SFBPF_READERS_SFRAME_INTERNAL_H

#include "readers/sframe.h"

#define SFRAME_SECTION	   ".sframe" /* the section's name in notes */
#define SFRAME_HEADER_SIZE 28	     /* size without the auxiliary header; same in all versions */
/* sh_addralign of every producer; the next table starts at a multiple of it */
#define SFRAME_ALIGN	   8

/* Header flags (spec, "SFrame Flags"). */
#define SFRAME_F_SORTED	       0x1
#define SFRAME_F_FRAME_POINTER 0x2 /* removed in version 3; a reader does not need it */
#define SFRAME_F_PCREL	       0x4 /* exists since erratum 1 of version 2 */

/* abi_arch (spec, "SFrame ABI/arch Identifier"). */
enum { SFRAME_ABI_AARCH64_BE = 1, SFRAME_ABI_AARCH64_LE, SFRAME_ABI_AMD64_LE, SFRAME_ABI_S390X_BE };

/* One function descriptor in the form of version 3, the widest. */
struct sframe_fde {
	int64_t start;	    /* stored value: relative to the field or to the table's header */
	uint64_t start_off; /* offset of the field that holds it */
	uint32_t size;	    /* bytes of code */
	uint32_t nrows;
	uint64_t rows_off;
	uint8_t row_type; /* 0, 1, 2: row starts are 1, 2, 4 bytes wide */
	/* != 0: PCMASK, one set of rows for each block of this many bytes */
	uint8_t rep_size;
	bool flex, signal;
};

/* The smallest row of the type: its start and the info byte. */
static inline unsigned int sframe_row_min(uint8_t row_type)
{
	return (1u << row_type) + 1;
}

/* Splits the section into s->tables. 0 or -ENOMEM. */
int sframe_tables_load(struct sframe *s, struct diag *diag);
/*
 * Bytes from the section's start to the end of the last of the tables that follow each other; 0 if
 * there is none.
 */
uint64_t sframe_tables_extent(struct bytes sec);

/* Bytes of a function index entry. */
unsigned int sframe_fde_size(uint8_t version);
/* Index entry i (< t->nfdes): start, start_off and size only. */
void sframe_fde_span(const struct sframe *s, const struct sframe_table *t, uint32_t i,
		     struct sframe_fde *ret);
/*
 * Reads the whole descriptor and checks the position of its rows. NULL, or what is wrong with it.
 */
const char *sframe_fde_load(const struct sframe *s, const struct sframe_table *t, uint32_t i,
			    struct sframe_fde *ret);

/* Executable address ranges, ascending and disjoint. */
struct sframe_exec {
	struct {
		uint64_t start, end;
	} * ranges;
	size_t n;
	bool known; /* false: there are no program headers, every address is accepted */
};

int sframe_exec_init(struct sframe_exec *x, const struct sframe_bounds *bounds);
void sframe_exec_free(struct sframe_exec *x);
/* sframe_exec_holds() for any number of ranges */
bool sframe_exec_search(const struct sframe_exec *x, uint64_t addr, uint64_t *ret_end);

/* Whether code may start at addr; *ret_end is then the end of its range. */
static inline bool sframe_exec_holds(const struct sframe_exec *x, uint64_t addr, uint64_t *ret_end)
{
	if (!x->known || x->n != 1)
		return sframe_exec_search(x, addr, ret_end);
	*ret_end = x->ranges[0].end;
	return addr >= x->ranges[0].start && addr < x->ranges[0].end;
}

static inline uint64_t sframe_fde_addr(const struct sframe *s, const struct sframe_table *t,
				       const struct sframe_fde *fde)
{
	return s->addr + (t->section_relative ? t->offset : fde->start_off) + (uint64_t)fde->start;
}

/*
 * Whether the linker dropped the function after the table was made: mold resolves the reference to
 * address 0, GNU ld stores 0 in the field, which then names itself. In a relocatable object every
 * field is 0 until it is relocated, and no function counts as dropped.
 */
static inline bool sframe_fde_is_tombstone(const struct sframe_exec *x,
					   const struct sframe_fde *fde, uint64_t addr)
{
	return x->known && (!addr || !fde->start);
}

/*
 * Sets t->section_relative. False: with neither reading does any function start in executable code.
 */
bool sframe_anchor_choose(const struct sframe *s, struct sframe_table *t,
			  const struct sframe_exec *x, struct diag *diag);

#endif
