/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file opened for libdw. If libelf cannot unpack its sections (zstd before elfutils 0.189), libdw
 * gets a copy in memory with plain sections.
 */
#ifndef SFBPF_SYM_DWARF_SECTIONS_H
#define SFBPF_SYM_DWARF_SECTIONS_H

#include <elfutils/libdw.h>
#include <stddef.h>

struct dwarf_open {
	int fd;
	Elf *elf;
	Dwarf *dw; /* NULL: not open */
	char *copy;
};

/* fd must be set. 0; -ENOENT: the file has no DWARF; -ENOMEM. */
int dwarf_open(struct dwarf_open *d);
void dwarf_close(struct dwarf_open *d); /* also if d is not open */

#endif
