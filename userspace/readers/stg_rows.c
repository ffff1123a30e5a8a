/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/stg_rows.h"

#include <errno.h>

#include "readers/eh_cfa.h"

/* Bytes of the frame, which has room for the stack of C functions */
#define FRAME_MIN 4096

/* The function of the FDE whose instructions hold that byte of the section; NULL: none. */
static const struct fn *function_at(const struct eh_frame *e, uint64_t pos)
{
	for (size_t i = 0; i < e->fns.n; i++) {
		const struct eh_fde *fde = &e->fdes[e->fns.fns[i].ref];

		if (pos >= fde->insns && pos < fde->insns_end)
			return &e->fns.fns[i];
	}
	return NULL;
}

bool stg_row(const struct unwind_file *file, struct row *ret)
{
	/* rsp is rsp + a number of three bytes of LEB128 */
	static const uint8_t gives_rsp[] = { DW_CFA_val_expression, X86_RSP, 4, 0x70 + X86_RSP };
	struct rowbuf rows = { 0 };
	const struct fn *fn = NULL;
	struct bytes b;
	bool found;

	if (!file->has_eh || file->arch != ROW_ARCH_X86_64)
		return false;
	b = file->eh.sec;
	bytes_seek(&b, 0);
	if (bytes_find(&b, gives_rsp, sizeof(gives_rsp)))
		fn = function_at(&file->eh, b.pos);
	found = fn && !eh_frame_rows(&file->eh, fn, &rows, NULL) && rows.n;
	if (found)
		*ret = rows.rows[rows.n - 1];
	rowbuf_free(&rows);
	return found && ret->cfa.kind == RULE_REG && ret->cfa.reg == X86_RSP &&
	       ret->cfa.off >= FRAME_MIN && ret->ra.kind == RULE_CFA_MEM;
}

#define CALL_MAX 5	    /* bytes of a call's instruction */
#define PIECE	 (1u << 20) /* bytes of code that are in memory at once */

static int put(struct rowbuf *out, struct row row, uint64_t start, uint64_t end, int32_t lower)
{
	row.source = ROW_CODE;
	row.start = start;
	row.end = end;
	row.cfa.off += lower; /* keeps the CFA, which the other rules are relative to */
	return start < end ? rowbuf_push(out, &row) : 0;
}

/* The length of the call that ends at b's position; 0: there is none. */
static unsigned int call_before(const struct bytes *b)
{
	const uint8_t *at = bytes_here(b);

	if (b->pos >= 5 && at[-5] == 0xe8)
		return 5;
	return b->pos >= 2 && at[-2] == 0xff && (at[-1] & 0xf8) == 0xd0 ? 2 : 0;
}

/* Appends the rows of a piece of the code that is in memory. *done: the end of the rows so far. */
static int fill_piece(struct bytes b, uint64_t addr, const struct row *row, uint64_t *done,
		      struct rowbuf *out)
{
	static const uint8_t add_rsp[] = { 0x48, 0x83, 0xc4 };
	int err = 0;

	while (!err && bytes_find(&b, add_rsp, sizeof(add_rsp)) && bytes_left(&b) > 3) {
		const uint64_t at = addr + b.pos;
		const unsigned int call = call_before(&b);
		const uint8_t by = bytes_here(&b)[3];

		if (call && at - call >= *done && by % 8 == 0 && by < 0x80) {
			err = put(out, *row, *done, at - call, 0);
			if (!err)
				err = put(out, *row, at - call, at + 4, by);
			*done = at + 4;
		}
		bytes_skip(&b, sizeof(add_rsp));
	}
	return err;
}

int stg_fill(const struct unwind_file *file, struct row row, bool brief, uint64_t start,
	     uint64_t end, struct rowbuf *out)
{
	uint64_t done = start;
	int err = 0;

	for (uint64_t at = start; !brief && at < end && !err; at += PIECE) {
		/* Pieces overlap, so that no call is cut. */
		const uint64_t from = at - start < CALL_MAX ? start : at - CALL_MAX,
			       to = end - at < PIECE + 4 ? end : at + PIECE + 4;
		struct elf_blob code = { 0 };
		uint64_t offset;

		if (!elf_image_vaddr_to_offset(&file->img, from, &offset))
			return -EIO;
		err = elf_image_read(&file->img, offset, to - from, &code);
		if (!err)
			err = fill_piece(code.view, from, &row, &done, out);
		elf_blob_free(&code);
	}
	return err ? err : put(out, row, done, end, 0);
}
