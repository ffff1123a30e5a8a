/* SPDX-License-Identifier: BSD-2-Clause */
#include "readers/row_compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

static bool expressed(const struct rule *r)
{
	return r->kind >= RULE_CFA;
}

/* The rule based on the CFA's register instead of the CFA, so that spellings can be compared. */
static struct rule from_register(const struct rule *r, const struct rule *cfa)
{
	struct rule out = *r;
	int64_t off = (int64_t)cfa->off + r->off;

	if ((r->kind != RULE_CFA && r->kind != RULE_CFA_MEM) || cfa->kind != RULE_REG ||
	    off != (int32_t)off)
		return out;
	out.kind = r->kind == RULE_CFA ? RULE_REG : RULE_REG_MEM;
	out.reg = cfa->reg;
	out.off = (int32_t)off;
	return out;
}

static bool same_place(const struct rule *a, const struct rule *a_cfa, const struct rule *b,
		       const struct rule *b_cfa)
{
	struct rule x, y;

	if (rule_equal(a, b))
		return true;
	x = from_register(a, a_cfa);
	y = from_register(b, b_cfa);
	return rule_equal(&x, &y);
}

unsigned int row_disagree(const struct row *sframe, const struct row *eh, unsigned int *ret_judged)
{
	const struct rule *a = &sframe->ra, *b = &eh->ra;
	unsigned int judged = 0, bad = 0;

	if (a->kind == RULE_UNDEF || b->kind == RULE_UNDEF) {
		if (a->kind != RULE_NONE && b->kind != RULE_NONE) {
			judged |= ROW_RA;
			bad |= a->kind != b->kind ? ROW_RA : 0;
		}
		*ret_judged = judged;
		return bad;
	}
	if (expressed(&sframe->cfa) && expressed(&eh->cfa)) {
		judged |= ROW_CFA;
		bad |= rule_equal(&sframe->cfa, &eh->cfa) && sframe->cfa_off2 == eh->cfa_off2
			       ? 0
			       : ROW_CFA;
	}
	if (expressed(a) && expressed(b)) {
		judged |= ROW_RA | ROW_SIGNED;
		bad |= same_place(a, &sframe->cfa, b, &eh->cfa) ? 0 : ROW_RA;
		bad |= (sframe->flags ^ eh->flags) & ROW_PAC ? ROW_SIGNED : 0;
	}
	a = &sframe->fp;
	b = &eh->fp;
	if ((expressed(a) || a->kind == RULE_SAME) && (expressed(b) || b->kind == RULE_SAME)) {
		judged |= ROW_FP;
		bad |= same_place(a, &sframe->cfa, b, &eh->cfa) ? 0 : ROW_FP;
	}
	*ret_judged = judged;
	return bad;
}

/* ---- Walking both tables ---- */

/* Rows of a repeating block: SFrame's block has at most 255 bytes */
#define BLOCK_MAX  256
#define PERIOD_MAX 65536

enum { SEEN_JUDGED = 1, SEEN_CLASH = 2 };

/* One row, or the rows of one repeating block, and the first row after them. */
struct group {
	struct row_stream stream;
	struct row rows[BLOCK_MAX], next;
	uint8_t seen[BLOCK_MAX];
	size_t n; /* 0: the end */
	int more; /* result of row_stream_next for `next` */
};

struct compare {
	struct group sf, eh;
	row_clash_fn fn;
	void *ctx;
	struct row_compare_totals *totals;
};

static void group_next(struct group *g)
{
	g->n = 0;
	if (g->more <= 0)
		return;
	memset(g->seen, 0, sizeof(g->seen));
	g->rows[g->n++] = g->next;
	g->more = row_stream_next(&g->stream, &g->next);
	while (g->more > 0 && g->next.plt_rep && g->next.plt_rep == g->rows[0].plt_rep &&
	       g->next.start == g->rows[0].start && g->n < BLOCK_MAX) {
		g->rows[g->n++] = g->next;
		g->more = row_stream_next(&g->stream, &g->next);
	}
}

static void group_open(struct group *g, struct unwind_file *file, unsigned int which,
		       struct diag *diag)
{
	row_stream_open(&g->stream, file, which, diag);
	g->more = row_stream_next(&g->stream, &g->next);
	group_next(g);
}

/* Index of the row that holds at pos, -1 if none does; *ret_end is where that changes. */
static int group_at(const struct group *g, uint64_t pos, uint64_t *ret_end)
{
	const struct row *first = &g->rows[0];
	size_t lo = 0, hi = g->n;
	uint64_t phase, base;

	*ret_end = first->end;
	if (!first->plt_rep)
		return 0;
	phase = (pos - first->start) % first->plt_rep;
	base = pos - phase;
	/* Rows below lo start at or before phase, those from hi on start after it */
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (g->rows[mid].plt_at <= phase)
			lo = mid + 1;
		else
			hi = mid;
	}
	*ret_end = base + (lo < g->n ? g->rows[lo].plt_at : first->plt_rep);
	return (int)lo - 1;
}

/* *reported: this pair has been reported. NULL: report it always. */
static void compare_pair(struct compare *c, int i, int j, uint64_t start, uint64_t end,
			 bool *reported)
{
	unsigned int judged, bad = row_disagree(&c->sf.rows[i], &c->eh.rows[j], &judged);
	struct row_clash clash = { start, end, &c->sf.rows[i], &c->eh.rows[j], bad };

	c->sf.seen[i] |= judged ? SEEN_JUDGED : 0;
	if (!bad || (reported && *reported))
		return;
	c->sf.seen[i] |= SEEN_CLASH;
	if (reported)
		*reported = true;
	c->fn(c->ctx, &clash);
}

/*
 * One of the two is a repeating block: compares one common period, and reports each pair of rows
 * once.
 */
static void compare_blocks(struct compare *c, uint64_t lo, uint64_t hi)
{
	uint64_t period = (uint64_t)(c->sf.rows[0].plt_rep ? c->sf.rows[0].plt_rep : 1) *
			  (c->eh.rows[0].plt_rep ? c->eh.rows[0].plt_rep : 1);
	bool reported[BLOCK_MAX][4] = { 0 }; /* .eh_frame's blocks have up to three rows */

	if (period > PERIOD_MAX)
		period = PERIOD_MAX;
	if (hi - lo > period)
		hi = lo + period;
	while (lo < hi) {
		uint64_t end_i, end_j, end;
		int i = group_at(&c->sf, lo, &end_i), j = group_at(&c->eh, lo, &end_j);

		end = end_i < end_j ? end_i : end_j;
		if (end > hi)
			end = hi;
		if (i >= 0 && j >= 0)
			compare_pair(c, i, j, lo, end, &reported[i][j < 3 ? j : 3]);
		lo = end;
	}
}

static void count_rows(struct compare *c)
{
	for (size_t i = 0; i < c->sf.n; i++) {
		c->totals->rows++;
		c->totals->compared += (c->sf.seen[i] & SEEN_JUDGED) != 0;
		c->totals->clashing += (c->sf.seen[i] & SEEN_CLASH) != 0;
	}
}

static void walk(struct compare *c)
{
	while (c->sf.n) {
		const struct row *a = &c->sf.rows[0], *b = &c->eh.rows[0];
		uint64_t lo = a->start, hi = a->end;

		if (c->eh.n) {
			lo = b->start > lo ? b->start : lo;
			hi = b->end < hi ? b->end : hi;
			if (lo < hi && (a->plt_rep || b->plt_rep))
				compare_blocks(c, lo, hi);
			else if (lo < hi)
				compare_pair(c, 0, 0, lo, hi, NULL);
		}
		if (c->eh.n && b->end <= a->end) {
			group_next(&c->eh);
		} else {
			count_rows(c);
			group_next(&c->sf);
		}
	}
}

int row_compare(struct unwind_file *file, row_clash_fn fn, void *ctx,
		struct row_compare_totals *ret, struct diag *diag)
{
	struct compare *c = calloc(1, sizeof(*c));
	int err;

	*ret = (struct row_compare_totals){ 0 };
	if (!c)
		return -ENOMEM;
	c->fn = fn;
	c->ctx = ctx;
	c->totals = ret;
	group_open(&c->sf, file, ROWS_SFRAME, diag);
	group_open(&c->eh, file, ROWS_EH_FRAME, diag);
	walk(c);
	err = c->sf.more < 0 ? c->sf.more : c->eh.more < 0 ? c->eh.more : 0;
	row_stream_close(&c->sf.stream);
	row_stream_close(&c->eh.stream);
	free(c);
	return err;
}
