/* SPDX-License-Identifier: BSD-2-Clause */
/* Bringing a reader's functions in order: sorted, inside executable segments, none reaching into the next. */
#ifndef SFBPF_UNWIND_FNTAB_H
#define SFBPF_UNWIND_FNTAB_H

#include "elf/elf_image.h"
#include "unwind/row.h"

#define EXEC_SEGMENTS_MAX 64

/* PT_LOAD segments with PF_X and bytes in the file, by address. Returns their number, at most cap. */
size_t exec_segments(const struct elf_image *img, struct elf_phdr *ret, size_t cap);

/* 0 or -ENOMEM. */
int fntab_arrange(struct fntab *t, const struct elf_image *img);

#endif
