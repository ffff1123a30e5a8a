/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In: the instructions of a CIE and of an FDE. Out: rows.
 *
 * The state is a row under construction whose start is the location reached so far. An advance appends it, with the
 * new location as its end, and goes on with a copy; so a row costs one copy and no other work. What an instruction
 * says about columns that no row has goes to a rule that nobody reads (`sink`).
 *
 * Example (x86-64, code_align 1, data_align -8; the CIE says cfa=rsp+8 ra=*(cfa-8)):
 *	advance_loc 1; def_cfa_offset 16; offset rbp 2; advance_loc 3; def_cfa_register rbp
 * gives	[0,1) rsp+8 same	[1,4) rsp+16 *(cfa-16)		[4,end) rbp+16 *(cfa-16)
 */
#include "unwind/eh_cfa.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "unwind/eh_expr.h"

#define CFA_DEPTH 64		/* remember_state; compilers nest 1 deep, shrink-wrapped code by hand a few */
#define CFA_MAX_ROWS (1 << 20)	/* of one function: bounds the memory that a small hostile file can claim */

/* DWARF 5, 7.24; LSB 5.0 Core, 10.5.3; AADWARF64 4.6 (0x2b-0x2d) */
enum {
	DW_CFA_nop = 0x00, DW_CFA_set_loc = 0x01, DW_CFA_advance_loc1 = 0x02, DW_CFA_advance_loc2 = 0x03,
	DW_CFA_advance_loc4 = 0x04, DW_CFA_offset_extended = 0x05, DW_CFA_restore_extended = 0x06,
	DW_CFA_undefined = 0x07, DW_CFA_same_value = 0x08, DW_CFA_register = 0x09, DW_CFA_remember_state = 0x0a,
	DW_CFA_restore_state = 0x0b, DW_CFA_def_cfa = 0x0c, DW_CFA_def_cfa_register = 0x0d,
	DW_CFA_def_cfa_offset = 0x0e, DW_CFA_def_cfa_expression = 0x0f, DW_CFA_expression = 0x10,
	DW_CFA_offset_extended_sf = 0x11, DW_CFA_def_cfa_sf = 0x12, DW_CFA_def_cfa_offset_sf = 0x13,
	DW_CFA_val_offset = 0x14, DW_CFA_val_offset_sf = 0x15, DW_CFA_val_expression = 0x16,
	DW_CFA_MIPS_advance_loc8 = 0x1d, DW_CFA_AARCH64_set_ra_state = 0x2b,
	DW_CFA_AARCH64_negate_ra_state_with_pc = 0x2c, DW_CFA_AARCH64_negate_ra_state = 0x2d,
	DW_CFA_GNU_args_size = 0x2e, DW_CFA_GNU_negative_offset_extended = 0x2f,
	DW_CFA_advance_loc = 0x40, DW_CFA_offset = 0x80, DW_CFA_restore = 0xc0,	/* with 6 bits of operand */
};

#define REG_BX 3	/* x86-64 rbx */

struct cfa_run {
	struct bytes b;
	struct cfa_state cur;
	const struct eh_cie *cie;
	enum row_arch arch;
	uint32_t fp_reg, bx_reg;	/* bx_reg: where there is none, a column that is matched before */
	unsigned int nregs;		/* registers that a rule can name */
	uint64_t end;			/* of the function */
	struct rowbuf *out;		/* NULL: a CIE's initial instructions */
	size_t first;			/* index of the function's first row */
	const char *bad;		/* why it stopped early */
	int err;
	unsigned int depth;
	struct rule sink;
	struct cfa_state saved[CFA_DEPTH];
};

static const struct rule rule_none = { .kind = RULE_NONE };

static bool fits_s32(int64_t v)
{
	return v == (int32_t)v;
}

static inline struct rule rule_at(const struct cfa_run *r, enum rule_kind kind, uint64_t reg, int64_t off)
{
	if (reg >= r->nregs || !fits_s32(off))
		return rule_none;
	return (struct rule){ .kind = kind, .reg = (uint8_t)reg, .off = (int32_t)off };
}

static inline struct rule rule_cfa(enum rule_kind kind, int64_t off)
{
	return fits_s32(off) ? (struct rule){ .kind = kind, .off = (int32_t)off } : rule_none;
}

/* What a column without a rule means: the ABI's default. */
static struct rule ra_unspecified(enum row_arch arch, uint32_t ra_reg, unsigned int nregs)
{
	/*
	 * In the architectures with a link register it still holds the return address; on x86-64 column 16 is no
	 * register, and "same value" would be an endless loop.
	 */
	if (ra_reg >= nregs || (arch == ROW_ARCH_X86_64 && ra_reg == row_arch_regs(arch)->ra))
		return rule_none;
	return (struct rule){ .kind = RULE_REG, .reg = (uint8_t)ra_reg };
}

static inline struct rule *column(struct cfa_run *r, uint64_t reg)
{
	if (reg == r->cie->ra_reg)
		return &r->cur.row.ra;
	if (reg == r->fp_reg)
		return &r->cur.row.fp;
	if (reg == r->bx_reg)
		return &r->cur.row.bx;
	return &r->sink;
}

static inline void set_cfa(struct cfa_run *r)
{
	r->cur.row.cfa = rule_at(r, RULE_REG, r->cur.cfa_reg, r->cur.cfa_off);
	r->cur.row.plt_rep = r->cur.row.plt_at = 0;
}

static int64_t factored(struct cfa_run *r, int64_t n)
{
	int64_t off;

	/* What overflows here fits no rule either: rule_cfa refuses it. */
	return __builtin_mul_overflow(n, r->cie->data_align, &off) ? INT64_MAX : off;
}

static inline int64_t read_offset(struct cfa_run *r)
{
	uint64_t n = bytes_uleb(&r->b);

	return factored(r, n > INT64_MAX ? INT64_MAX : (int64_t)n);
}

static int append(struct cfa_run *r, const struct row *row)
{
	struct rowbuf *out = r->out;

	if (out->n == out->cap) {
		int err = vec_reserve(&out->rows, &out->cap, out->n + 1, sizeof(*out->rows));

		if (err)
			return err;
	}
	out->rows[out->n++] = *row;
	return 0;
}

/*
 * A PLT's CFA steps up by plt_add inside each block of plt_rep bytes, counted from addresses that are multiples
 * of plt_rep; rows count from their start. So the block starts in the middle of a step unless start is aligned.
 */
static int append_plt(struct cfa_run *r, uint64_t end)
{
	const struct cfa_state *st = &r->cur;
	uint32_t rep = st->row.plt_rep, phase = (uint32_t)(st->row.start & (rep - 1)), at = 0;
	struct row row = st->row;
	int err = 0;

	row.end = end;
	while (at < rep && !err) {
		uint32_t pc = (at + phase) & (rep - 1);
		bool high = pc >= st->row.plt_at;
		uint32_t next = at + (high ? rep : st->row.plt_at) - pc;

		row.plt_at = at;
		row.cfa.off = (int32_t)(st->row.cfa.off + (high ? st->plt_add : 0));
		err = append(r, &row);
		at = next;
	}
	return err;
}

/* The rules so far hold up to `end`. */
static inline void emit(struct cfa_run *r, uint64_t end)
{
	struct row *row = &r->cur.row;
	struct row *last = r->out->n > r->first ? &r->out->rows[r->out->n - 1] : NULL;

	if (end <= row->start)
		return;
	if (row->plt_rep) {
		r->err = append_plt(r, end);
	} else if (last && last->end == row->start && row_same_rules(last, row)) {
		last->end = end;
	} else {
		row->end = end;
		r->err = append(r, row);
	}
	if (r->out->n - r->first > CFA_MAX_ROWS)
		r->bad = "too many rows in one function";
	row->start = end;
}

/* False: the function's end is reached, the rest of the instructions has no place. */
static inline bool advance(struct cfa_run *r, uint64_t delta)
{
	uint64_t bytes;

	if (!r->out) {
		r->bad = "an initial instruction advances the location";
		return false;
	}
	if (__builtin_mul_overflow(delta, r->cie->code_align, &bytes) || bytes >= r->end - r->cur.row.start) {
		emit(r, r->end);
		return false;
	}
	emit(r, r->cur.row.start + bytes);
	return !r->err && !r->bad;
}

static bool set_loc(struct cfa_run *r)
{
	struct eh_ptr_bases bases = r->cie->bases;
	uint64_t loc;

	bases.func = r->cur.row.start;
	if (!r->out || !eh_read_ptr(&r->b, r->cie->fde_enc, &bases, &loc, NULL) || loc < r->cur.row.start) {
		r->bad = "bad DW_CFA_set_loc";
		return false;
	}
	if (loc >= r->end) {
		emit(r, r->end);
		return false;
	}
	emit(r, loc);
	return !r->err && !r->bad;
}

static struct bytes block(struct cfa_run *r)
{
	uint64_t len = bytes_uleb(&r->b);
	struct bytes sub = bytes_sub(&r->b, r->b.pos, len);

	bytes_skip(&r->b, len);
	return sub;
}

static struct eh_expr expression(struct cfa_run *r, bool cfa_pushed)
{
	static const uint8_t pc_reg[] = {	/* x86-64 psABI figure 3.36; AADWARF64 4.1; s390x ELF ABI 1.6 (PSWA) */
		[ROW_ARCH_X86_64] = 16, [ROW_ARCH_AARCH64] = 32, [ROW_ARCH_S390X] = 65,
	};

	return eh_expr_eval(block(r), r->cie->addr_size, pc_reg[r->arch], cfa_pushed);
}

static void def_cfa_expression(struct cfa_run *r)
{
	struct eh_expr e = expression(r, false);
	struct row *row = &r->cur.row;

	row->cfa = rule_none;
	row->plt_rep = row->plt_at = 0;
	if (e.kind == EXPR_LIN) {
		row->cfa = rule_at(r, RULE_REG, e.base, e.off);
	} else if (e.kind == EXPR_MEM && fits_s32(e.off2)) {
		row->cfa = rule_at(r, RULE_REG_MEM, e.base, e.off);
		if (row->cfa.kind != RULE_NONE)
			row->cfa.off2 = (int32_t)e.off2;
	} else if (e.kind == EXPR_PLT && fits_s32(e.add) && fits_s32(e.off + e.add)) {
		row->cfa = rule_at(r, RULE_REG, e.base, e.off);
		if (row->cfa.kind == RULE_NONE)
			return;
		if (e.at == 0) {
			row->cfa.off = (int32_t)(e.off + e.add);
		} else if (e.at < e.rep && e.add) {
			row->plt_rep = e.rep;
			row->plt_at = e.at;
			r->cur.plt_add = (int32_t)e.add;
		}
	}
}

/* DW_CFA_expression gives the address that holds the value, DW_CFA_val_expression the value. */
static struct rule expression_rule(struct cfa_run *r, bool is_value)
{
	struct eh_expr e = expression(r, true);
	bool mem = !is_value;

	if (e.kind == EXPR_MEM && is_value && e.off2 == 0)
		mem = true;
	else if (e.kind != EXPR_LIN)
		return rule_none;
	if (e.base == EXPR_CFA)
		return rule_cfa(mem ? RULE_CFA_MEM : RULE_CFA, e.off);
	return rule_at(r, mem ? RULE_REG_MEM : RULE_REG, e.base, e.off);
}

static void restore(struct cfa_run *r, uint64_t reg)
{
	const struct row *init = &r->cie->init.row;
	struct rule *col = column(r, reg);

	if (!r->out)
		r->bad = "an initial instruction restores a rule";
	else if (col == &r->cur.row.ra)
		*col = init->ra;
	else if (col == &r->cur.row.fp)
		*col = init->fp;
	else if (col == &r->cur.row.bx)
		*col = init->bx;
}

/* Instructions that set the rule of the column that is their first operand. */
static bool op_column(struct cfa_run *r, uint8_t op)
{
	uint64_t reg = bytes_uleb(&r->b), from;
	struct rule *col = column(r, reg);

	switch (op) {
	case DW_CFA_offset_extended:
		*col = rule_cfa(RULE_CFA_MEM, read_offset(r));
		return true;
	case DW_CFA_offset_extended_sf:
		*col = rule_cfa(RULE_CFA_MEM, factored(r, bytes_sleb(&r->b)));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		*col = rule_cfa(RULE_CFA_MEM, (int64_t)(0 - (uint64_t)read_offset(r)));
		return true;
	case DW_CFA_val_offset:
		*col = rule_cfa(RULE_CFA, read_offset(r));
		return true;
	case DW_CFA_val_offset_sf:
		*col = rule_cfa(RULE_CFA, factored(r, bytes_sleb(&r->b)));
		return true;
	case DW_CFA_restore_extended:
		restore(r, reg);
		return true;
	case DW_CFA_undefined:
		*col = (struct rule){ .kind = RULE_UNDEF };
		return true;
	case DW_CFA_same_value:
		*col = col == &r->cur.row.ra ? ra_unspecified(r->arch, r->cie->ra_reg, r->nregs) :
					       (struct rule){ .kind = RULE_SAME };
		return true;
	case DW_CFA_register:
		from = bytes_uleb(&r->b);
		*col = rule_at(r, RULE_REG, from, 0);
		return true;
	case DW_CFA_expression:
		*col = expression_rule(r, false);
		return true;
	case DW_CFA_val_expression:
		*col = expression_rule(r, true);
		return true;
	default:
		return false;
	}
}

static void def_cfa(struct cfa_run *r, uint64_t reg, int64_t off)
{
	r->cur.cfa_reg = reg < UINT32_MAX ? (uint32_t)reg : UINT32_MAX;
	r->cur.cfa_off = off;
	set_cfa(r);
}

static int64_t plain_offset(struct cfa_run *r)
{
	uint64_t n = bytes_uleb(&r->b);

	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static bool op_cfa(struct cfa_run *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = bytes_uleb(&r->b);
		def_cfa(r, reg, plain_offset(r));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = bytes_uleb(&r->b);
		def_cfa(r, reg, factored(r, bytes_sleb(&r->b)));
		return true;
	case DW_CFA_def_cfa_register:
		def_cfa(r, bytes_uleb(&r->b), r->cur.cfa_off);
		return true;
	case DW_CFA_def_cfa_offset:
		def_cfa(r, r->cur.cfa_reg, plain_offset(r));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		def_cfa(r, r->cur.cfa_reg, factored(r, bytes_sleb(&r->b)));
		return true;
	case DW_CFA_def_cfa_expression:
		def_cfa_expression(r);
		return true;
	default:
		return false;
	}
}

static bool op_state(struct cfa_run *r, uint8_t op)
{
	uint64_t loc = r->cur.row.start;

	if (op == DW_CFA_remember_state) {
		if (r->depth == CFA_DEPTH)
			r->bad = "DW_CFA_remember_state nested too deep";
		else
			r->saved[r->depth++] = r->cur;
		return true;
	}
	if (op == DW_CFA_restore_state) {
		if (r->depth == 0) {
			r->bad = "DW_CFA_restore_state without DW_CFA_remember_state";
		} else {
			r->cur = r->saved[--r->depth];
			r->cur.row.start = loc;
		}
		return true;
	}
	return false;
}

/* Vendors' instructions; the number of negate_ra_state means something else on each architecture. */
static bool op_vendor(struct cfa_run *r, uint8_t op)
{
	uint64_t state;

	if (op == DW_CFA_GNU_args_size) {
		bytes_uleb(&r->b);
		return true;
	}
	if (r->arch != ROW_ARCH_AARCH64)
		return false;
	switch (op) {
	case DW_CFA_AARCH64_negate_ra_state:
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
		r->cur.row.flags ^= ROW_PAC;
		return true;
	case DW_CFA_AARCH64_set_ra_state:	/* 0 plain, 1 signed, 2 signed with the pc that the offset tells */
		state = bytes_uleb(&r->b);
		bytes_sleb(&r->b);
		r->cur.row.flags = (uint8_t)((r->cur.row.flags & ~ROW_PAC) | (state ? ROW_PAC : 0));
		return true;
	default:
		return false;
	}
}

/* Everything that is not of the common forms. False: stop. */
static bool op_extended(struct cfa_run *r, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		return set_loc(r);
	case DW_CFA_advance_loc4:
		return advance(r, bytes_u32(&r->b));
	case DW_CFA_MIPS_advance_loc8:
		return advance(r, bytes_u64(&r->b));
	case DW_CFA_offset_extended:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_val_expression:
	case DW_CFA_GNU_negative_offset_extended:
		return op_column(r, op) && !r->bad;
	}
	if (op_cfa(r, op) || op_state(r, op) || op_vendor(r, op))
		return !r->bad;
	r->bad = "unknown call frame instruction";
	return false;
}

static inline bool step(struct cfa_run *r)
{
	uint8_t op = bytes_u8(&r->b), low = op & 0x3f;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(r, low);
	case DW_CFA_offset:
		*column(r, low) = rule_cfa(RULE_CFA_MEM, read_offset(r));
		return true;
	case DW_CFA_restore:
		restore(r, low);
		return !r->bad;
	}
	switch (op) {
	case DW_CFA_def_cfa_offset:
		r->cur.cfa_off = plain_offset(r);
		set_cfa(r);
		return true;
	case DW_CFA_advance_loc1:
		return advance(r, bytes_u8(&r->b));
	case DW_CFA_advance_loc2:
		return advance(r, bytes_u16(&r->b));
	default:
		return op_extended(r, op);
	}
}

static void run(struct cfa_run *r, const char *section, struct diag *diag)
{
	uint64_t at = r->b.pos;

	while (r->b.pos < r->b.len) {
		at = r->b.pos;
		if (!step(r))
			break;
		if (r->b.err) {
			r->bad = "a call frame instruction is cut short";
			break;
		}
	}
	if (r->b.err && !r->bad)
		r->bad = "a call frame instruction is cut short";
	if (r->bad)
		diag_add(diag, DIAG_MALFORMED, section, at, "%s", r->bad);
}

static void prepare(struct cfa_run *r, const struct eh_cie *cie, const struct eh_insns *insns)
{
	const struct row_regs *regs = row_arch_regs(insns->arch);

	r->b = bytes_sub(&insns->sec, 0, insns->end);
	bytes_seek(&r->b, insns->pos);
	r->cie = cie;
	r->arch = insns->arch;
	r->fp_reg = regs->fp;
	r->bx_reg = insns->arch == ROW_ARCH_X86_64 ? REG_BX : cie->ra_reg;
	r->nregs = regs->nnames;
	r->bad = NULL;
	r->err = 0;
	r->depth = 0;
}

bool eh_cfa_init(struct eh_cie *cie, const struct eh_insns *insns, struct diag *diag)
{
	struct cfa_run r;
	struct row *row = &r.cur.row;

	prepare(&r, cie, insns);
	memset(&r.cur, 0, sizeof(r.cur));
	row->ra = ra_unspecified(insns->arch, cie->ra_reg, r.nregs);
	row->fp.kind = row->bx.kind = RULE_SAME;
	if (cie->ra_reg == r.fp_reg)
		row->fp.kind = RULE_NONE;	/* one column cannot be both */
	row->source = ROW_EH_FRAME;
	row->flags = cie->signal ? ROW_SIGNAL : 0;
	r.cur.cfa_reg = UINT32_MAX;	/* no rule yet */
	r.out = NULL;
	r.first = 0;
	r.end = 0;
	run(&r, insns->section, diag);
	cie->init = r.cur;
	return !r.bad;
}

int eh_cfa_rows(const struct eh_cie *cie, const struct eh_insns *insns, uint64_t start, uint64_t end,
		struct rowbuf *out, struct diag *diag)
{
	struct cfa_run r;

	prepare(&r, cie, insns);
	r.cur = cie->init;
	r.cur.row.start = start;
	r.end = end;
	r.out = out;
	r.first = out->n;
	run(&r, insns->section, diag);
	if (!r.bad && !r.err)
		emit(&r, end);
	return r.err;
}
