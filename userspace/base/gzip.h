/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_BASE_GZIP_H
#define SFBPF_BASE_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Packs data as one gzip member (RFC 1952); *ret is malloc'ed. level: zlib's, 1 (fast) to 9. 0,
 * -ENOMEM or -EIO.
 */
int gzip_bytes(const void *data, size_t len, int level, uint8_t **ret, size_t *ret_len);
/*
 * A stream whose bytes are packed into one gzip member and written to `to`. fclose ends the member
 * but leaves `to` open; it fails if writing failed. NULL: out of memory.
 */
FILE *gzip_stream(FILE *to, int level);

#endif
