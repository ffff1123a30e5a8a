/* SPDX-License-Identifier: BSD-2-Clause */
/* A symbol table while it is built from the symbols of a file; see elf_symtab.h for the rules. */
#ifndef SFBPF_SYMTAB_SYMTAB_BUILDER_H
#define SFBPF_SYMTAB_SYMTAB_BUILDER_H

#include <elf.h>

#include "base/idmap.h"
#include "symtab/elf_symtab.h"
#include "symtab/elf_versions.h"

#define SYMTAB_MAX_CODE 64 /* executable PT_LOADs considered; linkers make one or two */

struct code_arch;
struct unwind_file;

struct cand {
	uint64_t off; /* file offset */
	uint32_t size, name;
	uint32_t kin;  /* builder_kin() of its name; 0: none, or alone at its address */
	uint16_t rank; /* rank of its name, see rank_of(); UINT16_MAX: no name to show */
	uint8_t bind;  /* 0 global, 1 weak, 2 local */
	bool notype : 1, ifunc : 1, plt : 1;
};

struct mark {
	uint64_t off;
	uint32_t others; /* functions with other names; 0: it is a resolver */
};

_Static_assert(offsetof(struct cand, off) == 0, "the sort key comes first");

struct code_range {
	uint64_t off, vaddr, size;
};

struct builder {
	const struct elf_image *img;
	const struct elf_image *syms; /* where .symtab and .strtab are: img, or its debug file */
	struct string_table str[2];   /* .strtab, .dynstr; size 0: none */
	struct code_range segs[SYMTAB_MAX_CODE];
	uint32_t nsegs;
	struct code_range *areas; /* executable sections, or segments; by offset */
	uint32_t nareas;
	struct cand *cands;
	size_t n, cap;
	struct mark *marks; /* sorted by off */
	size_t nmarks, marks_cap;
	struct unwind_file *tables; /* tables of img, once they were wanted; NULL: none */
	bool tables_tried;
	struct elf_versions versions;
	uint32_t *sources; /* names of source files, in .strtab */
	size_t nsources, sources_cap;
	struct idmap units; /* units of Ada and Nim (source_names.c), by hash and language */
	bool gnat;	    /* it is, or contains, GNAT's library */
};

/* A table of symbols in the file: by section header or PT_DYNAMIC. */
struct symbol_source {
	const struct elf_image *img;
	uint64_t off, count;
	uint32_t name_flag; /* 0 or NAME_DYNSTR */
};

/* Converts vaddr in an executable segment to a file offset. false: no such segment. */
bool builder_code_offset(const struct builder *b, uint64_t vaddr, uint64_t *ret);
/* The opposite, of an offset in an executable segment. */
bool builder_code_address(const struct builder *b, uint64_t off, uint64_t *ret);
/*
 * 0, also if c is skipped because its name is outside the string table or its offset does not fit
 * into a frame word; -ENOMEM.
 */
int builder_add(struct builder *b, const struct cand *c);
/* Finds the string tables and reads all symbols into b->cands. */
int builder_read_symbols(struct builder *b);
/* Whether it is a PIE or a fixed-address executable: its entry point starts a process. */
bool builder_is_program(const struct builder *b);
/* Whether DT_SONAME is soname, or begins with it. */
bool builder_is_named(const struct builder *b, const char *soname);
/* The name of a source file of .symtab. 0 or -ENOMEM. */
int builder_note_source(struct builder *b, uint32_t name);
/* Finds the units of Ada and the modules of Nim among those. 0, -ENOMEM, -EIO. */
int builder_read_sources(struct builder *b);
/*
 * Writes a function's name in Ada or Nim to ret, of SYMTAB_NAME_MAX bytes. Returns its bytes; 0:
 * the name is not one of these.
 */
size_t builder_source_name(const struct builder *b, const char *name, size_t len, char *ret);
/* Equal for mangled names of one function, and hardly ever for those of others. 0: not mangled. */
uint32_t builder_kin(const char *name, size_t len);
/*
 * Notes the mark of the name that was chosen among the n candidates at an address. In ascending
 * order. 0 or -ENOMEM.
 */
int builder_mark(struct builder *b, const struct cand *group, size_t n, const struct cand *best);
/* The mark of the function at off; NULL: the function has no mark. */
const struct mark *builder_find_mark(const struct builder *b, uint64_t off);
/* Writes the name with its mark to ret, of SYMTAB_NAME_MAX bytes. Returns its bytes. */
size_t builder_marked_name(const struct mark *m, const char *name, size_t len, char *ret);
/* Reads Go's runtime table, for a file without .symtab. */
int builder_read_go(struct builder *b);
/* Whether neither the file nor a debug file has .symtab. */
bool builder_is_stripped(const struct builder *b);
/*
 * The unwind tables of the file; NULL: none, or they cannot be read. open: opens them if that was
 * not done yet. builder_close_tables() frees them.
 */
struct unwind_file *builder_tables(struct builder *b, bool open);
void builder_close_tables(struct builder *b);
/* Adds functions without a name to a sorted table, if builder_is_stripped(). 0 or -ENOMEM. */
int builder_add_functions(struct builder *b, struct symtab *t);

/* Finds the ends of functions whose symbols have no size, in ascending order of offsets. */
struct extents {
	struct builder *b;
	const struct elf_image *img;
	const struct code_arch *arch; /* NULL: the code cannot be decoded */
	struct elf_blob code;	      /* a window of it, from file offset `from` */
	uint64_t from, scanned;
};
void extents_open(struct extents *x, struct builder *b);
void extents_close(struct extents *x);
/* The size of the function at off, from 1 to most. 0, -ENOENT: not code, -ENOMEM. */
int extents_find(struct extents *x, uint64_t off, uint64_t most, uint64_t *ret);

/*
 * A window of a string table. Initialize with zeros and table -1; free with
 * elf_blob_free(&w->blob).
 */
struct name_window {
	struct elf_blob blob;
	uint64_t from;
	int table;
};

/*
 * The start of a name, at most SYMTAB_NAME_MAX bytes, valid until the next call. Not for NAME_START
 * and the other special values. 0, -ENOMEM, -EIO.
 */
int name_window_at(struct name_window *w, const struct builder *b, uint32_t name,
		   struct bytes *ret);
/*
 * Copies the names to t->names if they take at most `along` bytes. Otherwise t->syms[].name stays
 * their position in the file. 0, -ENOMEM, -EIO.
 */
int builder_name_symbols(struct builder *b, struct symtab *t, uint32_t along);
/* Adds func@plt symbols (x86-64). */
int builder_read_plt(struct builder *b);

/*
 * Functions that end stacks, found without symbols: _start, clone3 and the like. builder_find_roots
 * returns their number.
 */
#define MAX_ROOTS 8
struct root {
	uint64_t off, size;
	uint32_t name;
	/*
	 * Bytes at its start that may be the end of another function. They are looked up only for a
	 * return to the start of the code.
	 */
	uint32_t before;
};
uint32_t builder_find_roots(const struct builder *b, struct root ret[MAX_ROOTS]);

#endif
