/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instructions at which functions return to their callers.
 *
 * A function that ends with a jump to another one has an end in that function. Such exits cannot be
 * found: `known` is then false. A jump to an address in a register may be a switch or such an end.
 */
#ifndef SFBPF_SYMTAB_ELF_EXITS_H
#define SFBPF_SYMTAB_ELF_EXITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

#define ELF_EXITS_MOST (1u << 20) /* bytes of a function whose exits are looked for */

struct elf_exits { /* zeroed: empty */
	struct elf_exits_part {
		uint64_t start, size; /* virtual addresses */
		bool entry;	      /* a function begins there */
		/*
		 * Where each call comes by once: the start, but in Go after the test of the stack,
		 * which jumps back to the start when the stack has grown
		 */
		uint64_t once;
		uint64_t end_before; /* elf_exits_find: the last end of this part and those below */
	} * v;
	size_t n, cap;
};

/* Adds a function, or a part of one. 0 or -ENOMEM. */
int elf_exits_part(struct elf_exits *e, uint64_t start, uint64_t size, bool entry);
/*
 * Calls fn with the virtual address of each exit, and sets the parts' `once`. go: the file is a Go
 * program. *ret_known: there are no other exits. 0 or -errno. The worker.
 */
int elf_exits_find(struct elf_exits *e, const struct elf_image *img, bool go,
		   void (*fn)(void *ctx, uint64_t vaddr), void *ctx, bool *ret_known);
void elf_exits_free(struct elf_exits *e);

#endif
