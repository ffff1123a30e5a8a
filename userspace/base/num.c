/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/num.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* Reads the digits at *s and moves past them. -EINVAL: no digits, or more than 64 bits. */
static int take_digits(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -EINVAL;
	}
	*s = p;
	*ret = v;
	return 0;
}

int num_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;

	if (take_digits(&s, &v) || *s || v < min || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* Reads the unit at *s and moves past it. 0: not a unit. */
static uint64_t take_unit(const char **s)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ms", NUM_MS },	   { "us", NUM_US },	  { "s", NUM_S },
		      { "m", 60 * NUM_S }, { "h", 3600 * NUM_S }, { "d", 24 * 3600 * NUM_S } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t len = strlen(units[i].name);

		if (!strncmp(*s, units[i].name, len)) {
			*s += len;
			return units[i].ns;
		}
	}
	return 0;
}

/* One term of a duration: digits, a fraction, a unit. none: the unit if there is none. */
static int take_term(const char **s, uint64_t none, uint64_t *unit, uint64_t *ns)
{
	uint64_t whole, frac = 0, scale = 1;

	if (take_digits(s, &whole))
		return -EINVAL;
	if (**s == '.') {
		const char *from = ++*s;

		if (take_digits(s, &frac) || *s - from > 9)
			return -EINVAL;
		for (; from < *s; from++)
			scale *= 10;
	}
	*unit = **s ? take_unit(s) : none;
	if (!*unit || __builtin_mul_overflow(whole, *unit, ns))
		return -EINVAL;
	frac = (uint64_t)((unsigned __int128)frac * *unit / scale);
	return __builtin_add_overflow(*ns, frac, ns) ? -EINVAL : 0;
}

int num_duration(const char *s, uint64_t unit_ns, uint64_t *ret_ns)
{
	uint64_t sum, ns, unit, last;

	if (take_term(&s, unit_ns, &last, &sum))
		return -EINVAL;
	for (; *s; last = unit)
		if (take_term(&s, 0, &unit, &ns) || unit >= last ||
		    __builtin_add_overflow(sum, ns, &sum))
			return -EINVAL;
	*ret_ns = sum;
	return 0;
}

int num_size(const char *s, uint64_t *ret)
{
	unsigned int shift = 0;
	uint64_t v;

	if (take_digits(&s, &v))
		return -EINVAL;
	switch (*s) {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	case 0:
		break;
	default:
		return -EINVAL;
	}
	if ((*s && s[1]) || v > UINT64_MAX >> shift)
		return -EINVAL;
	*ret = v << shift;
	return 0;
}

static int compare_u32(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int num_ids(const char *s, uint32_t **ret, size_t *ret_n)
{
	uint32_t *ids = NULL;
	size_t n = 0, cap = 0, out = 0;
	uint64_t v;
	int err;

	for (;; s++) {
		err = take_digits(&s, &v);
		if (!err && (v < 1 || v > INT32_MAX))
			err = -EINVAL;
		if (!err)
			err = vec_reserve(&ids, &cap, n + 1, sizeof(*ids));
		if (err)
			goto fail;
		ids[n++] = (uint32_t)v;
		if (*s != ',')
			break;
	}
	err = -EINVAL;
	if (*s)
		goto fail;
	qsort(ids, n, sizeof(*ids), compare_u32);
	for (size_t i = 0; i < n; i++)
		if (!i || ids[i] != ids[out - 1])
			ids[out++] = ids[i];
	*ret = ids;
	*ret_n = out;
	return 0;
fail:
	free(ids);
	return err;
}

int num_cpus(const char *s, struct num_cpus *ret)
{
	struct num_cpus c = { 0 };
	uint64_t first, last;

	for (;; s++) {
		if (take_digits(&s, &first))
			return -EINVAL;
		last = first;
		if (*s == '-') {
			s++;
			if (take_digits(&s, &last))
				return -EINVAL;
		}
		if (last < first || last >= NUM_MAX_CPUS)
			return -EINVAL;
		for (uint64_t i = first; i <= last; i++)
			c.bits[i / 64] |= 1ull << i % 64;
		if (*s != ',')
			break;
	}
	if (*s && strcmp(s, "\n") != 0)
		return -EINVAL;
	for (uint32_t i = 0; i < NUM_MAX_CPUS; i++) {
		if (num_cpus_has(&c, i)) {
			c.count++;
			c.last = i;
		}
	}
	*ret = c;
	return 0;
}
