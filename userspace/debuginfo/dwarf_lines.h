/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows of a line program (DWARF 2 to 5, 6.2), sequence by sequence. libdw sorts the rows of all
 * sequences by address. Sequences of functions that the linker dropped begin at address 0 or -1, so
 * that sorting mixes their rows with those of other code, and nothing tells them apart any more.
 */
#ifndef SFBPF_DEBUGINFO_DWARF_LINES_H
#define SFBPF_DEBUGINFO_DWARF_LINES_H

#include "base/bytes.h"

struct dwarf_row {
	uint64_t sequence;   /* the address at which its sequence begins */
	uint64_t start, end; /* the code that it describes: at least a byte */
	uint32_t file, line; /* the file's number, as dwarf_filesrc() takes it */
	uint32_t discriminator;
};

typedef void (*dwarf_row_fn)(void *ctx, const struct dwarf_row *row);

/*
 * Calls fn for the rows of the program at off in .debug_line, in the order of the file. The time is
 * linear in its bytes. Ends where the program is damaged.
 */
void dwarf_lines_read(const struct bytes *section, uint64_t off, dwarf_row_fn fn, void *ctx);

#endif
