/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file opened for libdw. If libelf cannot unpack its sections (zstd before elfutils 0.189), libdw
 * gets a copy in memory with plain sections.
 */
#ifndef SFBPF_DEBUGINFO_DWARF_SECTIONS_H
#define SFBPF_DEBUGINFO_DWARF_SECTIONS_H

#include <elfutils/libdw.h>
#include <stddef.h>

#include "base/bytes.h"

struct dwarf_code {
	uint64_t addr, size;
};

struct dwarf_open {
	int fd;
	Elf *elf;
	Dwarf *dw; /* NULL: not open */
	char *copy;
	struct dwarf_code *code; /* where the file has code; ncode 0: unknown */
	size_t ncode;
	struct bytes lines; /* .debug_line */
};

/* fd must be set. 0; -ENOENT: the file has no DWARF; -ENOMEM. */
int dwarf_open(struct dwarf_open *d);
void dwarf_close(struct dwarf_open *d); /* accepts a d that is not open, too */
/*
 * Whether code may begin at addr. The linker leaves the debug information of functions that it
 * drops, at addresses where nothing is: 0, 1, -1 or -2.
 */
bool dwarf_is_code(const struct dwarf_open *d, uint64_t addr);

#endif
