/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codewalk/code_op.h"
#include "readers/eh_cfa.h"
#include "readers/one_row.h"
#include "rows/fntab.h"

#define CODE_MIN   1024u /* bytes of code with one row; most cold parts of functions have less */
#define CODE_MAX   (1u << 20) /* bytes of it, in all of a file */
#define INSNS_MAX  64u	      /* bytes of call frame instructions that may make one row */
#define FRAME_MAX  2048	      /* bytes */
#define ENTRY	   8	      /* height of the stack at an entry: the return address */
#define LEADS	   1	      /* added to it at one that makes the frame: it leads into the code */
#define RUN_MAX	   64u	      /* bytes of pushes or pops */
#define CALLS_MAX  256u	      /* functions inside */
#define LEAF_MAX   1024u      /* instructions of one of them */
#define LEAF_AHEAD 64u	      /* places that are not looked at yet */

struct inner {
	const struct code_arch *arch;
	struct one_row_fn fn;
	uint16_t *height;	   /* stack height at each byte where the row is wrong; else 0 */
	uint64_t calls[CALLS_MAX]; /* offsets of functions inside */
	size_t ncalls;
};

/* Decodes the instruction at that offset. False: there is none. */
static bool decode(const struct inner *in, uint64_t at, struct code_op *op)
{
	struct bytes text;

	if (at >= in->fn.text.len)
		return false;
	text = bytes_sub(&in->fn.text, at, in->fn.text.len - at);
	in->arch->decode(bytes_here(&text), bytes_left(&text), in->fn.start + at, op);
	return op->kind != OP_BAD && op->len <= in->fn.text.len - at;
}

/* Notes the height for the instruction. */
static void put(struct inner *in, uint64_t at, const struct code_op *op, int64_t height)
{
	for (unsigned int i = 0; i < op->len; i++)
		in->height[at + i] = (uint16_t)height;
}

/* ---- Pushes and pops ---- */

/* How much the instruction raises rsp; 0: it does not, or does more than to push or pop. */
static int64_t raise_of(const struct inner *in, const struct code_op *op)
{
	const uint8_t sp = in->arch->sp;

	if (op->kind == OP_LEA && op->dst == sp && op->src == sp && op->imm % 8 == 0)
		return op->imm;
	if ((op->kind != OP_STORE && op->kind != OP_LOAD) || op->base != sp ||
	    op->index != CODE_NO_REG || op->size != 8)
		return 0;
	return op->writeback;
}

/* The register is pushed to, or popped from, just the place that the row names. */
static bool fits(const struct rule *saved, uint8_t reg, const struct code_op *op, int64_t height)
{
	const uint8_t moved = op->kind == OP_STORE ? op->src2 : op->dst;
	const bool here = saved->kind == RULE_CFA_MEM && saved->off == -height;

	return op->kind == OP_LEA || here == (moved == reg);
}

/*
 * The offset behind the pushes at `at`, if they lead from an entry to the row's frame, or behind
 * the pops there, if they lead from that frame to a return. 0: they do not. put: notes the heights
 */
static uint64_t pass_run(struct inner *in, uint64_t at, bool down, bool note)
{
	const int64_t frame = in->fn.row.cfa.off;
	int64_t height = down ? ENTRY : frame, by;
	const uint64_t from = at;
	struct code_op op;

	while (decode(in, at, &op) && at - from < RUN_MAX) {
		by = raise_of(in, &op);
		if (!by || (by < 0) != down)
			break;
		if (note)
			put(in, at, &op, height);
		if (!fits(&in->fn.row.fp, X86_RBP, &op, down ? height - by : height) ||
		    !fits(&in->fn.row.bx, X86_RBX, &op, down ? height - by : height))
			return 0;
		height -= by;
		at += op.len;
		if (height < ENTRY || height > frame)
			return 0;
	}
	if (height != (down ? frame : ENTRY))
		return 0;
	if (down)
		return at;
	if (!decode(in, at, &op) || op.kind != OP_RET)
		return 0;
	if (note)
		put(in, at, &op, height);
	return at + op.len;
}

/* Passes a run and notes its heights. reached: from the instruction before */
static uint64_t take_run(struct inner *in, uint64_t at, const struct code_op *op, bool reached)
{
	const int64_t by = raise_of(in, op);
	uint64_t end = 0;

	if (by > 0 || (by < 0 && !reached))
		end = pass_run(in, at, by < 0, false);
	if (end)
		pass_run(in, at, by < 0, true);
	if (end && by < 0)
		for (unsigned int i = 0; i < op->len; i++)
			in->height[at + i] |= LEADS;
	return end;
}

static bool goes_on(const struct code_op *op, bool reached)
{
	switch (op->kind) {
	case OP_NOP:
		return reached;
	case OP_RET:
	case OP_JUMP:
	case OP_JUMP_REG:
	case OP_JUMP_TABLE:
	case OP_END:
		return false;
	default:
		return true;
	}
}

/* All instructions one after the other: finds pushes and pops, and what calls lead to. */
static void sweep(struct inner *in)
{
	uint64_t at = 0, end;
	bool reached = true;
	struct code_op op;

	while (at < in->fn.text.len) {
		if (!decode(in, at, &op)) {
			at++;
			reached = true;
			continue;
		}
		end = take_run(in, at, &op, reached);
		reached = end ? raise_of(in, &op) < 0 : goes_on(&op, reached);
		at = end ? end : at + op.len;
		if (op.kind == OP_CALL && op.target != in->fn.start + at &&
		    op.target - in->fn.start < in->fn.text.len && in->ncalls < CALLS_MAX)
			in->calls[in->ncalls++] = op.target - in->fn.start;
	}
}

/* ---- Functions inside ---- */

/* What is to be looked at in a function whose instructions have no frame, and what was. */
struct leaf {
	uint64_t ahead[LEAF_AHEAD], done[LEAF_MAX];
	size_t nahead, ndone;
};

static bool changes(const struct code_op *op, uint8_t reg)
{
	return code_op_writes(op) >> reg & 1 || (op->writeback && op->base == reg);
}

static bool was_done(const struct leaf *l, uint64_t at)
{
	for (size_t i = 0; i < l->ndone; i++)
		if (l->done[i] == at)
			return true;
	return false;
}

/* Follows the code from `at` to its return. False: it has a frame, or goes elsewhere. */
static bool follow_leaf(const struct inner *in, struct leaf *l, uint64_t at)
{
	struct code_op op;

	while (!was_done(l, at)) {
		if (!decode(in, at, &op) || l->ndone == LEAF_MAX ||
		    (in->height[at] && in->height[at] != ENTRY))
			return false;
		l->done[l->ndone++] = at;
		if (op.kind == OP_RET)
			return !op.pops;
		if (op.kind == OP_BAD || op.kind == OP_END || op.kind == OP_CALL ||
		    op.kind == OP_SYSCALL || op.kind == OP_LEAVE || op.kind == OP_ENTER ||
		    op.kind == OP_JUMP_REG || op.kind == OP_JUMP_TABLE || op.pops ||
		    changes(&op, X86_RSP) || changes(&op, X86_RBP) || changes(&op, X86_RBX))
			return false;
		if (op.kind == OP_BRANCH && l->nahead < LEAF_AHEAD)
			l->ahead[l->nahead++] = op.target - in->fn.start;
		else if (op.kind == OP_BRANCH)
			return false;
		at = op.kind == OP_JUMP ? op.target - in->fn.start : at + op.len;
	}
	return true;
}

/* Notes the function's height, if it has no frame and returns on all ways. */
static void take_leaf(struct inner *in, struct leaf *l, uint64_t at)
{
	struct code_op op;

	l->ndone = 0;
	l->nahead = 1;
	l->ahead[0] = at;
	while (l->nahead)
		if (!follow_leaf(in, l, l->ahead[--l->nahead]))
			return;
	for (size_t i = 0; i < l->ndone; i++)
		if (decode(in, l->done[i], &op))
			put(in, l->done[i], &op, ENTRY);
}

/* ---- Rows ---- */

/* The row's rule at a height: the register was not saved yet, or not any more. */
static struct rule rule_at(const struct rule *rule, int64_t height)
{
	return rule->kind == RULE_CFA_MEM && -rule->off > height
		       ? (struct rule){ .kind = RULE_SAME }
		       : *rule;
}

static int push_rows(const struct inner *in, struct rowbuf *out)
{
	const uint64_t len = in->fn.text.len;
	struct row row = in->fn.row;
	uint64_t end;
	int err = 0;

	row.source = ROW_CODE;
	for (uint64_t at = 0; at < len && !err; at = end) {
		const uint16_t height = in->height[at];

		for (end = at + 1; end < len && in->height[end] == height;)
			end++;
		row.start = in->fn.start + at;
		row.end = in->fn.start + end;
		row.cfa.off = height & ~LEADS;
		row.flags = height & LEADS ? ROW_LEADS : 0;
		row.fp = rule_at(&in->fn.row.fp, row.cfa.off);
		row.bx = rule_at(&in->fn.row.bx, row.cfa.off);
		err = height ? rowbuf_push(out, &row) : 0;
	}
	return err;
}

/* ---- Functions that end in a jump to such code ---- */

#define LEADS_MAX 64 /* entries, and functions that jump to them, in a file */

struct leads {
	uint64_t to[LEADS_MAX];
	size_t n;
};

static bool has_lead(const struct leads *l, uint64_t addr)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->to[i] == addr)
			return true;
	return false;
}

/* A function that holds a jump to one of these leads to run-time code, too. 0 or -ENOMEM. */
static int take_jump(const struct eh_frame *eh, uint64_t from, struct leads *l, struct rowbuf *out)
{
	const struct fn *fn = fntab_find(&eh->fns, from);
	struct rowbuf rows = { 0 };
	struct row row;
	int err;

	if (!fn || l->n == LEADS_MAX || has_lead(l, fn->start))
		return 0;
	err = eh_frame_rows(eh, fn, &rows, NULL);
	if (!err && rows.n) {
		row = rows.rows[0];
		row.end = row.start + 1;
		row.flags |= ROW_LEADS;
		if (row.start == fn->start && row.cfa.kind == RULE_REG && row.cfa.reg == X86_RSP &&
		    row.cfa.off == ENTRY && row.ra.kind == RULE_CFA_MEM && !row.plt_rep) {
			l->to[l->n++] = fn->start;
			err = rowbuf_push(out, &row);
		}
	}
	rowbuf_free(&rows);
	return err;
}

/* Direct jumps in the segment. */
static int take_jumps(const struct eh_frame *eh, const struct elf_image *img,
		      const struct elf_phdr *seg, struct leads *l, struct rowbuf *out)
{
	struct elf_blob text;
	int err = seg->filesz <= CODE_MAX ? elf_image_read(img, seg->offset, seg->filesz, &text)
					  : -EFBIG;

	if (err)
		return err == -ENOMEM ? err : 0;
	for (uint64_t i = 0; i + 5 <= text.view.len && !err; i++) {
		const uint8_t *code = text.view.base + i;
		int32_t by;

		if (*code != 0xe9)
			continue;
		memcpy(&by, code + 1, sizeof(by));
		if (has_lead(l, seg->vaddr + i + 5 + (uint64_t)(int64_t)by))
			err = take_jump(eh, seg->vaddr + i, l, out);
	}
	elf_blob_free(&text);
	return err;
}

/*
 * lua_call() and others end in a jump to an entry of the interpreter, so a call of them leads
 * there. first: of the rows that were added to out
 */
static int push_leads(const struct eh_frame *eh, const struct elf_image *img, size_t first,
		      struct rowbuf *out)
{
	struct elf_phdr segs[EXEC_SEGMENTS_MAX];
	struct leads l = { .n = 0 };
	size_t n = 0, nsegs;
	int err = 0;

	for (size_t i = first; i < out->n && l.n < LEADS_MAX; i++)
		if (out->rows[i].flags & ROW_LEADS)
			l.to[l.n++] = out->rows[i].start;
	nsegs = l.n ? exec_segments(img, segs, EXEC_SEGMENTS_MAX) : 0;
	for (int round = 0; l.n > n && round < 4 && !err; round++) {
		n = l.n;
		for (size_t i = 0; i < nsegs && !err; i++)
			err = take_jumps(eh, img, &segs[i], &l, out);
	}
	return err;
}

/*
 * Whether there may be an instruction that returns after two pops or an addition to rsp. Compilers
 * describe that by more than one row, and to decode their code would take time.
 */
static bool may_remove_frame(const struct inner *in)
{
	struct bytes text = in->fn.text;

	for (; bytes_left(&text) >= 5; bytes_skip(&text, 1)) {
		const uint64_t next = bytes_peek64le(&text);

		if ((next & 0xfff8f8) == 0xc35858 || (next & 0xfff8fff8) == 0xc3584158 ||
		    (next & 0xff00ffffff) == 0xc300c48348)
			return true;
	}
	return false;
}

static int take_code(struct inner *in, struct rowbuf *out)
{
	struct leaf *leaf = malloc(sizeof(*leaf));
	int err = -ENOMEM;

	in->height = calloc(in->fn.text.len, sizeof(*in->height));
	in->ncalls = 0;
	if (leaf && in->height) {
		sweep(in);
		for (size_t i = 0; i < in->ncalls; i++)
			take_leaf(in, leaf, in->calls[i]);
		err = push_rows(in, out);
	}
	free(leaf);
	free(in->height);
	return err;
}

static bool has_frame(const struct row *row)
{
	return row->cfa.kind == RULE_REG && row->cfa.reg == X86_RSP && row->cfa.off > ENTRY &&
	       row->cfa.off <= FRAME_MAX && row->cfa.off % 8 == 0 && row->ra.kind == RULE_CFA_MEM &&
	       row->ra.off == -8;
}

static int take(void *ctx, const struct one_row_fn *fn, struct rowbuf *out)
{
	struct inner *in = ctx;

	in->fn = *fn;
	return may_remove_frame(in) ? take_code(in, out) : 0;
}

int code_inner_rows(const struct eh_frame *eh, const struct elf_image *img, struct rowbuf *out)
{
	static const struct one_row_kind kind = {
		.code_min = CODE_MIN,
		.code_max = CODE_MAX,
		.insns_max = INSNS_MAX,
		.is = has_frame,
		.take = take,
	};
	struct inner in = { .arch = code_arch_x86() };
	const size_t first = out->n;
	int err = in.arch ? one_row_each(eh, img, &kind, &in, out) : 0;

	return err ? err : push_leads(eh, img, first, out);
}
