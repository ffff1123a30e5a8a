/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/headers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void headers_add(struct header_list *l, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(l->text + l->used, sizeof(l->text) - l->used, fmt, args);
	va_end(args);
	if (l->n >= HEADERS_MAX || len < 0 || (size_t)len >= sizeof(l->text) - l->used)
		return;
	l->at[l->n++] = l->text + l->used;
	l->at[l->n] = NULL;
	l->used += (size_t)len + 1;
}

/* Calls fn for each line. False: the file cannot be read. */
static bool each_line(const char *path, void (*fn)(struct header_list *l, const char *line),
		      struct header_list *l)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\r\n")] = 0;
		if (*line && *line != '#')
			fn(l, line);
	}
	fclose(f);
	return true;
}

static void plain(struct header_list *l, const char *line)
{
	if (strchr(line, ':'))
		headers_add(l, "%s", line);
}

static void token(struct header_list *l, const char *line)
{
	headers_add(l, "Authorization: Bearer %s", line);
}

bool headers_read(struct header_list *l, const char *path)
{
	return each_line(path, plain, l);
}

bool headers_read_token(struct header_list *l, const char *path)
{
	return each_line(path, token, l);
}
