/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/code_framed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "codewalk/code_op.h"
#include "readers/eh_cfa.h"
#include "readers/one_row.h"

#define CODE_MIN   6u	      /* bytes */
#define CODE_MAX   (8u << 20) /* bytes of such code, in all of a file */
#define STEPS_MAX  (2u << 20) /* instructions */
#define INSNS_MAX  16u	      /* bytes of call frame instructions */
#define PASSES_MAX 24
#define HEIGHT_MAX 1024 /* bytes */

/* What is known before an instruction; else the height of the stack: rsp is that far below CFA. */
enum { UNKNOWN, DISAGREE = 1, FRAMED = 2, ENTRY = 8 };

enum effect {
	PLAIN,
	MOVES_SP, /* step.by says how far */
	SETS_FP,  /* mov %rsp, %rbp */
	TAKES_FP, /* mov %rbp, %rsp, or an address in the frame */
	POPS_FP,
	LEAVES,
	RETURNS,
	CALLS,
	ENDS,  /* what follows is other code */
	LOSES, /* rsp or rbp has another value */
};

struct step {
	uint32_t at;  /* offset in the code */
	uint32_t to;  /* what the jump or branch leads to, index + 1; 0: nothing here */
	int16_t by;   /* change of rsp, bytes */
	uint8_t kind; /* enum effect */
	uint8_t len;
	bool entry; /* a function begins here */
	bool nop, ends;
	uint16_t state; /* what is known before it */
};

struct framed {
	const struct code_arch *arch;
	struct one_row_fn fn;
	struct step *steps;
	size_t n, cap;
	uint8_t *entries; /* a bit for each byte: called */
	bool changed;
};

static bool bit(const uint8_t *bits, uint64_t i)
{
	return bits[i / 8] >> i % 8 & 1;
}

/* ---- Instructions ---- */

static bool writes(const struct code_op *op, uint8_t reg)
{
	return code_op_writes(op) >> reg & 1 || (op->writeback && op->base == reg);
}

static enum effect effect_of(const struct code_op *op, int16_t *by)
{
	switch (op->kind) {
	case OP_RET:
		return op->pops ? LOSES : RETURNS;
	case OP_CALL:
		return CALLS;
	case OP_LEAVE:
		return LEAVES;
	case OP_ENTER:
	case OP_BAD:
		return LOSES;
	case OP_LEA:
		if (op->dst == X86_RBP && op->src == X86_RSP && !op->imm)
			return SETS_FP;
		if (op->dst == X86_RSP && op->src == X86_RBP)
			return TAKES_FP;
		if (op->dst != X86_RSP || op->src != X86_RSP || op->imm != (int16_t)op->imm)
			break;
		*by = (int16_t)op->imm;
		return MOVES_SP;
	case OP_LOAD:
	case OP_STORE:
	case OP_OTHER:
		if (op->kind == OP_LOAD && op->dst == X86_RBP)
			return op->base == X86_RSP && op->writeback == 8 ? POPS_FP : LOSES;
		if (writes(op, X86_RBP) || op->dst == X86_RSP || op->writes >> X86_RSP & 1)
			break;
		*by = (int16_t)((op->base == X86_RSP ? op->writeback : 0) +
				(op->kind == OP_OTHER ? op->pops : 0));
		return *by ? MOVES_SP : PLAIN;
	default:
		break;
	}
	return writes(op, X86_RSP) || writes(op, X86_RBP) ? LOSES : PLAIN;
}

static bool goes_on(const struct code_op *op)
{
	return op->kind != OP_RET && op->kind != OP_JUMP && op->kind != OP_JUMP_REG &&
	       op->kind != OP_JUMP_TABLE && op->kind != OP_END && op->kind != OP_BAD;
}

/* The instruction at that offset, up to the next entry. OP_BAD, one byte: there is none. */
static void decode(const struct framed *f, uint64_t at, struct code_op *op)
{
	const uint8_t *code = f->fn.text.base + at;

	f->arch->decode(code, f->fn.text.len - at, f->fn.start + at, op);
	if (op->len > f->fn.text.len - at)
		op->kind = OP_BAD;
	for (unsigned int i = 1; i < op->len && op->kind != OP_BAD; i++)
		if (bit(f->entries, at + i))
			op->kind = OP_BAD;
	if (op->kind == OP_BAD)
		op->len = 1;
}

static size_t step_at(const struct framed *f, uint64_t at)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (f->steps[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < f->n && f->steps[lo].at == at ? lo + 1 : 0;
}

/* Fills f->steps; `to` is an offset + 1, also of calls. 0, -E2BIG or -ENOMEM. */
static int decode_all(struct framed *f)
{
	struct code_op op;

	f->n = 0;
	for (uint64_t at = 0; at < f->fn.text.len; at += op.len) {
		struct step *s;

		if (f->n == STEPS_MAX)
			return -E2BIG;
		if (vec_reserve(&f->steps, &f->cap, f->n + 1, sizeof(*f->steps)))
			return -ENOMEM;
		s = &f->steps[f->n++];
		decode(f, at, &op);
		*s = (struct step){ .at = (uint32_t)at, .len = op.len };
		s->kind = (uint8_t)effect_of(&op, &s->by);
		s->ends = !goes_on(&op);
		s->nop = op.kind == OP_NOP;
		if ((op.kind == OP_JUMP || op.kind == OP_BRANCH || op.kind == OP_CALL) &&
		    op.target && op.target - f->fn.start < f->fn.text.len)
			s->to = (uint32_t)(op.target - f->fn.start) + 1;
	}
	return 0;
}

/* Notes what calls lead to. False: to the middle of an instruction, so data was taken for code. */
static bool find_entries(struct framed *f)
{
	bool found = true;

	for (size_t i = 0; i < f->n; i++) {
		struct step *s = &f->steps[i];
		const size_t to = s->to ? step_at(f, s->to - 1) : 0;

		/* A call of the next instruction reads its address. */
		if (s->kind == CALLS && s->to && s->to - 1 != s->at + s->len) {
			f->entries[(s->to - 1) / 8] |= (uint8_t)(1u << (s->to - 1) % 8);
			found &= to != 0;
		}
		if (to && s->kind == CALLS && to != i + 2)
			f->steps[to - 1].entry = true;
		s->to = s->kind == CALLS ? 0 : (uint32_t)to;
		if (i && s->kind == SETS_FP && s[-1].kind == MOVES_SP &&
		    f->fn.text.base[s[-1].at] == 0x55) /* push %rbp */
			s[-1].entry = true;
	}
	return found;
}

/* ---- What is known ---- */

static bool is_height(uint16_t state)
{
	return state >= ENTRY;
}

static void know(struct framed *f, size_t i, uint16_t state)
{
	struct step *s = &f->steps[i];

	if (state == UNKNOWN || s->state == state || s->state == DISAGREE)
		return;
	s->state = s->state ? DISAGREE : state;
	f->changed = true;
}

static uint16_t height(int32_t h)
{
	return h >= ENTRY && h <= HEIGHT_MAX && h % 8 == 0 ? (uint16_t)h : UNKNOWN;
}

/* What is known after the step. */
static uint16_t after(const struct step *s)
{
	const uint16_t state = s->state;

	if (state == UNKNOWN || state == DISAGREE)
		return state;
	switch (s->kind) {
	case PLAIN:
	case CALLS:
		return state;
	case MOVES_SP:
		return state == FRAMED ? state : height(state - s->by);
	case SETS_FP:
		return state == 2 * ENTRY ? FRAMED : UNKNOWN;
	case TAKES_FP:
		return state == FRAMED ? state : UNKNOWN;
	case POPS_FP:
		return state == FRAMED || state == 2 * ENTRY ? ENTRY : UNKNOWN;
	case LEAVES:
		return state == FRAMED ? ENTRY : UNKNOWN;
	default:
		return UNKNOWN;
	}
}

/* What is known before the step, from what is after it. */
static uint16_t before(const struct step *s, uint16_t state)
{
	if (state == DISAGREE)
		return s->kind == PLAIN || s->kind == CALLS || s->kind == MOVES_SP ? state
										   : UNKNOWN;
	switch (s->kind) {
	case PLAIN:
	case CALLS:
		return state;
	case MOVES_SP:
		return is_height(state) ? height(state + s->by) : state;
	case TAKES_FP:
		return state == FRAMED ? state : UNKNOWN;
	case SETS_FP:
		return state == FRAMED ? 2 * ENTRY : UNKNOWN;
	default:
		return UNKNOWN;
	}
}

/* Whether the next step follows: not an entry behind a call, which then does not return. */
static bool follows(const struct framed *f, size_t i)
{
	size_t k = i;

	if (i + 1 >= f->n || f->steps[i].ends)
		return false;
	if (!f->steps[i + 1].entry)
		return true;
	while (k && f->steps[k].nop)
		k--;
	return f->steps[k].kind != CALLS && !f->steps[k].ends;
}

static void seed(struct framed *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct step *s = &f->steps[i];

		if (s->entry || s->kind == RETURNS)
			know(f, i, ENTRY);
		if (s->kind == LEAVES || s->kind == TAKES_FP)
			know(f, i, FRAMED);
	}
}

/* False: it does not come to an end. */
static bool follow(struct framed *f)
{
	int passes = 0;

	for (f->changed = true; f->changed && passes < PASSES_MAX; passes++) {
		f->changed = false;
		for (size_t i = 0; i < f->n; i++) {
			const struct step *s = &f->steps[i];

			if (s->to)
				know(f, s->to - 1, s->state);
			if (follows(f, i))
				know(f, i + 1, after(s));
		}
		for (size_t i = f->n; i-- > 0;) {
			const struct step *s = &f->steps[i];

			if (s->to)
				know(f, i, f->steps[s->to - 1].state);
			if (follows(f, i))
				know(f, i, before(s, f->steps[i + 1].state));
		}
	}
	return !f->changed;
}

/* ---- Rows ---- */

static int push_rows(const struct framed *f, struct rowbuf *out)
{
	struct row row = f->fn.row;
	int err = 0;

	row.source = ROW_CODE;
	row.fp = row.bx = (struct rule){ .kind = RULE_SAME };
	for (size_t i = 0, next; i < f->n && !err; i = next) {
		const uint16_t state = f->steps[i].state;
		const bool entry = f->steps[i].entry;

		for (next = i + 1; next < f->n && f->steps[next].state == state && !entry &&
				   !f->steps[next].entry;)
			next++;
		row.flags = entry ? ROW_LEADS : 0;
		row.cfa = (struct rule){ .kind = RULE_REG, .reg = X86_RSP, .off = state };
		row.start = f->fn.start + f->steps[i].at;
		row.end = f->fn.start + f->steps[next - 1].at + f->steps[next - 1].len;
		err = is_height(state) ? rowbuf_push(out, &row) : 0;
	}
	return err;
}

static int take_code(struct framed *f, struct rowbuf *out)
{
	int err;

	f->entries = calloc(f->fn.text.len / 8 + 1, 1);
	if (!f->entries)
		return -ENOMEM;
	err = decode_all(f);
	if (!err && !find_entries(f)) { /* again, with instructions that end where entries are */
		err = decode_all(f);
		if (!err)
			find_entries(f);
	}
	if (!err) {
		seed(f);
		err = follow(f) ? push_rows(f, out) : 0;
	}
	free(f->entries);
	return err == -E2BIG ? 0 : err;
}

/* Whether the instructions only set rules, and the frame pointer gives the CFA then. */
static bool may_be_framed(const struct eh_frame *eh, const struct eh_fde *fde)
{
	bool by_fp = eh->cies[fde->cie].init.cfa == rule_pack(RULE_REG, X86_RBP, 16);
	struct bytes b = bytes_sub(&eh->sec, fde->insns, fde->insns_end - fde->insns);

	while (bytes_left(&b) && !b.err) {
		const uint8_t op = bytes_u8(&b);

		if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_register) {
			by_fp = bytes_u8(&b) == X86_RBP;
			bytes_skip(&b, op == DW_CFA_def_cfa);
		} else if ((op & 0xc0) == DW_CFA_offset || op == DW_CFA_def_cfa_offset) {
			bytes_skip(&b, 1); /* offsets of one byte */
		} else if (op != DW_CFA_nop) {
			return false;
		}
	}
	return by_fp && !b.err;
}

static bool is_framed(const struct row *row)
{
	return rule_packed(&row->cfa) == rule_pack(RULE_REG, X86_RBP, 16) &&
	       rule_packed(&row->ra) == rule_pack(RULE_CFA_MEM, 0, -8) &&
	       rule_packed(&row->fp) == rule_pack(RULE_CFA_MEM, 0, -16);
}

static int take(void *ctx, const struct one_row_fn *fn, struct rowbuf *out)
{
	/* Parts of functions that are placed elsewhere have such a row, too, and no prologue. */
	static const uint8_t sets_up[] = { 0x55, 0x48, 0x89, 0xe5 },
			     other[] = { 0x55, 0x48, 0x8b, 0xec };
	struct framed *f = ctx;

	f->fn = *fn;
	if (memmem(fn->text.base, fn->text.len, sets_up, sizeof(sets_up)) ||
	    memmem(fn->text.base, fn->text.len, other, sizeof(other)))
		return take_code(f, out);
	return 0;
}

int code_framed_rows(const struct eh_frame *eh, const struct elf_image *img, struct rowbuf *out)
{
	static const struct one_row_kind kind = {
		.code_min = CODE_MIN,
		.code_max = CODE_MAX,
		.insns_max = INSNS_MAX,
		.may_be = may_be_framed,
		.is = is_framed,
		.take = take,
	};
	struct framed f = { .arch = code_arch_x86() };
	int err = f.arch ? one_row_each(eh, img, &kind, &f, out) : 0;

	free(f.steps);
	return err;
}
