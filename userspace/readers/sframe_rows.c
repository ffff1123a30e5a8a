/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes struct row of a function's rows.
 *
 * A row (spec, "SFrame Frame Row Entries") is `start; u8 info; words`, packed. start has 1, 2 or 4
 * bytes in all rows of a function, the words have 1, 2 or 4 in a row. The meaning of the words
 * depends on ABI and FDE type:
 *
 *   DEFAULT  x86-64	CFA = base + w1	[FP at CFA + w2]; RA at the header's fixed offset
 *            AArch64	CFA = base + w1	[RA at CFA + w2 [FP at CFA + w3]]
 *            s390x	CFA = base + w1 * 8 + 160, then as AArch64; RA word 0: not saved;
 *			version 2 keeps values in registers as odd words: register << 1 | 1
 *   FLEX		up to three rules (CFA, RA, FP), each `control, offset`, or a single 0: none
 *
 * Without words the RA is undefined: this is the outermost frame. A row holds up to the start of
 * the next one.
 */
#include <errno.h>

#include "base/vec.h"
#include "readers/sframe_fde.h"
#include "readers/sframe_table.h"

#define INFO_BASE_SP	0x01
#define INFO_WORDS(i)	((i) >> 1 & 0xf)
#define INFO_SIZE(i)	((i) >> 5 & 0x3) /* log2 of the bytes of a word */
#define INFO_MANGLED_RA 0x80

#define WORDS_MAX 6 /* three FLEX rules */

#define FLEX_REG       0x1
#define FLEX_DEREF     0x2
#define FLEX_UNUSED    0x4
#define FLEX_REG_SHIFT 3
#define DWARF_REG_MAX  31 /* spec: what a control word can name */

enum decoder { DECODE_X86_64, DECODE_AARCH64, DECODE_S390X_V2, DECODE_S390X, DECODE_FLEX };

enum damage {
	DAMAGE_NONE,
	DAMAGE_CUT,
	DAMAGE_ORDER,
	DAMAGE_START,
	DAMAGE_SIZE,
	DAMAGE_WORDS,
	DAMAGE_NO_CFA,
	DAMAGE_CFA_OF_CFA,
	DAMAGE_CONTROL,
	DAMAGE_PAIR,
	DAMAGE_EXTRA,
};

static const char *const damage_text[] = {
	[DAMAGE_CUT] = "runs past the table's end",
	[DAMAGE_ORDER] = "does not start after the row before it",
	[DAMAGE_START] = "starts past the function's end",
	[DAMAGE_SIZE] = "word size code 3 is not defined",
	[DAMAGE_WORDS] = "more words than its FDE type and ABI define",
	[DAMAGE_NO_CFA] = "no rule for the CFA",
	[DAMAGE_CFA_OF_CFA] = "a CFA that is based on itself",
	[DAMAGE_CONTROL] = "unknown bit in a control word",
	[DAMAGE_PAIR] = "a control word without its offset",
	[DAMAGE_EXTRA] = "words after the third rule",
};

struct walk {
	struct bytes b;	  /* bytes from the first row to the end of the table's rows */
	struct row proto; /* common to all rows, with the rules for absent words */
	enum decoder decoder;
	uint8_t row_type;
	bool s390x;
	uint8_t mangled; /* info bit of a mangled RA; 0: not on this architecture */
	uint8_t sp, fp;
	unsigned int nregs; /* registers that rules may name */
	uint32_t nrows;
	/* Limit of row starts: the size of the function, or of a repeating block */
	uint32_t size;
	/*
	 * Rows that start here or later are dropped: they are at the very end, or clipped by the
	 * caller
	 */
	uint64_t keep;
	uint32_t bad_regs;     /* rules left out because they name a register that no machine has */
	struct row *rows, *at; /* the first row, and the next one to write */
	uint64_t next;	       /* the next row starts here or later */
	uint32_t row;	       /* the row being read */
	size_t row_pos;
};

static inline void rule_set(struct rule *r, uint8_t kind, uint8_t reg, int32_t off)
{
	rule_unpack(r, rule_pack(kind, reg, off));
}

/*
 * s390x stores (offset - 160) / 8, which fits in a byte more often. The result may not fit an
 * int32_t.
 */
static inline void rule_set_s390x_cfa(struct rule *r, uint8_t kind, uint8_t reg, int32_t word)
{
	int64_t off = (int64_t)word * 8 + 160;

	if (off == (int32_t)off)
		rule_set(r, kind, reg, (int32_t)off);
	else
		rule_set(r, RULE_NONE, 0, 0);
}

/*
 * Version 2 on s390x: an even word is an offset from the CFA, an odd one names the register that
 * has the value.
 */
static inline void rule_set_s390x_slot(struct walk *w, struct rule *r, int32_t word, bool v2)
{
	uint32_t reg = (uint32_t)word >> 1;

	if (!v2 || !(word & 1)) {
		rule_set(r, RULE_CFA_MEM, 0, word);
	} else if (reg <= DWARF_REG_MAX) {
		rule_set(r, RULE_REG, (uint8_t)reg, 0);
	} else {
		rule_set(r, RULE_NONE, 0, 0);
		w->bad_regs++;
	}
}

static inline enum damage s390x_rules(struct walk *w, struct row *r, unsigned int n,
				      const int32_t *words, bool v2)
{
	rule_set_s390x_cfa(&r->cfa, RULE_REG, r->cfa.reg, words[0]);
	if (n > 1 && words[1])
		rule_set_s390x_slot(w, &r->ra, words[1], v2);
	if (n > 2)
		rule_set_s390x_slot(w, &r->fp, words[2], v2);
	return n > 3 ? DAMAGE_WORDS : DAMAGE_NONE;
}

static inline void flex_rule(struct walk *w, struct rule *r, uint32_t control, int32_t off,
			     bool scaled)
{
	/* Indexed by deref_p, reg_p */
	static const uint8_t kinds[] = { RULE_CFA, RULE_REG, RULE_CFA_MEM, RULE_REG_MEM };
	uint32_t reg = control >> FLEX_REG_SHIFT;
	uint8_t kind = kinds[control & (FLEX_REG | FLEX_DEREF)];

	if (!(control & FLEX_REG)) {
		rule_set(r, kind, 0, off);
		return;
	}
	/* GNU as 2.46 writes 0x1fffffff for an FP rule that is based on another register. */
	if (reg > DWARF_REG_MAX)
		w->bad_regs++;
	if (reg >= w->nregs)
		rule_set(r, RULE_NONE, 0, 0);
	else if (scaled)
		rule_set_s390x_cfa(r, kind, (uint8_t)reg, off);
	else
		rule_set(r, kind, (uint8_t)reg, off);
}

/* Spec, "Flexible FDE type". mask: the bits of a word, as control words are unsigned. */
static enum damage flex_rules(struct walk *w, struct row *r, unsigned int n, const int32_t *words,
			      uint32_t mask)
{
	struct rule *const rules[] = { &r->cfa, &r->ra, &r->fp };
	unsigned int at = 0;

	for (unsigned int k = 0; k < 3 && at < n; k++) {
		uint32_t control = (uint32_t)words[at++] & mask;

		if (!control) {
			if (!k)
				return DAMAGE_NO_CFA;
			continue;
		}
		if (control & FLEX_UNUSED)
			return DAMAGE_CONTROL;
		if (at == n)
			return DAMAGE_PAIR;
		if (!k && !(control & FLEX_REG))
			return DAMAGE_CFA_OF_CFA;
		flex_rule(w, rules[k], control, words[at++], !k && w->s390x);
	}
	if (r->fp.kind == RULE_NONE)
		r->fp.kind = RULE_UNDEF;
	return at < n ? DAMAGE_EXTRA : DAMAGE_NONE;
}

/* w->proto has set the rule kinds of DEFAULT rows. */
static enum damage row_rules(struct walk *w, struct row *r, uint8_t info, const int32_t *words)
{
	unsigned int n = INFO_WORDS(info);
	bool arm64 = w->decoder == DECODE_AARCH64;

	if (w->decoder == DECODE_FLEX)
		return flex_rules(w, r, n, words,
				  (uint32_t)((uint64_t)1 << (8u << INFO_SIZE(info))) - 1);
	r->cfa.reg = info & INFO_BASE_SP ? w->sp : w->fp;
	if (w->decoder == DECODE_S390X || w->decoder == DECODE_S390X_V2)
		return s390x_rules(w, r, n, words, w->decoder == DECODE_S390X_V2);
	r->cfa.off = words[0];
	if (arm64 && n > 1)
		rule_set(&r->ra, RULE_CFA_MEM, 0, words[1]);
	if (n > (arm64 ? 2 : 1))
		rule_set(&r->fp, RULE_CFA_MEM, 0, words[arm64 ? 2 : 1]);
	return n > (arm64 ? 3 : 2) ? DAMAGE_WORDS : DAMAGE_NONE;
}

static int32_t read_word(struct bytes *b, unsigned int size)
{
	return size == 0 ? bytes_s8(b) : size == 1 ? bytes_s16(b) : bytes_s32(b);
}

/*
 * Whether the CFA is a buffer to jump by, as in glibc's __longjmp(): it is given by another
 * register than sp and fp, and so is the RA. The table has no rule for sp.
 */
static inline bool is_buffer(const struct walk *w, const struct row *r)
{
	return (r->ra.kind == RULE_REG || r->ra.kind == RULE_REG_MEM) &&
	       w->decoder == DECODE_FLEX && r->cfa.kind == RULE_REG && r->cfa.reg != w->sp &&
	       r->cfa.reg != w->fp && !(r->flags & ROW_SIGNAL) && !w->s390x;
}

/* Reads info and words of a row. */
static enum damage read_row(struct walk *w, struct row *r)
{
	uint8_t info = bytes_u8(&w->b);
	unsigned int n = INFO_WORDS(info);
	int32_t words[WORDS_MAX];
	enum damage damage;

	if (!n) {
		if (w->b.err)
			return DAMAGE_CUT;
		rule_set(&r->cfa, RULE_NONE, 0, 0);
		rule_set(&r->ra, RULE_UNDEF, 0, 0);
		rule_set(&r->fp, RULE_NONE, 0, 0);
		return DAMAGE_NONE;
	}
	if (n > WORDS_MAX)
		return DAMAGE_WORDS;
	if (INFO_SIZE(info) > 2)
		return DAMAGE_SIZE;
	for (unsigned int k = 0; k < n; k++)
		words[k] = read_word(&w->b, INFO_SIZE(info));
	if (w->b.err)
		return DAMAGE_CUT;
	if (info & w->mangled)
		r->flags |= ROW_PAC;
	damage = row_rules(w, r, info, words);
	if (ra_is_foreign(&r->ra, r->flags) || is_buffer(w, r))
		r->flags |= ROW_LOST;
	return damage;
}

/*
 * Reads one row. Rows past the end that the caller asked for are read too, so that the damage found
 * in a function does not depend on its neighbours.
 */
static enum damage read_any(struct walk *w)
{
	struct row *r = w->at;
	enum damage damage;
	uint32_t start;

	start = w->row_type == 0   ? bytes_u8(&w->b)
		: w->row_type == 1 ? bytes_u16(&w->b)
				   : bytes_u32(&w->b);
	*r = w->proto;
	damage = read_row(w, r);
	if (!damage && start > w->size)
		damage = DAMAGE_START;
	if (!damage && start < w->next)
		damage = DAMAGE_ORDER;
	if (damage)
		return damage;
	w->next = (uint64_t)start + 1;
	if (start >= w->keep)
		return DAMAGE_NONE;
	if (w->proto.plt_rep) {
		r->plt_at = start;
	} else {
		r->start += start;
		if (r != w->rows)
			r[-1].end = r->start;
	}
	w->at++;
	return DAMAGE_NONE;
}

static enum damage read_function(struct walk *w)
{
	enum damage damage = DAMAGE_NONE;

	for (; w->row < w->nrows && !damage; w->row += !damage) {
		w->row_pos = w->b.pos;
		damage = read_any(w);
	}
	return damage;
}

static void walk_init(struct walk *w, const struct sframe *s, const struct sframe_table *t,
		      const struct sframe_fde *fde, const struct fn *fn, struct row *rows)
{
	const struct row_regs *regs = row_arch_regs(s->arch);
	uint64_t len = fn->end - fn->start;

	w->b = bytes_sub(&s->sec, fde->rows_off, t->fre_off + t->fre_len - fde->rows_off);
	w->b.be = t->be;
	w->s390x = s->arch == ROW_ARCH_S390X;
	w->mangled = s->arch == ROW_ARCH_AARCH64 ? INFO_MANGLED_RA : 0;
	w->sp = regs->sp;
	w->fp = regs->fp;
	w->nregs = regs->nnames;
	w->nrows = fde->nrows;
	w->row_type = fde->row_type;
	w->size = fde->rep_size ? fde->rep_size : fde->size;
	w->rows = w->at = rows;
	w->bad_regs = w->row = 0;
	w->next = w->row_pos = 0;
	w->keep = len < w->size ? len : w->size;
	if (fde->flex)
		w->decoder = DECODE_FLEX;
	else if (w->s390x)
		w->decoder = t->version == 2 ? DECODE_S390X_V2 : DECODE_S390X;
	else
		w->decoder = w->mangled ? DECODE_AARCH64 : DECODE_X86_64;
	w->proto = (struct row){
		.start = fn->start,
		.end = fn->end,
		.source = ROW_SFRAME,
		.plt_rep = fde->rep_size,
		.flags = fde->signal ? ROW_SIGNAL : 0,
		.cfa = { .kind = RULE_REG },
		.fp = { .kind = RULE_SAME },
	};
	/* An RA without a word is at the header's fixed offset, or still in the link register. */
	if (t->fixed_ra)
		rule_set(&w->proto.ra, RULE_CFA_MEM, 0, t->fixed_ra);
	else
		rule_set(&w->proto.ra, RULE_REG, regs->ra, 0);
}

/*
 * GNU ld 2.44 to 2.46 (at least) describes .plt.got, whose stubs push nothing, with the row of a
 * .plt stub after its push: a single row that repeats and says sp+16. No stub starts like that.
 */
static bool repair_plt_got(const struct walk *w, const struct sframe_fde *fde, struct row *r)
{
	if (w->decoder != DECODE_X86_64 || fde->nrows != 1 ||
	    (fde->rep_size != 8 && fde->rep_size != 16) || r->plt_at || r->cfa.kind != RULE_REG ||
	    r->cfa.reg != w->sp || r->cfa.off != 16)
		return false;
	r->cfa.off = 8;
	return true;
}

int sframe_rows(const struct sframe *s, const struct fn *fn, struct rowbuf *out, struct diag *diag)
{
	uint32_t i = (uint32_t)fn->ref;
	const struct sframe_table *t = &s->tables[fn->ref >> 32];
	struct sframe_fde fde;
	enum damage damage;
	struct walk w;
	size_t n;

	if (sframe_fde_load(s, t, i, &fde) || !fde.nrows || fn->end <= fn->start)
		return 0;
	if (vec_reserve(&out->rows, &out->cap, out->n + fde.nrows, sizeof(*out->rows)))
		return -ENOMEM;
	walk_init(&w, s, t, &fde, fn, out->rows + out->n);
	damage = read_function(&w);
	if (damage) {
		diag_add(diag, DIAG_MALFORMED, SFRAME_SECTION, fde.rows_off + w.row_pos,
			 "function %u at 0x%llx, row %u: %s; its rows are lost", i,
			 (unsigned long long)fn->start, w.row, damage_text[damage]);
		return 0;
	}
	n = (size_t)(w.at - w.rows);
	out->n += n;
	if (w.bad_regs)
		diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, fde.rows_off,
			 "function %u at 0x%llx: %u rules name registers above %d, left out", i,
			 (unsigned long long)fn->start, w.bad_regs, DWARF_REG_MAX);
	if (n && repair_plt_got(&w, &fde, w.rows))
		diag_add(diag, DIAG_REPAIRED, SFRAME_SECTION, fde.rows_off,
			 "function %u at 0x%llx: .plt.got has CFA sp+16, taken as sp+8", i,
			 (unsigned long long)fn->start);
	return 0;
}
