/* SPDX-License-Identifier: BSD-2-Clause */
/* Section .gnu_debugdata: an ELF file of symbols, compressed with xz (with liblzma). */
#ifndef SFBPF_SYMTAB_PACKED_SYMBOLS_H
#define SFBPF_SYMTAB_PACKED_SYMBOLS_H

#include "elf/elf_image.h"

struct packed_symbols {
	struct elf_image img;
	void *mem;
};

/*
 * 0 with *ret to be closed; -ENOENT: no packed ELF file of the same machine with .symtab; -ENOMEM.
 */
int packed_symbols_open(const struct elf_image *img, struct packed_symbols *ret);
void packed_symbols_close(struct packed_symbols *p);

#endif
