/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/changes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
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

static void add_value(struct moments *m, enum stack_side side, uint64_t value, double scale,
		      bool blocked)
{
	double scaled = (double)value * scale;

	m->sum[side] += scaled;
	m->around[side] += scaled * scaled; /* until end_sums */
	m->counted[side] += blocked ? 0 : scaled * scale;
	m->raw += (double)value;
}

/* The squares of the values become those of their distances from the mean. */
static void end_sums(struct moments *m, const size_t n[STACK_SIDES])
{
	for (int side = 0; side < STACK_SIDES; side++)
		m->around[side] =
			fmax(m->around[side] - m->sum[side] * m->sum[side] / (double)n[side], 0);
}

/* Fills ret, by frame; the last one is that of all functions together. */
static void sum_runs(const struct changes *c, const struct verdict_side *sides, size_t frames,
		     struct function_moments *ret, struct statistics *st)
{
	size_t of_side[STACK_SIDES] = { 0 };
	double raw = 0;

	for (size_t r = 0; r < c->nruns; r++) {
		const struct change_run *run = &c->runs[r];
		enum stack_side side = run->side;
		const struct verdict_run *v = &sides[side].runs[of_side[side]++];
		double scale = verdict_scale(&sides[side], v, &c->unit);

		for (size_t i = 0; i < run->n; i++) {
			struct function_moments *m = &ret[run->parts[i].frame];

			add_value(&m->self, side, run->parts[i].self, scale, v->blocked);
			add_value(&m->total, side, run->parts[i].total, scale, v->blocked);
		}
		add_value(&ret[frames].total, side, v->value, scale, v->blocked);
		st->count_scale[side] += v->blocked ? 0 : scale * scale / (double)sides[side].n;
		raw += (double)v->value;
	}
	for (size_t i = 0; i <= frames; i++) {
		end_sums(&ret[i].self, st->n);
		end_sums(&ret[i].total, st->n);
	}
	st->least = sides[0].runs[0].blocked ? CHANGES_BLOCKED * raw : CHANGES_SAMPLES;
}

/* The spread of runs beyond that of counts, in which large functions weigh most. */
static double shared_spread(const struct statistics *st, const struct function_moments *f,
			    size_t frames)
{
	double beyond = 0, squares = 0;

	for (size_t i = 0; i < frames; i++) {
		const struct moments *m = &f[i].self;

		for (int side = 0; side < STACK_SIDES; side++) {
			double n = (double)st->n[side];

			beyond += m->around[side] - (n - 1) * m->counted[side] / n;
			squares += m->sum[side] * m->sum[side] / n / n * (n - 1);
		}
	}
	return beyond > 0 && squares > 0 ? beyond / squares : 0;
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

/* The row of a function; what moved is not tested. */
static struct function_change change_of(const struct statistics *st, uint32_t frame,
					const struct function_moments *f)
{
	struct function_change ret = { .frame = frame,
				       .note = f->note,
				       .other = f->other,
				       .self = moments_value(st, &f->self),
				       .total = moments_value(st, &f->total) };

	if (f->moved_self)
		ret.self.p = 2;
	if (f->moved_total)
		ret.total.p = 2;
	return ret;
}

int changes_make(struct changes *c, const struct stackset *ss,
		 const struct verdict_side sides[STACK_SIDES], const struct verdict_unit *unit)
{
	const size_t frames = ss->frames.n;
	struct function_moments *f = calloc(frames + 1, sizeof(*f));
	struct statistics st = { .n = { sides[0].n, sides[1].n },
				 .freedom = sides[0].n + sides[1].n - STACK_SIDES };
	int err = -ENOMEM;

	c->unit = *unit;
	c->list = calloc(frames + 1, sizeof(*c->list));
	if (f && c->list) {
		sum_runs(c, sides, frames, f, &st);
		st.spread = st.freedom ? shared_spread(&st, f, frames)
				       : verdict_spread(&sides[0]) * verdict_spread(&sides[0]);
		err = moves_find(ss, &st, f);
	}
	if (!err) {
		for (size_t i = 0; i < frames; i++)
			if (f[i].total.raw > 0 && !f[i].replaced) /* others: of stacks left out */
				c->list[c->n++] = change_of(&st, (uint32_t)i, &f[i]);
		c->all = moments_value(&st, &f[frames].total);
		err = mark_real(c);
	}
	free(f);
	if (!err && c->n)
		qsort(c->list, c->n, sizeof(*c->list), by_rank);
	return err;
}

/* ---- What is said of them ---- */

char *change_note_text(const struct stackset *ss, const struct function_change *c,
		       char buf[CHANGE_NOTE_TEXT])
{
	const char *name = c->other < ss->frames.n ? stackset_frame_name(ss, c->other) : "";

	*buf = 0;
	switch (c->note) {
	case CHANGE_ONLY:
		break;
	case CHANGE_RENAMED:
		snprintf(buf, CHANGE_NOTE_TEXT, "renamed from %s", name);
		break;
	case CHANGE_INLINED:
		snprintf(buf, CHANGE_NOTE_TEXT, "inlined into %s", name);
		break;
	case CHANGE_OUTLINED:
		snprintf(buf, CHANGE_NOTE_TEXT, "no longer inlined into %s", name);
		break;
	case CHANGE_HOST:
		snprintf(buf, CHANGE_NOTE_TEXT, "with %s", name);
		break;
	case CHANGE_MOVED:
		snprintf(buf, CHANGE_NOTE_TEXT, "moved below %s", name);
		break;
	}
	return buf;
}

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
