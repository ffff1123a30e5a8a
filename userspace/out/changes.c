/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/changes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Runs ---- */

/* What earlier runs had added to the side of each function */
static void earlier(const struct changes *c, enum stack_side side, struct stacks_tally *ret)
{
	for (size_t r = 0; r < c->nruns; r++) {
		const struct change_run *run = &c->runs[r];

		for (size_t i = 0; run->side == side && i < run->n; i++) {
			ret[run->parts[i].frame].self[side] -= run->parts[i].self;
			ret[run->parts[i].frame].total[side] -= run->parts[i].total;
		}
	}
}

int changes_add_run(struct changes *c, const struct stackset *ss, enum stack_side side)
{
	struct change_run *run = &c->runs[c->nruns];
	struct stacks_tally *tally;
	size_t n = 0;
	int err = stacks_tally(ss, &tally);

	if (err)
		return err;
	earlier(c, side, tally);
	for (size_t i = 0; i < ss->frames.n; i++)
		n += tally[i].total[side] != 0;
	*run = (struct change_run){ .side = side, .parts = calloc(n + 1, sizeof(*run->parts)) };
	for (size_t i = 0; run->parts && i < ss->frames.n; i++)
		if (tally[i].total[side])
			run->parts[run->n++] = (struct change_run_part){ tally[i].frame,
									 tally[i].self[side],
									 tally[i].total[side] };
	free(tally);
	c->nruns += run->parts != NULL;
	return run->parts ? 0 : -ENOMEM;
}

void changes_free(struct changes *c)
{
	for (size_t r = 0; r < c->nruns; r++)
		free(c->runs[r].parts);
	free(c->list);
	*c = (struct changes){ .nruns = 0 };
}

/* ---- Statistics ---- */

/* Sums of the values of one function's runs, in the unit */
struct moments {
	double sum[STACK_SIDES], squares[STACK_SIDES];
	double counted[STACK_SIDES]; /* the variance of the sum that is a count */
	double raw;		     /* samples or microseconds, on both sides */
};

struct statistics {
	size_t n[STACK_SIDES], freedom;
	double count_scale[STACK_SIDES]; /* the mean of the squares of the scales; 0: no counts */
	double least;			 /* raw: less shows nothing */
	double spread;			 /* relative variance of runs that all functions share */
};

static void add_value(struct moments *m, enum stack_side side, uint64_t value, double scale,
		      bool blocked)
{
	double scaled = (double)value * scale;

	m->sum[side] += scaled;
	m->squares[side] += scaled * scaled;
	m->counted[side] += blocked ? 0 : scaled * scale;
	m->raw += (double)value;
}

/* The sum of squares around the mean of a side. */
static double around_mean(const struct moments *m, size_t n, enum stack_side side)
{
	double ret = m->squares[side] - m->sum[side] * m->sum[side] / (double)n;

	return ret > 0 ? ret : 0;
}

/*
 * Moments of self and total of each function: two entries each. The last two are those of all
 * functions together.
 */
static void sum_runs(const struct changes *c, const struct verdict_side *sides, size_t frames,
		     struct moments *ret, struct statistics *st)
{
	size_t of_side[STACK_SIDES] = { 0 };
	double raw = 0;

	for (size_t r = 0; r < c->nruns; r++) {
		const struct change_run *run = &c->runs[r];
		enum stack_side side = run->side;
		const struct verdict_run *v = &sides[side].runs[of_side[side]++];
		double scale = verdict_scale(&sides[side], v, &c->unit);

		for (size_t i = 0; i < run->n; i++) {
			struct moments *m = &ret[2 * (size_t)run->parts[i].frame];

			add_value(&m[0], side, run->parts[i].self, scale, v->blocked);
			add_value(&m[1], side, run->parts[i].total, scale, v->blocked);
		}
		add_value(&ret[2 * frames], side, v->value, scale, v->blocked);
		st->count_scale[side] += v->blocked ? 0 : scale * scale / (double)sides[side].n;
		raw += (double)v->value;
	}
	st->least = sides[0].runs[0].blocked ? CHANGES_BLOCKED * raw : CHANGES_SAMPLES;
}

/* The spread of runs beyond that of counts, in which large functions weigh most. */
static double shared_spread(const struct statistics *st, const struct moments *m, size_t frames)
{
	double beyond = 0, squares = 0;

	for (size_t i = 0; i < 2 * frames; i += 2) {
		for (int side = 0; side < STACK_SIDES; side++) {
			double n = (double)st->n[side];

			beyond += around_mean(&m[i], st->n[side], (enum stack_side)side) -
				  (n - 1) * m[i].counted[side] / n;
			squares += m[i].sum[side] * m[i].sum[side] / n / n * (n - 1);
		}
	}
	return beyond > 0 && squares > 0 ? beyond / squares : 0;
}

/* The probability that Student's t is farther from 0: its finite series. 0: normal distribution. */
static double p_of(double t, size_t freedom)
{
	double angle = atan(fabs(t) / sqrt((double)freedom)), c = cos(angle) * cos(angle);
	double term = freedom % 2 ? cos(angle) : 1, sum = 0;

	if (!freedom)
		return erfc(fabs(t) / sqrt(2));
	for (size_t k = freedom % 2 ? 1 : 0; k + 2 <= freedom; k += 2) {
		sum += term;
		term *= c * (double)(k + 1) / (double)(k + 2);
	}
	sum *= sin(angle);
	if (freedom % 2)
		sum = (angle + sum) * 2 / M_PI;
	return sum < 1 ? 1 - sum : 0;
}

static struct change_value value_of(const struct statistics *st, const struct moments *m)
{
	double mean[STACK_SIDES], counted = 0, expected = 0, around = 0, parts = 0, variance;
	size_t freedom = st->freedom ? st->freedom + CHANGES_PRIOR : 0;
	struct change_value ret = { .p = 2 };

	for (int side = 0; side < STACK_SIDES; side++) {
		double n = (double)st->n[side];

		mean[side] = isfinite(m->sum[side]) ? m->sum[side] / n : 0;
		/* Half a sample more: none may be chance, too. */
		counted += (m->counted[side] + st->count_scale[side] / 2) / (n * n);
		expected += st->spread * mean[side] * mean[side] / n;
		around += around_mean(m, st->n[side], (enum stack_side)side);
		parts += 1 / n;
	}
	variance = expected + counted;
	if (st->freedom)
		variance = fmax(counted,
				(CHANGES_PRIOR * variance + around * parts) / (double)freedom);
	ret.before = mean[STACK_BEFORE];
	ret.after = mean[STACK_AFTER];
	ret.interval = verdict_t(freedom) * sqrt(variance);
	if (m->raw >= st->least && variance > 0 && isfinite(variance))
		ret.p = p_of((ret.after - ret.before) / sqrt(variance), freedom);
	return ret;
}

/* ---- Which changes are real ---- */

static int by_p(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The largest p that Benjamini and Hochberg's procedure keeps; p is sorted here. */
static double largest_kept(double *p, size_t n)
{
	double kept = -1;

	if (n)
		qsort(p, n, sizeof(*p), by_p);
	for (size_t i = 0; i < n; i++)
		if (p[i] <= CHANGES_FALSE * (double)(i + 1) / (double)n)
			kept = p[i];
	return kept;
}

static struct change_value *value_at(struct function_change *f, bool total)
{
	return total ? &f->total : &f->self;
}

static int mark_real(struct changes *c)
{
	double *p = calloc(c->n + 1, sizeof(*p)), kept;

	if (!p)
		return -ENOMEM;
	for (int total = 0; total < 2; total++) {
		size_t n = 0;

		for (size_t i = 0; i < c->n; i++)
			if (value_at(&c->list[i], total)->p <= 1)
				p[n++] = value_at(&c->list[i], total)->p;
		kept = largest_kept(p, n);
		for (size_t i = 0; i < c->n; i++) {
			struct change_value *v = value_at(&c->list[i], total);

			v->real = v->p <= kept;
		}
	}
	free(p);
	return 0;
}

static double size_of(const struct change_value *v)
{
	return fabs(v->after - v->before);
}

/* The sizes of the changes of self, then of total */
static int by_size(const struct function_change *x, const struct function_change *y)
{
	double dx = size_of(&x->self), dy = size_of(&y->self);

	if (dx == dy) {
		dx = size_of(&x->total);
		dy = size_of(&y->total);
	}
	return dx < dy ? 1 : dx > dy ? -1 : x->frame < y->frame ? -1 : x->frame > y->frame;
}

static int by_rank(const void *a, const void *b)
{
	const struct function_change *x = a, *y = b;
	double dx = size_of(&x->total), dy = size_of(&y->total);

	if (x->self.real != y->self.real)
		return x->self.real ? -1 : 1;
	if (x->total.real != y->total.real && !x->self.real)
		return x->total.real ? -1 : 1;
	if (!x->self.real && x->total.real && dx != dy)
		return dx < dy ? 1 : -1;
	return by_size(x, y);
}

int changes_make(struct changes *c, const struct stackset *ss,
		 const struct verdict_side sides[STACK_SIDES], const struct verdict_unit *unit)
{
	const size_t frames = ss->frames.n;
	struct moments *m = calloc(2 * frames + 2, sizeof(*m));
	struct statistics st = { .n = { sides[0].n, sides[1].n },
				 .freedom = sides[0].n + sides[1].n - STACK_SIDES };
	int err = -ENOMEM;

	c->unit = *unit;
	c->list = calloc(frames + 1, sizeof(*c->list));
	if (m && c->list) {
		sum_runs(c, sides, frames, m, &st);
		st.spread = st.freedom ? shared_spread(&st, m, frames)
				       : verdict_spread(&sides[0]) * verdict_spread(&sides[0]);
		for (size_t i = 0; i < frames; i++)
			if (m[2 * i + 1].raw > 0) /* others are of stacks that are left out */
				c->list[c->n++] = (struct function_change){
					.frame = (uint32_t)i,
					.self = value_of(&st, &m[2 * i]),
					.total = value_of(&st, &m[2 * i + 1]),
				};
		c->all = value_of(&st, &m[2 * frames]);
		err = mark_real(c);
	}
	free(m);
	if (!err && c->n)
		qsort(c->list, c->n, sizeof(*c->list), by_rank);
	return err;
}

/* ---- What is said of them ---- */

double changes_ratio(const struct changes *c)
{
	return c && !c->unit.share && c->all.before > 0 && c->all.after > 0
		       ? c->all.after / c->all.before
		       : 1;
}

int changes_real(const struct changes *c, const struct stackset *ss, uint8_t **ret)
{
	*ret = calloc(ss->frames.n + 1, 1);
	for (size_t i = 0; *ret && i < c->n; i++)
		(*ret)[c->list[i].frame] = c->list[i].self.real || c->list[i].total.real;
	return *ret ? 0 : -ENOMEM;
}

size_t changes_explain(const struct changes *c, double *ret_part)
{
	double all = c->all.after - c->all.before, sum = 0;
	size_t with_self = 0, ret = 0;

	*ret_part = 0;
	for (size_t i = 0; i < c->n; i++)
		with_self += c->list[i].self.before > 0 || c->list[i].self.after > 0;
	if (with_self < 2 || all == 0)
		return 0;
	for (size_t i = 0; i < c->n && c->list[i].self.real && sum / all < 0.9; i++) {
		double change = c->list[i].self.after - c->list[i].self.before;

		if ((change > 0) != (all > 0))
			continue;
		sum += change;
		ret++;
	}
	*ret_part = sum / all;
	return ret;
}

static int by_size_at(const void *a, const void *b)
{
	return by_size(*(const struct function_change *const *)a,
		       *(const struct function_change *const *)b);
}

int changes_by_size(const struct changes *c, const struct function_change ***ret)
{
	*ret = calloc(c->n + 1, sizeof(const struct function_change *));
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		(*ret)[i] = &c->list[i];
	if (c->n)
		qsort(*ret, c->n, sizeof(const struct function_change *), by_size_at);
	return 0;
}
