/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: all functions of one .eh_frame or .debug_frame.
 *
 * First byte: bits 0-1 architecture, 2 big-endian, 3 .debug_frame, 4 a whole ELF file instead of a
 * section (so that finding it, .eh_frame_hdr and decompression are reached; bits 0-3 are then the
 * file's affair).
 */
#include <stdlib.h>

#include "readers/eh_frame.h"

#define ADDR 0x100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool cond)
{
	if (!cond)
		abort();
}

/*
 * The promises of eh_frame_rows: ascending, without gaps, inside the function; a PLT's rows share
 * their range.
 */
static void check_rows(const struct fn *fn, const struct rowbuf *b)
{
	uint64_t at = fn->start;

	for (size_t i = 0; i < b->n; i++) {
		const struct row *r = &b->rows[i];

		require(r->start < r->end && r->end <= fn->end);
		if (r->plt_rep && r->plt_at)
			require(i > 0 && r->start == r[-1].start && r->end == r[-1].end &&
				r->plt_at > r[-1].plt_at && r->plt_at < r->plt_rep);
		else
			require(r->start == at);
		require(r->source == ROW_EH_FRAME && r->cfa.kind <= RULE_INDEX_MEM &&
			r->ra.kind <= RULE_REG_MEM);
		require(r->cfa_off2 == 0 || r->cfa.kind >= RULE_REG_MEM);
		at = r->end;
	}
}

static void all_rows(struct bytes sec, uint64_t addr, bool debug_frame, enum row_arch arch,
		     const struct elf_image *img)
{
	struct rowbuf rows = { 0 };
	struct eh_frame e;
	struct diag diag = { 0 };

	require(eh_frame_open(&e, sec, addr, debug_frame, arch, img, &diag) == 0);
	for (size_t i = 0; i < e.fns.n; i++) {
		struct fn fn = e.fns.fns[i];

		require(fn.start < fn.end && (i == 0 || e.fns.fns[i - 1].start <= fn.start));
		rows.n = 0;
		require(eh_frame_rows(&e, &fn, &rows, &diag) == 0);
		check_rows(&fn, &rows);
	}
	rowbuf_free(&rows);
	eh_frame_close(&e);
}

static void whole_file(const uint8_t *data, size_t size)
{
	struct diag diag = { 0 };
	struct elf_image img;
	struct elf_blob blob = { 0 };
	bool debug_frame;

	if (elf_image_open_mem(&img, data, size, &diag))
		return;
	if (eh_frame_find(&img, &blob, &debug_frame, &diag) == 0)
		all_rows(blob.view, blob.addr, debug_frame, row_arch_of_machine(img.machine), &img);
	elf_blob_free(&blob);
	elf_image_close(&img);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (data[0] & 0x10)
		whole_file(data + 1, size - 1);
	else
		all_rows(bytes_of(data + 1, size - 1, data[0] & 4), ADDR, data[0] & 8, data[0] & 3,
			 NULL);
	return 0;
}
