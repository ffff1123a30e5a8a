/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks up dynamic symbols by name through DT_GNU_HASH, with a few small reads for each: most files
 * do not have the symbol, which one word of the table's filter tells.
 */
#ifndef SFBPF_ELF_ELF_DYNSYM_H
#define SFBPF_ELF_ELF_DYNSYM_H

#include "elf/elf_image.h"

struct elf_dynsym {
	const struct elf_image *img;
	uint64_t symtab, strtab, filter, buckets, chains; /* file offsets */
	uint32_t nbuckets, first, nfilter, shift;
	bool musl;    /* needs musl's C library rather than glibc's */
	bool program; /* not a library */
};

struct elf_dynsym_value {
	uint64_t addr, size;
	uint32_t index; /* index in the table */
	uint8_t type;	/* STT_* */
};

/* False: the file has no such table. */
bool elf_dynsym_open(struct elf_dynsym *d, const struct elf_image *img);
/* False: the file does not define the symbol. */
bool elf_dynsym_find(const struct elf_dynsym *d, const char *name, struct elf_dynsym_value *ret);

#endif
