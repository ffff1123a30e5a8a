/* SPDX-License-Identifier: BSD-2-Clause */
/* Which code the tables of a file describe, and where functions start without them. */
#ifndef SFBPF_READERS_CODE_STARTS_H
#define SFBPF_READERS_CODE_STARTS_H

#include "codewalk/codewalk.h"
#include "readers/row_stream.h"
#include "rows/fntab.h"

/* Bytes. Shorter holes between functions are padding (as in pack.c). */
#define CODE_PADDING 16

#define CODE_LINE 64 /* bytes of code for a bit of code_gapped.lines: a cache line of marks */

enum { /* marks of the file that only the files here use (codewalk.h has the others) */
       MARK_ADDRESSED = 16, /* trusted code takes this address, or jumps to it */
       MARK_GAP = 32,	    /* no table describes this byte */
       MARK_DONE = 128,	    /* a function that starts here was analysed */
};

/* Code with its gaps */
struct code_gapped {
	struct code_binary bin;
	uint8_t *lines[EXEC_SEGMENTS_MAX]; /* a bit for each line of each text: it has MARK_GAP */
};

/*
 * Whether no table describes the byte at the address. The bits of `lines` answer that for most
 * addresses; to read the mark of one in a large file is a cache miss.
 */
static inline bool code_in_gap(const struct code_gapped *g, uint64_t addr)
{
	for (size_t i = 0; i < g->bin.ntexts; i++) {
		const struct code_text *t = &g->bin.texts[i];
		const uint64_t at = addr - t->start, line = at / CODE_LINE;

		if (at < t->end - t->start)
			return g->lines[i][line / 8] >> line % 8 & 1 && t->marks[at] & MARK_GAP;
	}
	return false;
}

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
