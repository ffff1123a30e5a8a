/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/windows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/num.h"

#define ID_DIGITS 8

/* The suffix of a window that can be read again, or NULL. */
static bool known_suffix(const char *suffix, bool off_cpu)
{
	static const char mark[] = ".off_cpu";
	bool marked = !strncmp(suffix, mark, strlen(mark));

	if (marked)
		suffix += strlen(mark);
	return marked == off_cpu && (!strcmp(suffix, ".pb.gz") || !strcmp(suffix, ".folded") ||
				     !strcmp(suffix, ".json"));
}

/* Names are "sfbpf-HOST-MILLISECONDS-ID.SUFFIX" (agent/window_file.c). HOST may contain '-'. */
bool window_chosen(const struct window_choice *c, const char *name)
{
	const char *id = strrchr(name, '-'), *ms = id, *host = name + strlen("sfbpf-");
	char digits[24];
	uint64_t start;

	if (strncmp(name, "sfbpf-", strlen("sfbpf-")) || !id ||
	    strspn(id + 1, "0123456789abcdef") != ID_DIGITS ||
	    !known_suffix(id + 1 + ID_DIGITS, c->off_cpu))
		return false;
	do {
		if (ms-- <= host)
			return false;
	} while (*ms != '-');
	if (id - ms - 1 >= (int)sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)(id - ms - 1), ms + 1);
	if (num_u64(digits, 0, UINT64_MAX / NUM_MS, &start))
		return false;
	start *= NUM_MS;
	if (c->host && (strlen(c->host) != (size_t)(ms - host) ||
			strncmp(host, c->host, (size_t)(ms - host)) != 0))
		return false;
	return start >= c->since_ns && (!c->until_ns || start < c->until_ns);
}

static int local_time(const char *text, uint64_t *ret_ns)
{
	static const char *const forms[] = { "%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S" };

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = { .tm_isdst = -1 };
		const char *end = strptime(text, forms[i], &tm);
		time_t at = end && !*end ? mktime(&tm) : -1;

		if (at < 0)
			continue;
		*ret_ns = (uint64_t)at * NUM_S;
		return 0;
	}
	return -EINVAL;
}

int window_time(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t ago;

	if (num_duration(text, NUM_S, &ago))
		return local_time(text, ret_ns);
	*ret_ns = ago < now_ns ? now_ns - ago : 0;
	return 0;
}
