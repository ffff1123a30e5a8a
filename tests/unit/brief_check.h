/* SPDX-License-Identifier: BSD-2-Clause */
/* A function's rows in brief against its rows: for the tests and fuzz targets of both readers. */
#ifndef SFBPF_TESTS_BRIEF_CHECK_H
#define SFBPF_TESTS_BRIEF_CHECK_H

#include "readers/eh_brief.h"
#include "readers/row_stream.h"
#include "readers/sframe_brief.h"

/*
 * Whether a row says a part of what the k-th says, where the ones before ended; *k is then the one
 * that goes on behind it.
 */
static inline bool brief_row_fits(const struct row *r, const struct rowbuf *rows, size_t *k,
				  uint64_t *at)
{
	const struct row *whole = &rows->rows[*k];

	if (*k >= rows->n || r->start >= r->end || r->start != *at || r->start < whole->start ||
	    r->end > whole->end || !row_same_rules(r, whole))
		return false;
	*at = r->end;
	*k += r->end == whole->end;
	return true;
}

/* False: they differ. *ret_told: whether it was to be had in brief at all. */
static inline bool eh_brief_agrees(struct eh_brief *m, const struct fn *fn,
				   const struct rowbuf *rows, bool *ret_told)
{
	struct brief b = { 0 };
	int told = eh_brief_rows(m, fn, &b);
	uint64_t at = fn->start;
	bool same = told >= 0;
	size_t k = 0;

	*ret_told = told > 0;
	for (size_t i = 1; told > 0 && same && i <= b.n; i++) {
		struct row r;

		eh_brief_rule(m, b.rows[i].rule, &r);
		r.start = b.rows[i - 1].end;
		r.end = b.rows[i].end;
		same = b.rows[i].rule < b.rules && brief_row_fits(&r, rows, &k, &at);
	}
	free(b.rows);
	return same && (told <= 0 || k == rows->n);
}

static inline bool sframe_brief_agrees(struct sframe_brief *m, const struct fn *fn,
				       const struct rowbuf *rows, bool *ret_told)
{
	struct brief b = { 0 };
	int told = sframe_brief_rows(m, fn, &b);
	bool same = told >= 0 && (!told || b.n == rows->n), usable = true;
	uint64_t at = told > 0 ? b.rows[0].end : 0;
	size_t k = 0;

	*ret_told = told > 0;
	for (size_t i = 1; told > 0 && same && i <= b.n; i++) {
		struct row r;

		sframe_brief_rule(m, b.rows[i].rule, &r);
		r.start = b.rows[i - 1].end;
		r.end = b.rows[i].end;
		usable &= row_usable(&r);
		same = b.rows[i].rule < b.rules && brief_row_fits(&r, rows, &k, &at);
	}
	same &= told <= 0 || usable == b.usable;
	free(b.rows);
	return same;
}

/*
 * Whether `part` is the next of what `by_row` yields, or the first or last part of that, of which
 * *rest is still to come.
 */
static inline bool stream_row_fits(const struct row *part, struct row_stream *by_row,
				   struct row *rest)
{
	if (rest->start >= rest->end && row_stream_next(by_row, rest) <= 0)
		return false;
	if (part->start != rest->start || part->end > rest->end || !row_same_rules(part, rest))
		return false;
	rest->start = part->end;
	return true;
}

/* Whether the file's rows are the same by function and by row. */
static inline bool rows_agree(struct unwind_file *file, unsigned int which, struct diag *diag)
{
	struct row_stream by_row, by_function;
	struct row row, rest = { 0 };
	struct fn_rows f;
	bool same = true;

	row_stream_open(&by_row, file, which, NULL);
	row_stream_open(&by_function, file, which, diag);
	while (same && row_stream_function(&by_function, &f) > 0) {
		for (size_t i = 0; !f.brief && i < f.n; i++)
			same &= stream_row_fits(&f.rows[i], &by_row, &rest);
		for (size_t i = 1; f.brief && i <= f.brief->n; i++) {
			row_stream_rule(&by_function, f.source, f.brief->rows[i].rule, &row);
			row.start = f.brief->rows[i - 1].end;
			row.end = f.brief->rows[i].end;
			same &= stream_row_fits(&row, &by_row, &rest);
		}
	}
	same &= rest.start >= rest.end && row_stream_next(&by_row, &row) == 0;
	row_stream_close(&by_row);
	row_stream_close(&by_function);
	return same;
}

#endif
