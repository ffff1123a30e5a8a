/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_BASE_GZIP_H
#define SFBPF_BASE_GZIP_H

#include <stddef.h>
#include <stdint.h>

/* data as one gzip member (RFC 1952), malloc'ed. level: zlib's, 1 (fast) to 9. 0, -ENOMEM or -EIO. */
int gzip_bytes(const void *data, size_t len, int level, uint8_t **ret, size_t *ret_len);

#endif
