/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: the instructions of a CIE and of an FDE. Output: rows.
 *
 * The state holds the rules that apply from the current location on. An advance appends them as a
 * row that ends at the new location. If no rule changed, it extends the last row instead.
 *
 * Example (x86-64, code_align 1, data_align -8; the CIE says cfa=rsp+8 ra=*(cfa-8)):
 * 	advance_loc 1; def_cfa_offset 16; offset rbp 2; advance_loc 3; def_cfa_register rbp
 * gives
 * 	[0,1) rsp+8 same	[1,4) rsp+16 *(cfa-16)		[4,end) rbp+16 *(cfa-16)
 */
#include "readers/eh_cfa.h"

#include "base/vec.h"
#include "readers/eh_expr.h"

/* Rows of one function. Bounds the memory that a small hostile file can claim. */
#define CFA_MAX_ROWS (1 << 20)

#define REG_BX 3 /* x86-64 rbx */

/* Nesting of remember_state. Compilers nest 1 deep, hand-written code a few. */
#define CFA_DEPTH 64

struct cfa_run {
	struct bytes b; /* read by op_extended(); step() has a separate copy */
	struct cfa_state cur;
	const struct eh_cie *cie;
	int64_t data_align; /* copy of the CIE's */
	enum row_arch arch;
	unsigned int nregs; /* registers that a rule can name */
	uint64_t end;	    /* end of the function */
	struct rowbuf *out; /* NULL for a CIE's initial instructions */
	size_t first;	    /* the function's first row in out */
	bool initial;	    /* evaluating a CIE's initial instructions */
	bool changed;	    /* a rule was set since the last row */
	bool lost;	    /* there is a row with ROW_LOST */
	const char *bad;    /* why it stopped early */
	int err;
	unsigned int depth;
	struct cfa_state saved[CFA_DEPTH];
};

static inline bool fits_s32(int64_t v)
{
	return v == (int32_t)v;
}

static inline uint64_t rule_at(const struct cfa_run *r, enum rule_kind kind, uint64_t reg,
			       int64_t off)
{
	return reg < r->nregs && fits_s32(off) ? rule_pack(kind, (uint8_t)reg, (int32_t)off)
					       : rule_pack(RULE_NONE, 0, 0);
}

static inline uint64_t rule_cfa(enum rule_kind kind, int64_t off)
{
	return fits_s32(off) ? rule_pack(kind, 0, (int32_t)off) : rule_pack(RULE_NONE, 0, 0);
}

/* The RA of a column that no instruction sets: the ABI's default. */
static uint64_t ra_unspecified(enum row_arch arch, uint32_t ra_reg, unsigned int nregs)
{
	/*
	 * The link register of architectures that have one still holds the return address. On
	 * x86-64 column 16 is not a register, and "same value" would be an endless loop.
	 */
	if (ra_reg >= nregs || (arch == ROW_ARCH_X86_64 && ra_reg == row_arch_regs(arch)->ra))
		return rule_pack(RULE_NONE, 0, 0);
	return rule_pack(RULE_REG, (uint8_t)ra_reg, 0);
}

static enum cfa_column column_of(const struct eh_cie *cie, enum row_arch arch, uint64_t reg)
{
	if (reg == cie->ra_reg)
		return COL_RA;
	if (reg == row_arch_regs(arch)->fp)
		return COL_FP;
	/* The CFA of s390x is above the caller's sp, and each table has a rule for that. */
	if (reg == row_arch_regs(arch)->sp && arch != ROW_ARCH_S390X)
		return COL_SP;
	return arch == ROW_ARCH_X86_64 && reg == REG_BX ? COL_BX : COL_SINK;
}

static enum cfa_column column(const struct cfa_run *r, uint64_t reg)
{
	return reg < sizeof(r->cie->column) ? r->cie->column[reg] : column_of(r->cie, r->arch, reg);
}

static inline void set_rule(struct cfa_run *r, enum cfa_column col, uint64_t rule)
{
	r->cur.col[col] = rule;
	r->changed |= col != COL_SINK;
}

static inline void def_cfa(struct cfa_run *r, uint64_t reg, int64_t off)
{
	r->changed = true;
	r->cur.cfa_reg = reg < UINT16_MAX ? (uint16_t)reg : UINT16_MAX;
	r->cur.cfa_off = off;
	r->cur.cfa = rule_at(r, RULE_REG, reg, off);
	r->cur.off2 = 0;
	r->cur.plt_rep = 0;
	r->cur.expr = false;
}

/*
 * DWARF 5, 6.4.2.2 allows def_cfa_offset and def_cfa_register only while the CFA is register +
 * offset. Assembly in libgcrypt violates this. After an expression, a new register takes the last
 * offset, and a new offset applies once a register is set. libgcc and gdb have always read it this
 * way.
 */
static inline void def_cfa_offset(struct cfa_run *r, int64_t off)
{
	r->cur.cfa_off = off;
	if (r->cur.expr)
		return;
	r->changed = true;
	r->cur.cfa = rule_at(r, RULE_REG, r->cur.cfa_reg, off);
}

static void def_cfa_register(struct cfa_run *r, uint64_t reg)
{
	def_cfa(r, reg, r->cur.cfa_off);
}

/*
 * Most operands have one byte. For longer ones only a copy of the cursor goes to memory, so that
 * the cursor itself can stay in registers.
 */
static inline uint64_t read_uleb(struct bytes *b)
{
	struct bytes t = *b;
	uint8_t first = bytes_u8(&t);

	if (first & 0x80) {
		struct bytes slow = *b;
		uint64_t v = bytes_uleb(&slow);

		*b = slow;
		return v;
	}
	*b = t;
	return first;
}

static inline int64_t plain_offset(struct bytes *b)
{
	uint64_t n = read_uleb(b);

	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static inline int64_t factored(const struct cfa_run *r, int64_t n)
{
	int64_t off;

	/* An offset that overflows fits no rule either: rule_cfa() refuses it. */
	return __builtin_mul_overflow(n, r->data_align, &off) ? INT64_MAX : off;
}

static inline int64_t factored_offset(const struct cfa_run *r, struct bytes *b)
{
	return factored(r, plain_offset(b));
}

static inline bool same_rules(const struct row *row, const struct cfa_state *st)
{
	return rule_packed(&row->cfa) == st->cfa && rule_packed(&row->fp) == st->col[COL_FP] &&
	       rule_packed(&row->ra) == st->col[COL_RA] &&
	       rule_packed(&row->bx) == st->col[COL_BX] && row->cfa_off2 == st->off2 &&
	       row->flags == st->flags && row->plt_rep == 0;
}

/*
 * A PLT's CFA grows by plt_add inside each block of plt_rep bytes. Blocks are aligned to plt_rep,
 * but a row counts from its start, which need not be aligned and may then lie inside a block.
 */
static void append_plt(struct cfa_run *r, uint64_t end)
{
	const struct cfa_state *st = &r->cur;
	uint32_t rep = st->plt_rep, phase = (uint32_t)(st->start & (rep - 1)), at = 0;

	while (at < rep) {
		uint32_t pc = (at + phase) & (rep - 1);
		bool high = pc >= st->plt_at;
		struct row *row = &r->out->rows[r->out->n++];

		eh_cfa_row(st, row);
		row->end = end;
		row->plt_rep = rep;
		row->plt_at = at;
		if (high)
			row->cfa.off += st->plt_add;
		at += (high ? rep : st->plt_at) - pc;
	}
}

static void append(struct cfa_run *r, uint64_t end)
{
	struct row *row = &r->out->rows[r->out->n++];

	eh_cfa_row(&r->cur, row);
	row->end = end;
}

/* Appends the current rules as a row up to `end`, which is above the state's start. */
static void emit(struct cfa_run *r, uint64_t end)
{
	struct rowbuf *out = r->out;

	/* A PLT has at most three rows */
	r->err = vec_reserve(&out->rows, &out->cap, out->n + 3, sizeof(*out->rows));
	if (r->err)
		return;
	if (r->cur.plt_rep)
		append_plt(r, end);
	else if (!r->changed || (out->n > r->first && r->cur.col[COL_SP] == SP_IS_CFA &&
				 same_rules(&out->rows[out->n - 1], &r->cur)))
		out->rows[out->n - 1].end = end;
	else
		append(r, end);
	r->lost |= out->rows[out->n - 1].flags & ROW_LOST;
	r->cur.start = end;
	r->changed = false;
}

/* False: stop, because the function ends there or because of an error. */
static bool advance_to(struct cfa_run *r, uint64_t loc)
{
	bool more = loc < r->end;

	emit(r, more ? loc : r->end);
	if (r->out->n - r->first > CFA_MAX_ROWS)
		r->bad = "too many rows in one function";
	return more && !r->err && !r->bad;
}

static bool advance(struct cfa_run *r, uint64_t delta)
{
	uint64_t loc;

	if (delta == 0)
		return true;
	if (!r->out) {
		r->bad = "an initial instruction advances the location";
		return false;
	}
	if (__builtin_mul_overflow(delta, r->cie->code_align, &loc) ||
	    __builtin_add_overflow(loc, r->cur.start, &loc))
		loc = UINT64_MAX;
	return loc == r->cur.start || advance_to(r, loc);
}

static bool set_loc(struct cfa_run *r)
{
	struct eh_ptr_bases bases = r->cie->bases;
	uint64_t loc;

	bases.func = r->cur.start;
	if (!r->out || !eh_read_ptr(&r->b, r->cie->fde_enc, &bases, &loc, NULL) ||
	    loc < r->cur.start) {
		r->bad = "bad DW_CFA_set_loc";
		return false;
	}
	return loc == r->cur.start || advance_to(r, loc);
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
	static const uint8_t pc_reg[] = {
		/* sources as in row.c; s390x: PSWA */
		[ROW_ARCH_X86_64] = 16,
		[ROW_ARCH_AARCH64] = 32,
		[ROW_ARCH_S390X] = 65,
	};

	return eh_expr_eval(block(r), r->cie->addr_size, pc_reg[r->arch], cfa_pushed);
}

static void def_cfa_expression(struct cfa_run *r)
{
	struct eh_expr e = expression(r, false);
	struct cfa_state *st = &r->cur;

	r->changed = true;
	st->cfa = rule_pack(RULE_NONE, 0, 0);
	st->off2 = 0;
	st->plt_rep = 0;
	st->expr = true;
	if (e.kind == EXPR_LIN) {
		st->cfa = rule_at(r, RULE_REG, e.base, e.off);
	} else if (e.kind == EXPR_MEM && fits_s32(e.off) && fits_s32(e.off2)) {
		st->cfa = rule_at(r, RULE_REG_MEM, e.base, e.off);
		st->off2 = e.base < r->nregs ? (int32_t)e.off2 : 0;
	} else if (e.kind == EXPR_INDEX_MEM && r->arch == ROW_ARCH_X86_64 &&
		   e.base == row_arch_regs(r->arch)->sp && e.index < r->nregs && fits_s32(e.off) &&
		   fits_s32(e.off2)) {
		st->cfa = rule_at(r, RULE_INDEX_MEM, e.index, e.off);
		st->off2 = (int32_t)e.off2;
	} else if (e.kind == EXPR_PLT && e.base < r->nregs && fits_s32(e.off) && fits_s32(e.add) &&
		   fits_s32(e.off + e.add)) {
		if (e.at == 0)
			e.off += e.add;
		st->cfa = rule_at(r, RULE_REG, e.base, e.off);
		if (e.at > 0 && e.at < e.rep && e.add) {
			st->plt_rep = (uint16_t)e.rep;
			st->plt_at = (uint8_t)e.at;
			st->plt_add = (int32_t)e.add;
		}
	}
}

/* DW_CFA_expression gives the address that holds the value, DW_CFA_val_expression the value. */
static uint64_t expression_rule(struct cfa_run *r, bool is_value)
{
	struct eh_expr e = expression(r, true);
	bool mem = !is_value;

	if (e.kind == EXPR_MEM && is_value && e.off2 == 0)
		mem = true;
	else if (e.kind != EXPR_LIN)
		return rule_pack(RULE_NONE, 0, 0);
	if (e.base == EXPR_CFA)
		return rule_cfa(mem ? RULE_CFA_MEM : RULE_CFA, e.off);
	return rule_at(r, mem ? RULE_REG_MEM : RULE_REG, e.base, e.off);
}

static inline bool restore(struct cfa_run *r, uint64_t reg)
{
	enum cfa_column col = column(r, reg);

	if (r->initial) {
		r->bad = "an initial instruction restores a rule";
		return false;
	}
	set_rule(r, col, r->cie->init.col[col]);
	return true;
}

/* Instructions that set the rule of the column that is their first operand. */
static bool op_column(struct cfa_run *r, uint8_t op)
{
	struct bytes *b = &r->b;
	uint64_t reg = bytes_uleb(b), rule;
	enum cfa_column col = column(r, reg);

	switch (op) {
	case DW_CFA_offset_extended:
		rule = rule_cfa(RULE_CFA_MEM, factored_offset(r, b));
		break;
	case DW_CFA_offset_extended_sf:
		rule = rule_cfa(RULE_CFA_MEM, factored(r, bytes_sleb(b)));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		rule = rule_cfa(RULE_CFA_MEM, (int64_t)(0 - (uint64_t)factored_offset(r, b)));
		break;
	case DW_CFA_val_offset:
		rule = rule_cfa(RULE_CFA, factored_offset(r, b));
		break;
	case DW_CFA_val_offset_sf:
		rule = rule_cfa(RULE_CFA, factored(r, bytes_sleb(b)));
		break;
	case DW_CFA_undefined:
		rule = rule_pack(RULE_UNDEF, 0, 0);
		break;
	case DW_CFA_same_value:
		rule = col == COL_RA   ? ra_unspecified(r->arch, r->cie->ra_reg, r->nregs)
		       : col == COL_SP ? rule_pack(RULE_REG, row_arch_regs(r->arch)->sp, 0)
				       : rule_pack(RULE_SAME, 0, 0);
		break;
	case DW_CFA_register:
		rule = rule_at(r, RULE_REG, bytes_uleb(b), 0);
		break;
	case DW_CFA_expression:
		rule = expression_rule(r, false);
		break;
	case DW_CFA_val_expression:
		rule = expression_rule(r, true);
		break;
	default:
		return restore(r, reg);
	}
	if (col == COL_FP && rule == rule_pack(RULE_NONE, 0, 0))
		rule = rule_pack(RULE_UNDEF, 0, 0); /* the row cannot express the rule */
	set_rule(r, col, rule);
	return true;
}

static bool op_cfa(struct cfa_run *r, uint8_t op)
{
	struct bytes *b = &r->b;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa_sf:
		reg = bytes_uleb(b);
		def_cfa(r, reg, factored(r, bytes_sleb(b)));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		def_cfa_offset(r, factored(r, bytes_sleb(b)));
		return true;
	case DW_CFA_def_cfa_expression:
		def_cfa_expression(r);
		return true;
	default:
		return false;
	}
}

static bool remember(struct cfa_run *r)
{
	if (r->depth == CFA_DEPTH)
		r->bad = "DW_CFA_remember_state nested too deep";
	else
		r->saved[r->depth++] = r->cur;
	return !r->bad;
}

static bool recall(struct cfa_run *r)
{
	uint64_t loc = r->cur.start;

	if (r->depth == 0) {
		r->bad = "DW_CFA_restore_state without DW_CFA_remember_state";
		return false;
	}
	r->cur = r->saved[--r->depth];
	r->cur.start = loc;
	r->changed = true;
	return true;
}

/* Vendor instructions. The opcode of negate_ra_state has other meanings on other architectures. */
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
		r->cur.flags ^= ROW_PAC;
		r->changed = true;
		return true;
	/* 0: plain; 1: signed; 2: signed with the pc, whose offset follows */
	case DW_CFA_AARCH64_set_ra_state:
		state = bytes_uleb(&r->b);
		bytes_sleb(&r->b);
		r->cur.flags = (uint8_t)((r->cur.flags & ~ROW_PAC) | (state ? ROW_PAC : 0));
		r->changed = true;
		return true;
	default:
		return false;
	}
}

/* All instructions outside the common forms. False: stop. */
static bool op_extended(struct cfa_run *r, uint8_t op)
{
	switch (op) {
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
		return op_column(r, op);
	}
	if (op_cfa(r, op) || op_vendor(r, op))
		return !r->bad;
	r->bad = "unknown call frame instruction";
	return false;
}

/*
 * Evaluates one instruction. Handles the common forms directly, which are nearly all that compilers
 * emit. False: stop.
 */
static inline bool step(struct cfa_run *r, struct bytes *b)
{
	uint8_t op = bytes_u8(b), low = op & 0x3f;
	uint64_t arg = low;
	bool more;

	if ((op & 0xc0) == DW_CFA_advance_loc)
		return advance(r, arg);
	if ((op & 0xc0) == DW_CFA_offset) {
		set_rule(r, column(r, low), rule_cfa(RULE_CFA_MEM, factored_offset(r, b)));
		return true;
	}
	if ((op & 0xc0) == DW_CFA_restore)
		return restore(r, low);
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_def_cfa_offset:
		def_cfa_offset(r, plain_offset(b));
		return true;
	case DW_CFA_def_cfa:
		arg = read_uleb(b);
		def_cfa(r, arg, plain_offset(b));
		return true;
	case DW_CFA_def_cfa_register:
		def_cfa_register(r, read_uleb(b));
		return true;
	case DW_CFA_advance_loc1:
		return advance(r, bytes_u8(b));
	case DW_CFA_advance_loc2:
		return advance(r, bytes_u16(b));
	case DW_CFA_remember_state:
		return remember(r);
	case DW_CFA_restore_state:
		return recall(r);
	default:
		r->b = *b;
		more = op_extended(r, op);
		*b = r->b;
		return more;
	}
}

static void run(struct cfa_run *r, const char *section, struct diag *diag)
{
	struct bytes b = r->b; /* a local copy can stay in registers */
	uint64_t at = b.pos;

	while (bytes_left(&b)) {
		at = b.pos;
		if (!step(r, &b))
			break;
	}
	if (b.err && !r->bad)
		r->bad = "a call frame instruction is cut short";
	if (r->bad)
		diag_add(diag, DIAG_MALFORMED, section, at, "%s", r->bad);
}

static inline void prepare(struct cfa_run *r, const struct eh_cie *cie,
			   const struct eh_insns *insns)
{
	r->b = bytes_sub(&insns->sec, 0, insns->end);
	bytes_seek(&r->b, insns->pos);
	r->cie = cie;
	r->data_align = cie->data_align;
	r->arch = insns->arch;
	r->nregs = cie->nregs;
	r->out = NULL;
	r->initial = false;
	r->changed = true;
	r->lost = false;
	r->bad = NULL;
	r->err = 0;
	r->depth = 0;
}

bool eh_cfa_init(struct eh_cie *cie, const struct eh_insns *insns, struct diag *diag)
{
	struct cfa_run r;

	for (unsigned int reg = 0; reg < sizeof(cie->column); reg++)
		cie->column[reg] = (uint8_t)column_of(cie, insns->arch, reg);
	cie->nregs = row_arch_regs(insns->arch)->nnames;
	prepare(&r, cie, insns);
	r.cur = (struct cfa_state){ .col[COL_RA] = ra_unspecified(insns->arch, cie->ra_reg,
								  r.nregs),
				    .col[COL_FP] = rule_pack(RULE_SAME, 0, 0),
				    .col[COL_BX] = rule_pack(RULE_SAME, 0, 0),
				    .col[COL_SP] = SP_IS_CFA,
				    .cfa_reg = UINT16_MAX, /* no rule yet */
				    .flags = cie->signal ? ROW_SIGNAL : 0 };
	if (cie->ra_reg == row_arch_regs(insns->arch)->fp)
		r.cur.col[COL_FP] = rule_pack(RULE_UNDEF, 0, 0); /* one column cannot be both */
	r.initial = true;
	r.end = 0;
	run(&r, insns->section, diag);
	cie->init = r.cur;
	return !r.bad;
}

/* The CFA is a buffer in all rows of a function where it is one in any. */
static void lose_buffer(struct rowbuf *out, size_t first)
{
	const struct rule *buffer = NULL;

	for (size_t i = first; i < out->n && !buffer; i++)
		if (out->rows[i].flags & ROW_LOST)
			buffer = &out->rows[i].cfa;
	for (size_t i = first; i < out->n && buffer; i++)
		if (rule_equal(&out->rows[i].cfa, buffer))
			out->rows[i].flags |= ROW_LOST;
}

int eh_cfa_rows(const struct eh_cie *cie, const struct eh_insns *insns, uint64_t start,
		uint64_t end, struct rowbuf *out, struct diag *diag)
{
	struct cfa_run r;

	if (start >= end)
		return 0;
	prepare(&r, cie, insns);
	r.cur = cie->init;
	r.cur.start = start;
	r.end = end;
	r.out = out;
	r.first = out->n;
	run(&r, insns->section, diag);
	if (!r.bad && !r.err && r.cur.start < end)
		emit(&r, end);
	if (r.lost)
		lose_buffer(out, r.first);
	return r.err;
}
