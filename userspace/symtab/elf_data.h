/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of variables with a place of their own: objects in the symbol table of a file. */
#ifndef SFBPF_SYMTAB_ELF_DATA_H
#define SFBPF_SYMTAB_ELF_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

/*
 * The variable at an address in a process. offset: where in the file a mapping of its code begins.
 * distance: from the start of that mapping to the address. Writes clean text: "cache_lock",
 * "pool+0x28" or, for data of the file without a symbol, the address that the file says: "+0x4040".
 * 0; -ENOENT: the address is not in the file's segments; -EIO, -ENOMEM. The worker.
 */
int elf_data_name(const struct elf_image *img, uint64_t offset, uint64_t distance, char *ret,
		  size_t cap);

#endif
