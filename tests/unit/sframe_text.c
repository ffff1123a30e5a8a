/* SPDX-License-Identifier: BSD-2-Clause */
#include "sframe_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __attribute__((format(printf, 2, 3))) void add(struct sframe_text *t, const char *fmt, ...)
{
	char piece[128];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(piece, sizeof(piece), fmt, args);
	va_end(args);
	t->buf = realloc(t->buf, t->len + (size_t)n + 1);
	if (!t->buf)
		abort();
	memcpy(t->buf + t->len, piece, (size_t)n + 1);
	t->len += (size_t)n;
}

static void add_rule(struct sframe_text *t, enum row_arch arch, const char *what,
		     const struct rule *r)
{
	const struct row_regs *regs = row_arch_regs(arch);
	const char *reg = r->reg < regs->nnames ? regs->names[r->reg] : "(no register)";

	add(t, " %s=", what);
	switch (r->kind) {
	case RULE_NONE:
		add(t, "?");
		break;
	case RULE_SAME:
		add(t, "same");
		break;
	case RULE_UNDEF:
		add(t, "undef");
		break;
	case RULE_CFA:
		add(t, "cfa%+d", r->off);
		break;
	case RULE_CFA_MEM:
		add(t, "*(cfa%+d)", r->off);
		break;
	case RULE_REG:
		add(t, "%s%+d", reg, r->off);
		break;
	case RULE_REG_MEM:
		add(t, "*(%s%+d)", reg, r->off);
		break;
	default:
		add(t, "(rule %u)", r->kind);
	}
}

void sframe_text_row(struct sframe_text *t, enum row_arch arch, const struct row *row,
		     uint64_t base)
{
	add(t, "%" PRIx64 "-%" PRIx64, row->start - base, row->end - base);
	add_rule(t, arch, "cfa", &row->cfa);
	add_rule(t, arch, "ra", &row->ra);
	add_rule(t, arch, "fp", &row->fp);
	if (row->bx.kind != RULE_NONE)
		add_rule(t, arch, "bx", &row->bx);
	if (row->flags & ROW_SIGNAL)
		add(t, " signal");
	if (row->flags & ROW_LOST)
		add(t, " lost");
	if (row->flags & ROW_PAC)
		add(t, " pac");
	if (row->plt_rep)
		add(t, " plt rep=%u at=%u", row->plt_rep, row->plt_at);
	add(t, "\n");
}

void sframe_text_all(struct sframe_text *t, const struct sframe *s, uint64_t base,
		     struct diag *diag)
{
	struct rowbuf rows = { 0 };

	for (size_t i = 0; i < s->fns.n; i++) {
		rows.n = 0;
		if (sframe_rows(s, &s->fns.fns[i], &rows, diag))
			abort();
		for (size_t k = 0; k < rows.n; k++)
			sframe_text_row(t, s->arch, &rows.rows[k], base);
	}
	rowbuf_free(&rows);
	add(t, "%s", "");
}

void sframe_text_free(struct sframe_text *t)
{
	free(t->buf);
	*t = (struct sframe_text){ 0 };
}

int sframe_text_noted(const struct diag *d, enum diag_kind kind, const char *text)
{
	for (unsigned int i = 0; i < d->kept; i++)
		if (d->notes[i].kind == kind && strstr(d->notes[i].text, text))
			return 1;
	return 0;
}

void sframe_text_notes(const struct diag *d)
{
	for (unsigned int i = 0; i < d->kept; i++)
		printf("  note: %s %s+0x%" PRIx64 ": %s\n",
		       d->notes[i].kind == DIAG_MALFORMED ? "malformed" : "repaired",
		       d->notes[i].section, d->notes[i].offset, d->notes[i].text);
}
