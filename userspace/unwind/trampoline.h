/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows for code that has none or wrong ones, and is known by its bytes (elf/known_code.h): nobody calls it, its address is put on a
 * stack by hand. Signal restorers have no CFI in musl and others, and SFrame cannot describe them; glibc's
 * __start_context is outermost, though its CFI says otherwise; musl gives a thread's first frame no CFI, and glibc none to the end of
 * clone() and clone3(), where both the caller's thread and the new one come by (on AArch64 it is the caller's alone).
 * On AArch64 also the vDSO's and PLTs, which neither linker nor assembler describes there.
 */
#ifndef SFBPF_UNWIND_TRAMPOLINE_H
#define SFBPF_UNWIND_TRAMPOLINE_H

#include "elf/elf_image.h"
#include "unwind/row.h"

/*
 * Appends what a C library, AArch64's vDSO (by their SONAMEs) or a static program holds, and PLTs; nothing else is searched. Ascending.
 * 0 or -ENOMEM.
 */
int trampolines_find(const struct elf_image *img, enum row_arch arch, struct rowbuf *out);

#endif
