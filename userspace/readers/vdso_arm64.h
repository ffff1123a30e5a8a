/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of AArch64's vDSO, derived from its code because it has no unwind tables
 * (arch/arm64/Makefile: -fno-unwind-tables). The code is one compiler's output: a few functions,
 * most without a frame. The others make and leave their frames with a handful of instructions.
 */
#ifndef SFBPF_READERS_VDSO_ARM64_H
#define SFBPF_READERS_VDSO_ARM64_H

#include "elf/elf_image.h"
#include "rows/row.h"

/* A signal's registers, at the rt_sigreturn restorer. */
extern const struct row a64_restorer_row;

/* Appends rows for all of its code, the rt_sigreturn restorer included. Ascending. 0 or -ENOMEM. */
int vdso_arm64_rows(const struct elf_image *img, struct rowbuf *out);

#endif
