/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function table of a Go program (pclntab), which its runtime uses for stack traces. It stays
 * when symbols are stripped (-ldflags=-s). Layout: src/runtime/symtab.go of Go 1.16 (magic ..fa),
 * 1.18 (..f0) and 1.20 (..f1).
 *
 *   header     u32 magic, u16 0, u8 instruction size, u8 pointer size, then words of pointer
 *              size: functions, files, [1.18: address of the text], offsets of names, CUs,
 *              files, pc values, functions
 *   functions  (entry, offset of its record) of each function, and the end of the last one;
 *              two words, since 1.18 two u32 with entries relative to the text
 *   record     entry (word; since 1.18 u32), i32 offset of the name, 2 words, u32 offset of the
 *              heights of sp, 4 words [1.20: 5], u8 id, u8 flags; go_lines.c reads the rest
 *   pc values  ranges of a function's code and a number for each, such as heights and lines
 */
#ifndef SFBPF_ELF_GO_TABLE_H
#define SFBPF_ELF_GO_TABLE_H

#include "elf/elf_image.h"

#define GO_FUNCS_MAX (1u << 22) /* Kubernetes' kubelet has 100,000 */

struct go_table {
	struct elf_blob blob;
	uint64_t offset, addr, size; /* the table's file offset, virtual address, bytes */
	struct bytes functab, pctab;
	uint64_t text, count, names, units, files; /* names, units, files: offsets in blob */
	uint32_t quantum;			   /* bytes of the smallest instruction */
	bool words, start_line; /* entries are words rather than u32; records have a start line */
};

#define GO_TOP_FRAME 1 /* flags: the outermost frame of its stack */
#define GO_SP_WRITE  2 /* it writes sp, and the heights do not say so */
#define GO_ASM	     4

struct go_func {
	uint64_t start, end; /* virtual addresses, half-open */
	uint32_t name;	     /* see go_table_name() */
	uint32_t pcsp;	     /* offset of its heights in pctab; 0: none */
	uint8_t flags;
};

/* The section that has the table, or begins with other data before it. NULL: not a Go program. */
const struct elf_shdr *go_table_section(const struct elf_image *img);
/* 0; -ENOENT: the file has none, or one that cannot be read; -ENOMEM, -EIO. */
int go_table_open(const struct elf_image *img, struct go_table *ret);
void go_table_close(struct go_table *t); /* also on a zeroed table */

/* Function i of t->count. False: its record is damaged. */
bool go_table_func(const struct go_table *t, uint64_t i, struct go_func *ret);
/* The name, inside the table. NULL: outside the table. */
const char *go_table_name(const struct go_table *t, const struct go_func *f);

/* The record of function i, with its position after the entry. Damaged: err is set. */
struct bytes go_table_record(const struct go_table *t, uint64_t i);
/* The string at the offset of the blob, from names or files. NULL: outside the table. */
const char *go_table_string(const struct go_table *t, uint64_t offset);

/*
 * The numbers of a function's ranges of code: of pcsp, the heights of sp above its value at the
 * entry.
 */
struct go_values {
	struct bytes at;
	uint64_t pc; /* where the next range begins */
	int32_t value;
	bool started;
};

/* offset: in pctab; 0: there are none. */
struct go_values go_values_at(const struct go_table *t, uint64_t start, uint32_t offset);
/* The heights of sp. */
struct go_values go_heights_of(const struct go_table *t, const struct go_func *f);
/* The next range [*ret_start, v->pc) and its v->value. False at the end and at damage. */
bool go_values_next(const struct go_table *t, struct go_values *v, uint64_t *ret_start);

#endif
