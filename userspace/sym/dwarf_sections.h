/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file opened for libdw. What this libelf cannot unpack itself (zstd before elfutils 0.189) is handed to it as a copy in
 * memory with plain sections.
 */
#ifndef SFBPF_SYM_DWARF_SECTIONS_H
#define SFBPF_SYM_DWARF_SECTIONS_H

#include <elfutils/libdw.h>
#include <stddef.h>

struct dwarf_open {
	int fd;
	Elf *elf;
	Dwarf *dw;		/* NULL: not open */
	char *copy;
};

/* fd must be set. 0; -ENOENT: no DWARF in it; -ENOMEM. */
int dwarf_open(struct dwarf_open *d);
void dwarf_close(struct dwarf_open *d);		/* also one that is not open */

#endif
