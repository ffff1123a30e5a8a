/* SPDX-License-Identifier: BSD-2-Clause */
#include "out/moments.h"

#include <math.h>

#include "out/verdict.h"

void moments_add(struct moments *to, const struct moments *m)
{
	for (int side = 0; side < STACK_SIDES; side++) {
		to->sum[side] += m->sum[side];
		to->around[side] += m->around[side];
		to->counted[side] += m->counted[side];
	}
	to->raw += m->raw;
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

struct change_value moments_value(const struct statistics *st, const struct moments *m)
{
	double mean[STACK_SIDES], counted = 0, expected = 0, around = 0, parts = 0, variance;
	size_t freedom = st->freedom ? st->freedom + MOMENTS_PRIOR : 0;
	struct change_value ret = { .p = 2 };

	for (int side = 0; side < STACK_SIDES; side++) {
		double n = (double)st->n[side];

		mean[side] = isfinite(m->sum[side]) ? m->sum[side] / n : 0;
		/* Half a sample more: none may be chance, too. */
		counted += (m->counted[side] + st->count_scale[side] / 2) / (n * n);
		expected += st->spread * mean[side] * mean[side] / n;
		around += m->around[side];
		parts += 1 / n;
	}
	variance = expected + counted;
	if (st->freedom)
		variance = fmax(counted,
				(MOMENTS_PRIOR * variance + around * parts) / (double)freedom);
	ret.before = mean[STACK_BEFORE];
	ret.after = mean[STACK_AFTER];
	ret.interval = verdict_t(freedom) * sqrt(variance);
	if (m->raw >= st->least && variance > 0 && isfinite(variance))
		ret.p = p_of((ret.after - ret.before) / sqrt(variance), freedom);
	return ret;
}
