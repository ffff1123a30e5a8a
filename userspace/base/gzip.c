/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define STREAM_BUFFER (64u << 10)

int gzip_bytes(const void *data, size_t len, int level, uint8_t **ret, size_t *ret_len)
{
	z_stream z = { 0 };
	uLong cap;
	int rc;

	if (len > UINT32_MAX)
		return -ENOMEM;
	/* 15 + 16: the largest window, with a gzip header. */
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

struct stream {
	FILE *to;
	z_stream z;
	uint8_t out[STREAM_BUFFER];
};

/* Packs the input that is left in s->z. 0 or -1. */
static int pack(struct stream *s, int flush)
{
	int rc;

	do {
		s->z.next_out = s->out;
		s->z.avail_out = sizeof(s->out);
		rc = deflate(&s->z, flush);
		if (rc == Z_STREAM_ERROR)
			return -1;
		if (fwrite(s->out, 1, sizeof(s->out) - s->z.avail_out, s->to) !=
		    sizeof(s->out) - s->z.avail_out)
			return -1;
	} while (!s->z.avail_out);
	return 0;
}

static ssize_t stream_write(void *ctx, const char *data, size_t len)
{
	struct stream *s = ctx;

	s->z.next_in = (Bytef *)(uintptr_t)data;
	s->z.avail_in = (uInt)len;
	return pack(s, Z_NO_FLUSH) ? 0 : (ssize_t)len;
}

static int stream_close(void *ctx)
{
	struct stream *s = ctx;
	int err = pack(s, Z_FINISH);

	deflateEnd(&s->z);
	free(s);
	return err;
}

FILE *gzip_stream(FILE *to, int level)
{
	static const cookie_io_functions_t functions = { .write = stream_write,
							 .close = stream_close };
	struct stream *s = calloc(1, sizeof(*s));
	FILE *f;

	if (!s || deflateInit2(&s->z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(s);
		return NULL;
	}
	s->to = to;
	f = fopencookie(s, "w", functions);
	if (!f) {
		deflateEnd(&s->z);
		free(s);
		return NULL;
	}
	setvbuf(f, NULL, _IOFBF, STREAM_BUFFER);
	return f;
}
