/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_BASE_FULL_IO_H
#define SFBPF_BASE_FULL_IO_H

#include <stddef.h>
#include <stdint.h>

/* These transfer all len bytes, in as many calls as needed. */

/* Reads from offset off. 0; -EIO: read error, or end of file. */
int pread_full(int fd, void *buf, size_t len, uint64_t off);
/* 0 or -errno. */
int write_full(int fd, const void *data, size_t len);

#endif
