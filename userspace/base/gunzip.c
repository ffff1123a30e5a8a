/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/gunzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/vec.h"

#define STEP (1u << 30) /* zlib counts in unsigned int */

struct output {
	uint8_t *buf;
	size_t len, cap;
};

static size_t at_most(size_t n)
{
	return n < STEP ? n : STEP;
}

/* The last four bytes of gzip data are the length of what they unpack to, modulo 2^32. */
static size_t promised(const struct bytes *in)
{
	struct bytes end = in->len < 4 ? bytes_of(NULL, 0, false) : bytes_sub(in, in->len - 4, 4);

	return bytes_u32(&end);
}

/* Produces up to max + 1 bytes, to distinguish "exactly max" from "more". */
static int inflate_all(z_stream *z, const struct bytes *in, size_t max, struct output *out)
{
	size_t done = 0, first = promised(in);
	int rc = Z_OK;

	/* One allocation where the promise is true; a false one costs at most max. */
	if (first < max && vec_reserve(&out->buf, &out->cap, first + 1, 1))
		return -ENOMEM;
	while (rc == Z_OK) {
		if (out->len > max)
			return -EFBIG;
		if (out->len == out->cap && vec_reserve(&out->buf, &out->cap, out->len + 65536, 1))
			return -ENOMEM;
		z->next_in = (uint8_t *)in->base + done;
		z->avail_in = (uInt)at_most(in->len - done);
		z->next_out = out->buf + out->len;
		z->avail_out = (uInt)at_most(out->cap < max + 1 ? out->cap - out->len
								: max + 1 - out->len);
		rc = inflate(z, Z_NO_FLUSH);
		done = (size_t)(z->next_in - in->base);
		out->len = (size_t)(z->next_out - out->buf);
	}
	if (out->len > max)
		return -EFBIG;
	return rc == Z_STREAM_END && done == in->len ? 0 : rc == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
}

int gunzip(const struct bytes *in, size_t max, uint8_t **ret, size_t *ret_len)
{
	struct output out = { 0 };
	z_stream z = { 0 };
	int err;

	/* 15 + 16: the largest window, with a gzip header. */
	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return -ENOMEM;
	err = inflate_all(&z, in, max, &out);
	inflateEnd(&z);
	if (err) {
		free(out.buf);
		return err;
	}
	*ret = out.buf;
	*ret_len = out.len;
	return 0;
}
