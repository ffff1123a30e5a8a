/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: the whole way from a file's bytes to the tables that BPF searches. Built by
 * scripts/fuzz.sh.
 *
 * Promises: rows of each source and merged ascend and lie inside executable segments; every row
 * that was packed lies in a page that the directory knows.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/space.h"
#include "rows/fntab.h"
#include "tables/pack.h"

#define SPACE (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

/* As space_alloc; no request is larger than a chunk. */
static void *alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	require(size <= SF_CHUNK);
	return space_alloc(ctx, size, ret_loc);
}

static bool in_code(const struct elf_image *img, const struct row *r)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	size_t n = exec_segments(img, segs, EXEC_SEGMENTS_MAX);

	for (size_t i = 0; i < n; i++)
		if (r->start >= segs[i].vaddr && r->end <= segs[i].vaddr + segs[i].filesz)
			return true;
	return false;
}

static void stream(struct unwind_file *f, unsigned int which)
{
	struct diag diag = { 0 };
	struct row_stream s;
	struct row row;
	uint64_t at = 0;

	row_stream_open(&s, f, which, &diag);
	while (row_stream_next(&s, &row) > 0) {
		require(row.start < row.end && in_code(&f->img, &row));
		require(row.start >= at || row.plt_rep);
		if (!row.plt_rep)
			at = row.end;
	}
	row_stream_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct space space;
	struct pack_space ps = { alloc, &space };
	struct pack_result packed;
	struct unwind_file f;
	struct diag diag = { 0 };

	require(space_init(&space, SPACE));
	if (!unwind_file_open_mem(&f, data, size, &diag)) {
		stream(&f, ROWS_SFRAME);
		stream(&f, ROWS_EH_FRAME);
		stream(&f, ROWS_MERGED);
		if (!pack_file(&f, &ps, &packed, &diag)) {
			require(packed.tables.npages > 0 && packed.rows > 0);
			free(packed.ranges);
		}
		unwind_file_close(&f);
	}
	free(space.mem);
	return 0;
}
