/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source lines and inlined functions of a Go program of Go 1.20 or later, from the tables that its
 * runtime prints stack traces with. They stay when symbols and DWARF are stripped. Layout:
 * src/runtime/symtab.go, symtabinl.go and src/internal/abi/symtab.go of Go.
 *
 *   record         (elf/go_table.h) u32 offsets of the pc values: file, line; u32 number of pcdata,
 *                  u32 first file of its unit in `units`, i32 line at which the function starts,
 *                  3 bytes, u8 number of funcdata, then u32 for each pcdata (offset of pc values)
 *                  and each funcdata (offset from gofunc; all bits set: none)
 *   units          u32 offsets of strings in `files`
 *   pcdata 2       the index of the inlined call that the code belongs to; -1: none
 *   funcdata 3     the inlined calls, 16 bytes each: u8 id, 3 bytes, i32 offset of the name, i32
 *                  offset in the function of code that has the line of the call, i32 start line
 *   gofunc         a word of runtime.moduledata: the address from which offsets of funcdata count
 */
#ifndef SFBPF_ELF_GO_LINES_H
#define SFBPF_ELF_GO_LINES_H

#include "elf/go_table.h"

#define GO_FRAMES_MAX 128 /* frames of one address; an address with more has none */

struct go_lines {
	const struct elf_image *img;
	const struct go_table *table;
	uint64_t gofunc; /* virtual address; 0: not found, so code of inlined calls has no frames */
};

struct go_frame {
	const char *name, *file;   /* inside the table; NULL: unknown */
	uint32_t line, start_line; /* line of the code or call, first line of its function; 0: ? */
};

/* img and table must outlive *ret. 0; -ENOENT: the table is of an older Go. */
int go_lines_open(const struct elf_image *img, const struct go_table *table, struct go_lines *ret);
/*
 * The frames of the code at a virtual address: ret[0] is inlined into ret[1], and so on; the last
 * one is the function itself. Takes time in proportion to the function's tables. Returns their
 * number. 0: no function with lines has the address, or one of its inlined calls cannot be read.
 */
size_t go_lines_at(const struct go_lines *g, uint64_t addr, struct go_frame ret[GO_FRAMES_MAX]);

#endif
