/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The instructions of one function as text, for the annotated view. The worker that reads foreign
 * ELF files decodes them (symtab/elf_worker.h); the main process checks what it sends.
 */
#ifndef SFBPF_SYMTAB_ELF_CODE_H
#define SFBPF_SYMTAB_ELF_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"

#define ELF_CODE_MOST (64u << 10) /* bytes of a function; the rest of a longer one is left out */

struct elf_instruction {
	uint32_t at, len; /* bytes from the start of the function; bytes of the instruction */
	char text[120];	  /* assembly, AT&T syntax; "(bad)": no valid instruction, one byte */
};

/* The machine code to decode: `size` bytes of the file, which are loaded at addr. */
struct elf_code {
	uint64_t off, addr;
	uint32_t size;
};

/* Sets *ret_n below or equal to `size`; ret has room for as many. */
void elf_code_decode(const uint8_t *code, uint32_t size, uint64_t addr, struct elf_instruction *ret,
		     uint32_t *ret_n);
/*
 * Reads and decodes it. The caller frees *ret. 0; -ENOTSUP: not x86-64, or built without Zydis;
 * -ENOENT: not code of the file; -EIO; -ENOMEM. The worker.
 */
int elf_code_read(const struct elf_image *img, const struct elf_code *what,
		  struct elf_instruction **ret, uint32_t *ret_n);
/* Whether n instructions lie one after the other in `size` bytes, with printable text. */
bool elf_code_sound(const struct elf_instruction *v, uint32_t n, uint32_t size);

#endif
