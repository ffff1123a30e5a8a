/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of functions as the linker has them, for tools that edit programs. BOLT tells local symbols
 * of one name apart by their numbers: name/1, name/2, in the order of their addresses.
 */
#ifndef SFBPF_SYMTAB_ELF_LINKED_H
#define SFBPF_SYMTAB_ELF_LINKED_H

#include "symtab/go_places.h"

/*
 * The symbols of .symtab at n file offsets, as places whose `line` is the number of a local symbol;
 * 0: it is global, or weak. An offset without a symbol has no place. 0; -ENOENT: there is no
 * .symtab; -ENOMEM; -EIO. The worker.
 */
int elf_linked_read(const struct elf_image *img, const uint64_t *offsets, size_t n,
		    struct go_places *ret);

#endif
