/* SPDX-License-Identifier: BSD-2-Clause */
/* A file in memory that is written once and then cannot be changed any more, also not by who gets its descriptor. */
#ifndef SFBPF_BASE_SEALED_FILE_H
#define SFBPF_BASE_SEALED_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of size bytes, all 0. A descriptor, or -errno. name is for /proc only. */
int sealed_file_begin(const char *name, off_t size);
/* Seals it, unless there was an error so far (err, 0 or -errno). The descriptor, or -errno with it closed. fd: also of a begin that failed. */
int sealed_file_end(int fd, int err);
/*
 * Such a file of size bytes, of which those in front of `from` are 0 and the others those of `file`. Blocks of zeros take no memory; *ret_bytes: what the others
 * do. Where `file` ends early or cannot be read, there are zeros. The descriptor, or -errno.
 */
int sealed_file_copy(const char *name, int file, off_t from, off_t size, uint32_t *ret_bytes);
/* Whether it is one that sealed_file_end has sealed. */
bool sealed_file_is(int fd);

#endif
