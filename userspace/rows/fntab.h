/* SPDX-License-Identifier: BSD-2-Clause */
/* Arranges a reader's functions: sorted, inside executable segments, without overlaps. */
#ifndef SFBPF_ROWS_FNTAB_H
#define SFBPF_ROWS_FNTAB_H

#include "elf/elf_image.h"
#include "rows/row.h"

#define EXEC_SEGMENTS_MAX 64

/*
 * PT_LOAD segments with PF_X and bytes in the file, sorted by address. Returns their number, at
 * most cap.
 */
size_t exec_segments(const struct elf_image *img, struct elf_phdr *ret, size_t cap);

/* 0 or -ENOMEM. */
int fntab_arrange(struct fntab *t, const struct elf_image *img);
/* The function that holds the address, in an arranged table. NULL: none. */
const struct fn *fntab_find(const struct fntab *t, uint64_t addr);

#endif
