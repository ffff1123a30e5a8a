/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/user_account.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define RANGES_MOST 1024
#define FILE_MOST   (256u << 10)

static struct user_range ranges[RANGES_MOST];
static size_t nranges;
static pthread_once_t once = PTHREAD_ONCE_INIT;

size_t user_ranges_parse(const char *text, struct user_range *ret, size_t most)
{
	size_t n = 0;

	while (*text && n < most) {
		size_t len = strcspn(text, "\n");
		uint32_t first, count;

		/* Root's own ids are not in a range. */
		if (sscanf(text, "%*[^:\n]:%u:%u", &first, &count) == 2 && first && count)
			ret[n++] = (struct user_range){ first, count };
		text += len + (text[len] == '\n');
	}
	return n;
}

static void read_ranges(void)
{
	FILE *f = fopen("/etc/subuid", "re");
	char *text = f ? malloc(FILE_MOST + 1) : NULL;

	if (text) {
		text[fread(text, 1, FILE_MOST, f)] = 0;
		nranges = user_ranges_parse(text, ranges, RANGES_MOST);
	}
	free(text);
	if (f)
		fclose(f);
}

size_t user_ranges(const struct user_range **ret)
{
	pthread_once(&once, read_ranges);
	*ret = ranges;
	return nranges;
}

void user_ranges_use(const char *text)
{
	pthread_once(&once, read_ranges);
	nranges = user_ranges_parse(text, ranges, RANGES_MOST);
}

uint32_t user_account(uint32_t uid)
{
	pthread_once(&once, read_ranges);
	for (size_t i = 0; i < nranges && uid; i++)
		if (uid - ranges[i].first < ranges[i].count)
			return ranges[i].first;
	return uid;
}
