/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hand-written instead of printf: a large library has millions of rows, and printf would take ten
 * times as long as finding them.
 */
#include "rows/row_text.h"

#include <string.h>

static inline char *append(char *p, const char *s)
{
	size_t len = strlen(s);

	memcpy(p, s, len);
	return p + len;
}

static char *put_u64(char *p, uint64_t v)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

static char *put_hex(char *p, uint64_t v)
{
	for (int shift = 60; shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

static char *put_offset(char *p, int32_t off)
{
	*p++ = off < 0 ? '-' : '+';
	return put_u64(p, (uint64_t)(off < 0 ? -(int64_t)off : off));
}

static char *put_reg(char *p, enum row_arch arch, uint8_t reg)
{
	const struct row_regs *regs = row_arch_regs(arch);

	if (reg < regs->nnames)
		return append(p, regs->names[reg]);
	return put_u64(append(p, "reg"), reg);
}

/* The forms that all three columns share; any other kind is unknown. */
static char *put_rule(char *p, enum row_arch arch, const struct rule *r)
{
	switch (r->kind) {
	case RULE_CFA:
		return put_offset(append(p, "cfa"), r->off);
	case RULE_CFA_MEM:
		p = put_offset(append(p, "*(cfa"), r->off);
		*p++ = ')';
		return p;
	case RULE_REG:
		return put_offset(put_reg(p, arch, r->reg), r->off);
	case RULE_REG_MEM:
		p = put_offset(put_reg(append(p, "*("), arch, r->reg), r->off);
		*p++ = ')';
		return p;
	case RULE_INDEX_MEM:
		p = put_reg(append(p, "*("), arch, row_arch_regs(arch)->sp);
		p = put_reg(append(put_offset(p, r->off), "+"), arch, r->reg);
		return append(p, "*8)");
	default:
		*p++ = '?';
		return p;
	}
}

static char *put_ra(char *p, enum row_arch arch, const struct rule *r)
{
	const struct row_regs *regs = row_arch_regs(arch);

	if (r->kind == RULE_UNDEF)
		return append(p, "undef");
	/* x86-64's return address column is not a register. */
	if (r->reg == regs->ra && r->kind == RULE_REG && r->off == 0 && regs->ra < regs->nnames &&
	    arch != ROW_ARCH_X86_64)
		return append(p, "lr");
	return put_rule(p, arch, r);
}

static char *put_rules(char *p, enum row_arch arch, const struct row *row)
{
	p = put_rule(append(p, "cfa="), arch, &row->cfa);
	if (row->cfa_off2)
		p = put_offset(p, row->cfa_off2);
	p = put_ra(append(p, " ra="), arch, &row->ra);
	p = append(p, " fp=");
	p = row->fp.kind == RULE_SAME ? append(p, "same") : put_rule(p, arch, &row->fp);
	if (row->flags & ROW_SIGNAL)
		p = append(p, " signal");
	if (row->flags & ROW_LOST)
		p = append(p, " lost");
	if (row->flags & ROW_PAC)
		p = append(p, " pac");
	if (row->plt_rep) {
		p = put_u64(append(p, " plt rep="), row->plt_rep);
		if (row->plt_at)
			p = put_u64(append(p, " at="), row->plt_at);
	}
	*p = 0;
	return p;
}

const char *row_source_name(enum row_source source)
{
	static const char *const names[] = { "sframe", "eh_frame", "code" };

	return names[source];
}

size_t row_text_rules(char *buf, enum row_arch arch, const struct row *row)
{
	return (size_t)(put_rules(buf, arch, row) - buf);
}

size_t row_text(char *buf, enum row_arch arch, const struct row *row)
{
	char *p = put_hex(buf, row->start);

	*p++ = ' ';
	p = put_hex(p, row->end);
	*p++ = ' ';
	p = append(p, row_source_name(row->source));
	*p++ = ' ';
	return (size_t)(put_rules(p, arch, row) - buf);
}
