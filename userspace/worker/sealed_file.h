/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file in memory that is written once and then sealed: no holder of a descriptor can change it.
 */
#ifndef SFBPF_WORKER_SEALED_FILE_H
#define SFBPF_WORKER_SEALED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Makes a file of size bytes: zeros up to `from`, then the bytes of `file`, then zeros if `file`
 * ends early or cannot be read. Blocks of zeros take no memory. *ret_bytes: memory of the other
 * blocks. Returns the descriptor, or -errno. name is only shown in /proc.
 */
int sealed_file_copy(const char *name, int file, off_t from, off_t size, uint32_t *ret_bytes);
/* Whether sealed_file_copy made it. */
bool sealed_file_is(int fd);

#endif
