/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory of a process is a copy of a file's code, at the addresses that a mapping of the
 * file would have. A block with a sampled address must be equal to exactly one of the places of the
 * file that are possible, and the copy extends from there as far as all bytes are equal. Linkers
 * put segments at different distances from their places in the file, so the distance is that of a
 * neighbouring mapping (need->delta), or differs from it by some pages.
 */
#ifndef SFBPF_FILES_TEXT_COPY_H
#define SFBPF_FILES_TEXT_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "border/sfbpf_shared.h"

/* Copies len bytes of the memory, or returns false. */
typedef bool (*text_copy_read_fn)(void *ctx, uint64_t addr, void *to, size_t len);

/* Finds the part that is a copy; start == end: none. Not for several threads at a time. */
struct sf_copy text_copy_find(const struct sf_copy_need *need, int fd, text_copy_read_fn read,
			      void *ctx);

#endif
