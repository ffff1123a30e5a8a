/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of one ELF file, sorted by file offset: 16 bytes each, no names. The offset (that is what frame
 * words carry) is searched by bisection; a name is read from the file's string table when it is asked for.
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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/elf_image.h"
#include "sym/debug_file.h"

#define SYMTAB_MAX (4u << 20)		/* symbols read of one file */
#define SYMTAB_NAME_MAX 4096		/* bytes of a name, with its NUL; longer ones are cut */

struct symtab;

struct symtab_hit {
	uint32_t index;		/* of the symbol in this table */
	uint64_t start, size;	/* file offset, bytes */
	bool plt;		/* its name is that of the function it jumps to */
};

/*
 * Reads img, which may be closed afterwards; its fd or memory must outlive the table (names come from there).
 * 0 also for a file without symbols; -ENOMEM, -EIO.
 */
int symtab_build(const struct elf_image *img, struct symtab **ret);
/* The same with the symbols of its debug file (debug_file_find), which belongs to the table if that is 0. */
int symtab_build_with(const struct elf_image *img, struct debug_file *debug, struct symtab **ret);
void symtab_free(struct symtab *t);
bool symtab_find(const struct symtab *t, uint64_t offset, struct symtab_hit *ret);
/* As in the file, but without a symbol version ("@GLIBC_2.2.5"). Bytes without the NUL, or -EIO, -ENOENT. */
int symtab_name(const struct symtab *t, const struct symtab_hit *hit, char *buf, size_t cap);
uint32_t symtab_count(const struct symtab *t);
bool symtab_at(const struct symtab *t, uint32_t index, struct symtab_hit *ret);
size_t symtab_bytes(const struct symtab *t);

#endif
