/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_BASE_PREAD_FULL_H
#define SFBPF_BASE_PREAD_FULL_H

#include <stddef.h>
#include <stdint.h>

/* All len bytes at offset off, however many calls that takes. 0, or -EIO if they are not there or cannot be read. */
int pread_full(int fd, void *buf, size_t len, uint64_t off);

#endif
