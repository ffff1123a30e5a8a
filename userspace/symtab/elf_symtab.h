/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of an ELF file.
 *
 * Symbol types: STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE where no function covers it (hand-written
 * assembly), in executable segments. PLT stubs are named func@plt (x86-64).
 *
 * Sources: .symtab of the file or of its debug file; .dynsym if there is no .symtab, if .symtab is
 * the smaller one, or if there is a debug file; Go's runtime table if there is no .symtab;
 * PT_DYNAMIC if there are no section headers. The frames that end stacks are named even in a
 * stripped file: the entry point of an executable is _start, and the code in libc that makes the
 * clone3 call is clone3.
 *
 * Of several names at one address, the best one by this order is used: function before NOTYPE;
 * STT_FUNC before STT_GNU_IFUNC; with a size before without; fewer leading underscores; GLOBAL,
 * WEAK, LOCAL; longer name; earlier in the file's string table. So libc's read is "read", not
 * "__read", as perf prints it.
 *
 * Two marks follow a name that alone would mislead (elf_symtab_marks.c). "f [+2]": f and two other
 * functions were folded into one, as their code is equal. Overloads count. Names of C do not, as
 * they are aliases on purpose. "memcpy [resolver]": the code is not memcpy but chooses one. Marked
 * names are part of the table, even if others stay in the file.
 *
 * In a file without .symtab, functions that only unwind tables describe are listed without a name.
 *
 * A symbol without a size ends where its code does (symtab/elf_extent.c), at the next symbol or
 * function at the latest. An address past its symbol's size has no name. Sizes, indices and counts
 * in the file are not trusted.
 */
#ifndef SFBPF_SYMTAB_ELF_SYMTAB_H
#define SFBPF_SYMTAB_ELF_SYMTAB_H

#include "elf/elf_image.h"
#include "symtab/symtab.h"

#define SYMTAB_MAX (2u << 20) /* symbols read from one file */

/*
 * debug: the debug file, which has .symtab; NULL: none. Returns 0 even for a file without symbols;
 * -ENOMEM; -EIO. A table beyond SYMTAB_MAX_BYTES loses its smallest functions. The names are part
 * of the table if they take at most `along` bytes, otherwise they stay in the file. UINT32_MAX:
 * always part of the table.
 */
int symtab_build(const struct elf_image *img, const struct elf_image *debug, uint32_t along,
		 struct symtab **ret);

#endif
