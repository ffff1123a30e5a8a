/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unpacks gzip (RFC 1952) in memory, up to a limit, because gzip can expand a thousandfold.
 */
#ifndef SFBPF_BASE_GUNZIP_H
#define SFBPF_BASE_GUNZIP_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/*
 * *ret is malloc'ed. 0; -EINVAL: damaged, or trailing bytes; -EFBIG: more than max bytes; -ENOMEM.
 */
int gunzip(const struct bytes *in, size_t max, uint8_t **ret, size_t *ret_len);

#endif
