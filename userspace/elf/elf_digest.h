/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of all that names of a file's functions are read from: its headers, notes (build-id),
 * symbols and their strings. It tells whether a file whose change time is another one was only
 * renamed, linked or deleted, or has other bytes.
 */
#ifndef SFBPF_ELF_ELF_DIGEST_H
#define SFBPF_ELF_ELF_DIGEST_H

#include "elf/elf_image.h"

#define ELF_DIGEST_MOST (16u << 20) /* bytes that are read; what follows does not count */

/* 0: the file cannot be read. */
uint64_t elf_digest(const struct elf_image *img);

#endif
