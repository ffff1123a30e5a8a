/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that a process generated: which piece was at an address at a given time. Pieces may overlap
 * in any way. All of this is foreign bytes.
 *
 * Bounds for n pieces: a piece is indexed O(log n) times, each time in O(log n) steps. The index
 * takes O(n log n) bytes. A lookup takes O(log n) binary searches in each of O(log n) parts.
 */
#ifndef SFBPF_JIT_CODE_TABLE_H
#define SFBPF_JIT_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_MAX      (1u << 20) /* pieces */
#define CODE_PARTS    12
#define CODE_NAME_MAX 4096 /* bytes of a name; longer ones are cut */

struct code {
	uint64_t start, size;
	/* When it was made; among equal times the piece added last is the newest */
	uint64_t time;
	uint32_t name; /* offset in names */
};

/*
 * The index of codes[from .. from + n). The ends of the pieces split the addresses into intervals,
 * which are the leaves of a binary tree. A piece is listed at the O(log n) nodes that make up its
 * range. The pieces that cover an address are therefore in the lists between its leaf and the root.
 * Lists are sorted by age.
 */
struct code_part {
	uint32_t from, n;
	uint32_t npoints;
	uint64_t *points; /* leaf i: [points[i], points[i + 1]) */
	uint32_t *ends;	  /* node i's list: list[ends[i - 1] .. ends[i]) */
	uint32_t *list;	  /* pieces, oldest first */
};

struct code_table {	    /* zeroed: empty */
	struct code *codes; /* pieces in the order of the file */
	size_t n, cap;
	char *names;
	size_t names_len, names_cap;
	struct code_part parts[CODE_PARTS]; /* each at least four times as large as the next */
	size_t nparts, indexed;		    /* codes[0 .. indexed) are in parts */
	/*
	 * How long code may run before the time of its piece. A piece that is newer by more says
	 * nothing about an address. 0: each newer piece says what was there.
	 */
	uint64_t late;
};

/* Bytes held. Pieces that are not indexed yet count with a typical index size. */
size_t code_table_bytes(const struct code_table *t);
void code_table_free(struct code_table *t); /* empty then */
/* Skips pieces of size 0 and pieces that wrap around. 0; -ENOMEM; -ENOSPC: the table is full. */
int code_table_add(struct code_table *t, struct code c, const char *name, size_t len);
/* Adds, as code_table_add, a piece that shares another piece's name (c.name). */
int code_table_add_named(struct code_table *t, struct code c);
/*
 * Indexes the pieces added since the last call. While t would hold more than `most` bytes, drops
 * the newer half of the added pieces and sets *ret_cut. 0, or -ENOMEM: the added pieces are
 * dropped.
 */
int code_table_index(struct code_table *t, size_t most, bool *ret_cut);
/*
 * The name of the piece that was at addr for the longest part of [from, to). If all pieces are
 * newer, that of the oldest. to 0: that of the newest piece. NULL: none. *ret_several (may be
 * NULL): whether code with other names may have been at addr in [from, to): other pieces, or what
 * was there before a piece that is newer by t->late or more.
 */
const char *code_table_find(const struct code_table *t, uint64_t addr, uint64_t from, uint64_t to,
			    bool *ret_several);
/*
 * Whether a piece that is not indexed yet has a byte in common with any other piece; true if memory
 * runs out.
 */
bool code_table_replaces(const struct code_table *t);

#endif
