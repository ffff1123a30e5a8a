/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows for code that nobody calls (elf/known_code.h): its address is put on a stack by hand, and its tables are missing
 * or wrong. x86-64. Signal restorers have no CFI in musl and others, and SFrame cannot describe them; glibc's
 * __start_context is outermost, though its CFI says otherwise; musl gives a thread's first frame no CFI.
 */
#ifndef SFBPF_UNWIND_TRAMPOLINE_H
#define SFBPF_UNWIND_TRAMPOLINE_H

#include "elf/elf_image.h"
#include "unwind/row.h"

/*
 * Appends what a C library (by its SONAME) or a static program holds; anything else is not searched. Ascending.
 * 0 or -ENOMEM.
 */
int trampolines_find(const struct elf_image *img, enum row_arch arch, struct rowbuf *out);

#endif
