/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a row of the rules at a location. */
#include "readers/eh_cfa.h"

/* The address or the value that a rule of the CFA names, by the register that gives the CFA. */
static struct rule by_register(const struct rule *rule, const struct rule *cfa)
{
	const bool memory = rule->kind == RULE_CFA_MEM;
	const int64_t off = (int64_t)cfa->off + rule->off;
	struct rule ret = { .kind = RULE_NONE };

	if (rule->kind != RULE_CFA && !memory)
		return *rule;
	if (cfa->kind == RULE_REG && off == (int32_t)off)
		rule_unpack(&ret,
			    rule_pack(memory ? RULE_REG_MEM : RULE_REG, cfa->reg, (int32_t)off));
	return ret;
}

/* The rule for a CFA that is `up` bytes higher. */
static struct rule below(const struct rule *rule, int64_t up)
{
	const int64_t off = (int64_t)rule->off - up;

	if (rule->kind != RULE_CFA && rule->kind != RULE_CFA_MEM)
		return *rule;
	return off == (int32_t)off ? (struct rule){ .kind = rule->kind, .off = (int32_t)off }
				   : (struct rule){ .kind = RULE_NONE };
}

/*
 * The caller's sp is the CFA of a row. Where the table has another rule for sp, that becomes the
 * CFA: setcontext() and __longjmp() have the address of a buffer as their CFA, and GHC's StgRun()
 * an address in its own frame. The first two jump to an address that need not follow a call, as if
 * a signal had interrupted the code there. Without an expression for it, nothing leads to the
 * caller: sp is not known, and fp may already be that of the code to jump to.
 */
static void caller_sp(struct row *row, const struct cfa_state *st)
{
	struct rule *const rules[] = { &row->ra, &row->fp, &row->bx };
	const struct rule cfa = row->cfa;
	struct rule sp;

	rule_unpack(&sp, st->col[COL_SP]);
	if (rule_equal(&sp, &cfa) && !st->off2)
		return;
	sp = by_register(&sp, &cfa);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		*rules[i] = sp.kind == RULE_REG && cfa.kind == RULE_REG && sp.reg == cfa.reg
				    ? below(rules[i], (int64_t)sp.off - cfa.off)
				    : by_register(rules[i], &cfa);
	if (row->fp.kind == RULE_NONE)
		row->fp.kind = RULE_UNDEF;
	row->cfa = sp;
	row->cfa_off2 = 0;
	if ((sp.kind != RULE_REG && sp.kind != RULE_REG_MEM) || st->plt_rep ||
	    row->ra.kind == RULE_NONE || row->ra.kind == RULE_SAME) {
		row->cfa = (struct rule){ .kind = RULE_NONE };
		row->flags |= ROW_LOST;
	} else if (row->ra.kind == RULE_REG || row->ra.kind == RULE_REG_MEM) {
		row->flags |= ROW_SIGNAL;
	}
}

void eh_cfa_row(const struct cfa_state *st, struct row *row)
{
	row->start = st->start;
	row->end = 0;
	rule_unpack(&row->cfa, st->cfa);
	rule_unpack(&row->ra, st->col[COL_RA]);
	rule_unpack(&row->fp, st->col[COL_FP]);
	rule_unpack(&row->bx, st->col[COL_BX]);
	row->cfa_off2 = st->off2;
	row->plt_rep = 0;
	row->plt_at = 0;
	row->source = ROW_EH_FRAME;
	row->flags = st->flags;
	row->go = 0;
	if (st->col[COL_SP] != SP_IS_CFA)
		caller_sp(row, st);
	else if (ra_is_foreign(&row->ra, st->flags))
		row->flags |= ROW_LOST;
}
