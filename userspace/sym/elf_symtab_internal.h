/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that build a symbol table share; see elf_symtab.h for the rules. */
#ifndef SFBPF_SYM_ELF_SYMTAB_INTERNAL_H
#define SFBPF_SYM_ELF_SYMTAB_INTERNAL_H

#include <elf.h>

#include "sym/elf_symtab.h"

#define SYMTAB_MAX_CODE 64	/* executable PT_LOADs looked at; linkers make one or two */

struct cand {
	uint64_t off;		/* file offset */
	uint32_t size, name;
	uint16_t rank;		/* of its name, see rank_of(); UINT16_MAX: no name to show */
	uint8_t notype, bind;	/* 1: not a function; 0 global, 1 weak, 2 local */
	bool plt;
};

_Static_assert(offsetof(struct cand, off) == 0, "the sort key comes first");

struct code_range {
	uint64_t off, vaddr, size;
};

struct builder {
	const struct elf_image *img;
	const struct elf_image *syms;	/* where .symtab and .strtab are: img, or its debug file */
	struct string_table str[2];	/* .strtab, .dynstr; size 0: none */
	struct code_range segs[SYMTAB_MAX_CODE];
	uint32_t nsegs;
	struct code_range *areas;	/* executable sections, or segments; by offset */
	uint32_t nareas;
	struct cand *cands;
	size_t n, cap;
};

/* A table of symbols in the file: by section header or PT_DYNAMIC. */
struct symbol_source {
	const struct elf_image *img;
	uint64_t off, count;
	uint32_t name_flag;	/* 0 or NAME_DYNSTR */
};

/* Executable segment that holds vaddr: false if none does. */
bool builder_code_offset(const struct builder *b, uint64_t vaddr, uint64_t *ret);
/* 0 also if c is not taken (its name is outside the string table, or its offset fits no frame word); -ENOMEM. */
int builder_add(struct builder *b, const struct cand *c);
/* Finds the string tables and reads all symbols into b->cands. */
int builder_read_symbols(struct builder *b);
/* A PIE or a fixed-address executable, so that its entry point is what starts a process. */
bool builder_is_program(const struct builder *b);
/* Its DT_SONAME is that. */
bool builder_is_named(const struct builder *b, const char *soname);
/* Of a file without a .symtab: what Go's runtime knows. */
int builder_read_go(struct builder *b);
/* Bytes of a string table that are in memory. Zeroed but for table -1; to be freed with elf_blob_free(&w->blob). */
struct name_window {
	struct elf_blob blob;
	uint64_t from;
	int table;
};

/* What a name begins with, SYMTAB_NAME_MAX bytes at most, valid until the next one; not one of NAME_START and the like. 0, -ENOMEM, -EIO. */
int name_window_at(struct name_window *w, const struct builder *b, uint32_t name, struct bytes *ret);
/* Names of no more than `along` bytes are copied to t->names; else t->syms[].name says where they are. 0, -ENOMEM, -EIO. */
int builder_name_symbols(const struct builder *b, struct symtab *t, uint32_t along);
/* func@plt, x86-64. */
int builder_read_plt(struct builder *b);

/* What stacks end in, found without a symbol: _start, clone3. Returns how many. */
#define MAX_ROOTS 8
struct root {
	uint64_t off, size;
	uint32_t name;
	uint32_t before;	/* bytes of it that are another function's end, but looked up only for a return to its start */
};
uint32_t builder_find_roots(const struct builder *b, struct root ret[MAX_ROOTS]);

#endif
