/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of an ELF file.
 *
 * Taken: STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE where no function covers it (hand-written assembly), in
 * executable segments; PLT stubs as func@plt (x86-64). From .symtab, the file's own or of its debug file; from
 * .dynsym if there is no .symtab or it is the smaller one, and beside a debug file; without any .symtab from Go's
 * runtime table; without section headers from PT_DYNAMIC. What stacks end in is named even in a stripped
 * file: an executable's entry point is _start, and the code in libc that makes the clone3 call is clone3.
 *
 * Of several names at one address the first by this order wins: function before NOTYPE; with a size before
 * without; fewer leading underscores; GLOBAL, WEAK, LOCAL; longer name; earlier in the file's string table.
 * So libc's read is "read", not "__read", as perf prints it.
 *
 * A size of 0 reaches to the next symbol or the end of the section. An address past its symbol's size
 * has no name. Sizes, indices and counts from the file are not trusted.
 */
#ifndef SFBPF_SYM_ELF_SYMTAB_H
#define SFBPF_SYM_ELF_SYMTAB_H

#include "elf/elf_image.h"
#include "sym/symtab.h"

#define SYMTAB_MAX (2u << 20)		/* symbols read of one file */

/*
 * debug: its debug file, which has .symtab; NULL: none. 0 also for a file without symbols; -ENOMEM, -EIO. Of a table beyond SYMTAB_MAX_BYTES
 * the smallest functions are left out. along: bytes of names that are part of it, if there are no more;
 * else they remain in the file. UINT32_MAX: all.
 */
int symtab_build(const struct elf_image *img, const struct elf_image *debug, uint32_t along, struct symtab **ret);
/* Bytes of a name without its version. */
size_t symtab_name_len(const char *name, size_t most);

#endif
