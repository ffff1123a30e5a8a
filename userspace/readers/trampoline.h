/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows for code without correct unwind tables that is recognised by its bytes (elf/known_code.h).
 * Most of it is never called; its address is put on a stack by hand.
 *
 * - Signal restorers have no CFI in musl and others, and SFrame cannot describe them.
 * - glibc's __start_context is outermost, though its CFI says otherwise.
 * - glibc's swapcontext() has the CFI of its caller's stack where it is on another.
 * - A thread's first frame has no CFI in musl.
 * - The end of clone() and clone3() has none in glibc. Both the caller's thread and the new
 *   one execute it (on AArch64 the CFI there is right for the caller's thread only).
 * - AArch64's vDSO and PLTs, which neither linker nor assembler describes. lld does not describe
 *   those of x86-64 either.
 * - Boost's Context, which PHP has too, has none: jump_fcontext() goes to another stack, and
 *   make_fcontext() begins one. They are found by their dynamic symbols. x86-64 only.
 * - .init and .fini, whose first and last bytes come from the C library, have none in any file.
 * - A program's entry, from which the kernel starts processes. Its frame is outermost, which SFrame
 *   cannot say, and hand-written _start often has no tables.
 */
#ifndef SFBPF_READERS_TRAMPOLINE_H
#define SFBPF_READERS_TRAMPOLINE_H

#include "elf/elf_image.h"
#include "rows/row.h"

/*
 * Appends the rows of a C library or AArch64's vDSO (by their SONAMEs), of a static program, of
 * entries, of .init and .fini, of AArch64 PLTs, and of Boost's Context. Nothing else is searched.
 * Ascending. 0 or -ENOMEM.
 */
int trampolines_find(const struct elf_image *img, enum row_arch arch, struct rowbuf *out);
/*
 * Adds the row of a signal restorer, unless there is one, or other code is at the address: Go
 * programs have their own, also those with a dynamic linker. 0 or -ENOMEM.
 */
int trampolines_add_restorer(const struct elf_image *img, enum row_arch arch, uint64_t addr,
			     struct rowbuf *out);

/*
 * Adds the rows of a section that is a PLT of x86-64, as linkers make it. For those that no table
 * describes (lld's).
 */
int trampolines_add_plt(const struct elf_image *img, const struct elf_shdr *s, struct rowbuf *out);

#endif
