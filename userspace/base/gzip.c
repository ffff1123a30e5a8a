/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

int gzip_bytes(const void *data, size_t len, int level, uint8_t **ret, size_t *ret_len)
{
	z_stream z = { 0 };
	uLong cap;
	int rc;

	if (len > UINT32_MAX)
		return -ENOMEM;
	/* 15 + 16: the largest window, gzip's header. */
	if (deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	cap = deflateBound(&z, (uLong)len);
	*ret = malloc(cap);
	if (!*ret || cap > UINT32_MAX) {
		free(*ret);
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)len;
	z.next_out = *ret;
	z.avail_out = (uInt)cap;
	rc = deflate(&z, Z_FINISH);
	*ret_len = z.total_out;
	deflateEnd(&z);
	if (rc == Z_STREAM_END)
		return 0;
	free(*ret);
	return -EIO;
}
