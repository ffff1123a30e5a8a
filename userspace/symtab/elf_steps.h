/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the instructions of one function begin, and which of them begin a block: code that runs
 * from its first instruction to its last one. The worker that reads foreign ELF files decodes them
 * (symtab/elf_worker.h); the main process checks what it sends.
 */
#ifndef SFBPF_SYMTAB_ELF_STEPS_H
#define SFBPF_SYMTAB_ELF_STEPS_H

#include <stdbool.h>

#include "symtab/elf_code.h"

#define ELF_STEPS_MOST (1u << 20) /* bytes of a function; a longer one has no steps */

/* A step: the instruction's offset in the function, and whether it begins a block. */
#define ELF_STEP(at, begins)  ((uint32_t)(at) << 1 | (begins))
#define ELF_STEP_AT(step)     ((step) >> 1)
#define ELF_STEP_BEGINS(step) ((step)&1)

/*
 * The steps of code, ascending. Targets of jumps through tables begin a block only if other code
 * shows it: most of them follow a jump. The caller frees *ret. 0; -ENOTSUP: neither AArch64 nor
 * x86-64, or built without Zydis; -ENOENT: not code of the file; -EIO; -ENOMEM. The worker.
 */
int elf_steps_read(const struct elf_image *img, const struct elf_code *what, uint32_t **ret,
		   uint32_t *ret_n);
/* Whether n steps ascend from 0, within `size` bytes, and the first one begins a block. */
bool elf_steps_sound(const uint32_t *v, uint32_t n, uint32_t size);

#endif
