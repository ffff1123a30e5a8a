/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "out/out.h"

#define SEEN 1.645 /* 95 % of a normal distribution are below it */

struct fit {
	double mean[2];	 /* mean logarithm of the values of a side */
	double error;	 /* standard error of the difference of the means */
	double interval; /* half of the 95 % interval */
};

bool verdict_add(struct verdict_side *side, const struct stacks_meta *meta, uint64_t value)
{
	const struct out_meta event = { .event = meta->event, .hz = meta->hz };
	bool blocked = !strcmp(meta->unit, "microseconds");

	if (side->n == VERDICT_RUNS)
		return false;
	side->runs[side->n++] = (struct verdict_run){
		.value = value,
		.hz = !blocked && out_is_clock(&event) ? meta->hz : 0,
		.duration_s = meta->duration_s,
		.blocked = blocked,
		.wall = !strcmp(meta->event, "wall-clock"),
		.command = *meta->command,
	};
	return true;
}

double verdict_t(size_t freedom)
{
	static const double of[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
				     2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
				     2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
				     2.060,  2.056, 2.052, 2.048, 2.045, 2.042 };

	if (!freedom)
		return 1.96; /* the variance is not that of the runs */
	return freedom <= sizeof(of) / sizeof(of[0]) ? of[freedom - 1] : 2;
}

double verdict_spread(const struct verdict_side *side)
{
	return side->runs[0].blocked ? VERDICT_SPREAD_BLOCKED : VERDICT_SPREAD;
}

double verdict_scale(const struct verdict_side *side, const struct verdict_run *r,
		     const struct verdict_unit *u)
{
	double scale = 1;

	if (u->share)
		return r->value ? 1 / (double)r->value : 0;
	if (u->seconds)
		scale = r->blocked ? 1e-6 : 1 / r->hz;
	if (u->per == VERDICT_PER_SECOND)
		scale /= r->duration_s;
	if (u->per == VERDICT_PER_WORK)
		scale *= (double)side->n / side->work;
	return scale;
}

/* A value of 0 has no logarithm, and counts as half a sample. */
static double log_value(const struct verdict_side *side, size_t i, const struct verdict_unit *u)
{
	const struct verdict_run *r = &side->runs[i];

	return log((r->value ? (double)r->value : 0.5) * verdict_scale(side, r, u));
}

/* The variance of the logarithm of a value that is a count. */
static double count_variance(const struct verdict_run *r)
{
	return r->blocked ? 0 : 1 / ((double)r->value + 0.5);
}

static struct fit fit(const struct verdict_side *const sides[2], const struct verdict_unit *u)
{
	const double n[2] = { (double)sides[0]->n, (double)sides[1]->n };
	const size_t freedom = sides[0]->n + sides[1]->n - 2;
	double counted = 0, spread = verdict_spread(sides[0]), sum = 0, variance;
	struct fit ret = { .error = 0 };

	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < sides[s]->n; i++) {
			ret.mean[s] += log_value(sides[s], i, u) / n[s];
			counted += count_variance(&sides[s]->runs[i]) / (n[0] + n[1]);
		}
	}
	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < sides[s]->n; i++) {
			double off = log_value(sides[s], i, u) - ret.mean[s];

			sum += off * off;
		}
	}
	/* Runs cannot differ less than their counts let them. */
	variance = freedom ? fmax(sum / (double)freedom, counted) : counted + spread * spread;
	ret.error = sqrt(variance * (1 / n[0] + 1 / n[1]));
	ret.interval = verdict_t(freedom) * ret.error;
	return ret;
}

static bool all_have(const struct verdict_side *const sides[2],
		     bool (*has)(const struct verdict_run *r))
{
	for (int s = 0; s < 2; s++)
		for (size_t i = 0; i < sides[s]->n; i++)
			if (!has(&sides[s]->runs[i]))
				return false;
	return true;
}

static bool has_duration(const struct verdict_run *r)
{
	return r->duration_s > 0;
}

static bool has_seconds(const struct verdict_run *r)
{
	return r->hz > 0 || r->blocked;
}

static bool is_empty(const struct verdict_run *r)
{
	return !r->value;
}

static bool is_no_command(const struct verdict_run *r)
{
	return !r->command;
}

/* 0 rather than what would be printed as "-0.0" */
static double percent(double log_ratio)
{
	double ret = 100 * (exp(log_ratio) - 1);

	return fabs(ret) < 0.05 ? 0 : ret;
}

static int unit_of(const struct verdict_side *const sides[2], enum verdict_per per,
		   struct verdict_unit *ret)
{
	const struct verdict_run *first = &sides[0]->runs[0];

	*ret = (struct verdict_unit){ .per = per,
				      .seconds = all_have(sides, has_seconds),
				      .what = first->wall      ? "wall-clock time"
					      : first->blocked ? "blocked time"
							       : "CPU time" };
	if (per == VERDICT_PER_DEFAULT)
		ret->per = all_have(sides, has_duration) && all_have(sides, is_no_command)
				   ? VERDICT_PER_SECOND
				   : VERDICT_PER_RUN;
	return ret->per == VERDICT_PER_SECOND && !all_have(sides, has_duration) ? -EINVAL : 0;
}

int verdict_make(const struct verdict_side *before, const struct verdict_side *after,
		 enum verdict_per per, struct verdict *ret)
{
	const struct verdict_side *const sides[2] = { before, after };
	int err;
	struct fit f;

	*ret = (struct verdict){ .empty = all_have(sides, is_empty) };
	err = unit_of(sides, per, &ret->unit);
	if (err || ret->empty)
		return err;
	f = fit(sides, &ret->unit);
	ret->before = exp(f.mean[0]);
	ret->after = exp(f.mean[1]);
	ret->log_change = f.mean[1] - f.mean[0];
	ret->log_interval = f.interval;
	ret->log_visible = f.interval + SEEN * f.error;
	ret->word = fabs(ret->log_change) <= f.interval ? VERDICT_SAME
		    : ret->log_change < 0		? VERDICT_FASTER
							: VERDICT_SLOWER;
	return 0;
}

/* "1.43 s -> 1.07 s of CPU time per second", "143 -> 107 samples" */
static void put_values(const struct verdict *v, char *buf, size_t cap)
{
	const char *per = v->unit.per == VERDICT_PER_SECOND ? " per second"
			  : v->unit.per == VERDICT_PER_WORK ? " per unit of work"
							    : "";

	if (v->unit.seconds)
		snprintf(buf, cap, "%.4g s -> %.4g s of %s%s", v->before, v->after, v->unit.what,
			 per);
	else
		snprintf(buf, cap, "%.*f -> %.*f samples%s", *per ? 3 : 0, v->before, *per ? 3 : 0,
			 v->after, per);
}

int verdict_text(const struct verdict *v, char *buf, size_t cap)
{
	static const char *const words[] = { "no difference", "faster", "slower" };
	char values[128];

	if (v->empty)
		return snprintf(buf, cap, "no difference: there are no samples");
	put_values(v, values, sizeof(values));
	return snprintf(buf, cap,
			"%s: %s (%+.1f %%, 95 %% interval %+.1f to %+.1f %%; "
			"a change of %.1f %% or more would have been seen)",
			words[v->word], values, percent(v->log_change),
			percent(v->log_change - v->log_interval),
			percent(v->log_change + v->log_interval), percent(v->log_visible));
}
