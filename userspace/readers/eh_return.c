/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/eh_return.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codewalk/code_op.h"
#include "readers/eh_cfa.h"
#include "rows/fntab.h"

/* Bytes of call frame instructions: such functions save all registers. */
#define INSNS_MIN 32
#define INSNS_MAX 512
#define CODE_MAX  65536 /* bytes of one function */
#define NODES_MAX 1024	/* instructions of the function that overwrites */
/* CFA offset of an address below sp: every row that needs the frame pointer fails with it */
#define NOWHERE	  (-(1 << 20))

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

/* Decodes the instruction at `at`, in the text of [start, end). False: it is none. */
static bool op_at(const struct bytes *text, uint64_t start, uint64_t end, uint64_t at,
		  struct code_op *ret)
{
	const struct bytes rest = bytes_sub(text, at - start, end - at);

	code_arch_x86()->decode(bytes_here(&rest), bytes_left(&rest), at, ret);
	return ret->kind != OP_BAD && ret->len <= end - at;
}

/* The call that overwrites the saved registers. */
struct overwriting {
	uint64_t ret;	 /* its return address */
	uint64_t target; /* 0: not known */
	bool called;
};

/*
 * Finds the call in the code from the instruction `from` up to `end`: its last part, which nothing
 * leaves before the end, begins with the call, or the registers are overwritten there. false: it is
 * not known.
 */
static bool find_call(const struct bytes *text, uint64_t from, uint64_t end,
		      struct overwriting *ret)
{
	uint64_t start = from;
	struct code_op op;

	*ret = (struct overwriting){ .ret = from };
	for (uint64_t at = from; at < end; at += op.len) {
		if (!op_at(text, from, end, at, &op))
			return false;
		if (leaves(&op, start, end)) {
			start = at + op.len;
			*ret = (struct overwriting){ .ret = start };
		} else if (op.kind == OP_CALL && !ret->called) {
			*ret = (struct overwriting){ at + op.len, op.target, true };
		}
	}
	return true;
}

/* ---- The function that overwrites ---- */

struct node {
	uint64_t addr, target; /* target: of a jump or branch within the function, else 0 */
	uint8_t kind;
	bool tail; /* no loop can be reached from here */
};

static size_t decode(const struct bytes *text, const struct fn *fn, struct node *ret)
{
	struct code_op op;
	size_t n = 0;

	for (uint64_t at = fn->start; at < fn->end; at += op.len) {
		if (n == NODES_MAX || !op_at(text, fn->start, fn->end, at, &op))
			return 0;
		ret[n++] = (struct node){
			.addr = at,
			.target = op.target >= fn->start && op.target < fn->end ? op.target : 0,
			.kind = op.kind,
		};
	}
	return n;
}

static bool is_tail_at(const struct node *nodes, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (nodes[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && nodes[lo].addr == addr && nodes[lo].tail;
}

static bool is_tail(const struct node *nodes, size_t n, size_t i)
{
	const struct node *x = &nodes[i];
	const bool next = i + 1 < n && nodes[i + 1].tail,
		   there = !x->target || is_tail_at(nodes, n, x->target);

	switch (x->kind) {
	case OP_RET:
	case OP_END:
		return true;
	case OP_JUMP_REG:
	case OP_JUMP_TABLE:
		return false;
	case OP_JUMP:
		return there;
	case OP_BRANCH:
		return next && there;
	default:
		return next;
	}
}

/*
 * The return address is overwritten in the last round of the function's loop, so the caller is lost
 * where no loop is ahead. -ENOENT: there is no such loop.
 */
static int take_tails(const struct bytes *text, const struct fn *fn, struct rowbuf *out)
{
	struct row row = { .source = ROW_EH_FRAME, .flags = ROW_LOST };
	struct node *nodes = calloc(NODES_MAX, sizeof(*nodes));
	size_t n = nodes ? decode(text, fn, nodes) : 0;
	bool more = true;
	int err = nodes ? 0 : -ENOMEM;

	while (more) {
		more = false;
		for (size_t i = n; i-- > 0;) {
			if (nodes[i].tail || !is_tail(nodes, n, i))
				continue;
			nodes[i].tail = more = true;
		}
	}
	if (!err && (!n || nodes[0].tail))
		err = -ENOENT;
	for (size_t i = 0; i < n && !err; i++) {
		if (!nodes[i].tail)
			continue;
		row.start = nodes[i].addr;
		while (i + 1 < n && nodes[i + 1].tail)
			i++;
		row.end = i + 1 < n ? nodes[i + 1].addr : fn->end;
		err = rowbuf_push(out, &row);
	}
	free(nodes);
	return err;
}

static int read_code(const struct elf_image *img, uint64_t start, uint64_t end,
		     struct elf_blob *ret)
{
	uint64_t off;

	return end - start > CODE_MAX || !elf_image_vaddr_to_offset(img, start, &off)
		       ? -ENOENT
		       : elf_image_read(img, off, end - start, ret);
}

/* Takes the tails of the function at addr, unless `out` has them: several functions call it. */
static int take_function(const struct eh_frame *eh, const struct elf_image *img, uint64_t addr,
			 struct rowbuf *out)
{
	const struct fn *fn = fntab_find(&eh->fns, addr);
	struct elf_blob text;
	int err;

	if (!fn || fn->start != addr)
		return -ENOENT;
	for (size_t i = 0; i < out->n; i++)
		if (out->rows[i].start >= fn->start && out->rows[i].start < fn->end)
			return 0;
	err = read_code(img, fn->start, fn->end, &text);
	if (err)
		return err;
	err = take_tails(&text.view, fn, out);
	elf_blob_free(&text);
	return err;
}

/* ---- The function that returns elsewhere ---- */

/* The rows from the call on, in the code of `row`. */
static int take_call(const struct eh_frame *eh, const struct elf_image *img, struct row row,
		     const struct overwriting *call, struct rowbuf *out)
{
	const uint64_t end = row.end;
	int err = call->target ? take_function(eh, img, call->target, out) : -ENOENT;

	if (err == -ENOMEM)
		return err;
	/* The row of a caller is that of the byte before the return address. */
	row.start = call->ret - 1;
	row.end = call->ret;
	row.flags |= err ? ROW_LOST : 0;
	rule_unpack(&row.fp, rule_pack(RULE_CFA, 0, NOWHERE));
	err = call->called ? rowbuf_push(out, &row) : 0;
	row.start = call->ret;
	row.end = end;
	row.flags |= ROW_LOST;
	return !err && row.start < row.end ? rowbuf_push(out, &row) : err;
}

static int take(const struct eh_frame *eh, const struct elf_image *img, const struct rowbuf *rows,
		size_t k, struct rowbuf *out)
{
	struct row row = rows->rows[k - 1];
	struct overwriting call;
	struct elf_blob text;
	int err;

	if (row.end != rows->rows[k].start)
		return 0;
	err = read_code(img, row.start, row.end, &text);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (code_arch_x86() && find_call(&text.view, row.start, row.end, &call))
		err = take_call(eh, img, row, &call, out);
	elf_blob_free(&text);
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
			err = take(eh, img, &rows, k, out);
			break;
		}
	}
	rowbuf_free(&rows);
	return err;
}
