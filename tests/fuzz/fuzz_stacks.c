/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: files that report and diff read (folded, JSON, pprof). Built by
 * scripts/fuzz.sh. What starts like an uncompressed profile.proto is packed first, so that
 * mutations reach what is inside.
 *
 * Promises: an error says where, unless memory ran out; the leaves add up to the total; parents
 * come before their children; and what was read can be written in all ways.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "out/out_html.h"
#include "out/out_stacks.h"
#include "prof/read_stacks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

/* gzip without compression: fast, and as long as its input. */
static uint8_t *pack(const uint8_t *data, size_t size, size_t *ret)
{
	z_stream z = { .next_in = (uint8_t *)data, .avail_in = (uInt)size };
	size_t cap = size + size / 100 + 100;
	uint8_t *out = malloc(cap);

	require(out && deflateInit2(&z, 0, Z_DEFLATED, 15 + 16, 1, Z_DEFAULT_STRATEGY) == Z_OK);
	z.next_out = out;
	z.avail_out = (uInt)cap;
	require(deflate(&z, Z_FINISH) == Z_STREAM_END);
	*ret = cap - z.avail_out;
	deflateEnd(&z);
	return out;
}

static void check(const struct stackset *ss)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < ss->nodes.n; i++)
		require(ss->nodes.keys[i].a < i && ss->nodes.keys[i].b < ss->frames.n);
	for (size_t l = 0; l < ss->leaves.n; l++) {
		require(ss->leaves.keys[l].a < ss->nodes.n && ss->leaves.keys[l].b < ss->groups.n);
		sum += ss->values[l][STACK_AFTER];
	}
	require(sum == ss->totals[STACK_AFTER]);
}

static void write_all(const struct stackset *ss)
{
	struct stacks_text text = { .unit = "samples", .rows = 40, .tree_min = 1 };
	struct html_meta meta = { .title = "fuzz" };
	FILE *f = fopen("/dev/null", "w");

	require(f && !stacks_write_text(ss, &text, f) &&
		!stacks_write_folded(ss, false, UINT64_MAX, f) && !html_write(ss, &meta, f));
	fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *packed = size && data[0] == 0x0a ? pack(data, size, &size) : NULL;
	FILE *f = size ? fmemopen(packed ? packed : (uint8_t *)data, size, "r") : NULL;
	struct stacks_meta meta;
	struct read_error why;
	struct stackset ss;
	int err;

	require(!stackset_init(&ss));
	if (f) {
		err = read_stacks(f, &ss, STACK_AFTER, &meta, &why);
		require(!err || err == -EFBIG || (err == -EINVAL && *why.text));
		fclose(f);
		check(&ss);
		if (!err)
			write_all(&ss);
	}
	stackset_free(&ss);
	free(packed);
	return 0;
}
