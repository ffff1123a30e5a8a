/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/eh_return.h"

#include <errno.h>
#include <string.h>

#include "unwind/code_op.h"
#include "unwind/eh_cfa.h"

/* Bytes of call frame instructions: such functions save all registers. */
#define INSNS_MIN 32
#define INSNS_MAX 512
#define CODE_MAX  65536 /* bytes of one function */

/* Whether the return address is in rcx at the end: GCC's only way to return to another address. */
static bool has_eh_return(const struct eh_frame *eh, const struct eh_fde *fde)
{
	static const uint8_t in_rcx[] = { DW_CFA_register, 16, X86_RCX };
	const uint32_t len = fde->insns_end - fde->insns;

	return len >= INSNS_MIN && len <= INSNS_MAX && fde->insns_end <= eh->sec.len &&
	       memmem(eh->sec.base + fde->insns, len, in_rcx, sizeof(in_rcx));
}

static bool leaves(const struct code_op *op, uint64_t from, uint64_t to)
{
	switch (op->kind) {
	case OP_RET:
	case OP_END:
	case OP_JUMP_REG:
	case OP_JUMP_TABLE:
		return true;
	case OP_JUMP:
	case OP_BRANCH:
		return op->target < from || op->target > to;
	default:
		return false;
	}
}

/*
 * Where the saved registers are overwritten, in the code from the instruction `from` up to `end`:
 * its last part, which nothing leaves before the end, calls a function that does it.
 */
static uint64_t overwritten_from(const struct bytes *text, uint64_t from, uint64_t end)
{
	const struct code_arch *arch = code_arch_x86();
	uint64_t start = from, ret = from;
	bool called = false;
	struct code_op op;

	for (uint64_t at = from; at < end && arch; at += op.len) {
		const struct bytes rest = bytes_sub(text, at - from, end - at);

		arch->decode(bytes_here(&rest), bytes_left(&rest), at, &op);
		if (op.kind == OP_BAD || op.len > end - at)
			return end;
		if (leaves(&op, start, end)) {
			start = ret = at + op.len;
			called = false;
		} else if (op.kind == OP_CALL && !called) {
			ret = at + op.len;
			called = true;
		}
	}
	return arch ? ret : end;
}

static int take(const struct elf_image *img, const struct rowbuf *rows, size_t k,
		struct rowbuf *out)
{
	struct row row = rows->rows[k - 1];
	struct elf_blob text;
	uint64_t off;
	int err;

	if (row.end != rows->rows[k].start || row.end - row.start > CODE_MAX ||
	    !elf_image_vaddr_to_offset(img, row.start, &off))
		return 0;
	err = elf_image_read(img, off, row.end - row.start, &text);
	if (err)
		return err == -ENOMEM ? err : 0;
	row.start = overwritten_from(&text.view, row.start, row.end);
	elf_blob_free(&text);
	row.flags |= ROW_LOST;
	err = row.start < row.end ? rowbuf_push(out, &row) : 0;
	for (; k < rows->n && !err; k++) {
		row = rows->rows[k];
		row.flags |= ROW_SIGNAL;
		err = rowbuf_push(out, &row);
		if (row.ra.kind == RULE_REG)
			break;
	}
	return err;
}

int eh_return_rows(const struct eh_frame *eh, const struct elf_image *img, struct rowbuf *out)
{
	struct rowbuf rows = { 0 };
	int err = 0;

	for (size_t i = 0; i < eh->fns.n && !err; i++) {
		const struct fn *fn = &eh->fns.fns[i];

		if (!has_eh_return(eh, &eh->fdes[fn->ref]))
			continue;
		rows.n = 0;
		err = eh_frame_rows(eh, fn, &rows, NULL);
		for (size_t k = 1; k < rows.n && !err; k++) {
			const struct row *row = &rows.rows[k];

			if (row->cfa.kind != RULE_REG || row->cfa.reg != X86_RCX ||
			    row->fp.kind != RULE_SAME || row->plt_rep)
				continue;
			err = take(img, &rows, k, out);
			break;
		}
	}
	rowbuf_free(&rows);
	return err;
}
