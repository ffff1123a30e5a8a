/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/libbpf_log.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>

static bool shown;
static _Thread_local struct refusal *into;

static ssize_t take(void *cookie, const char *text, size_t len)
{
	refusal_take(cookie, text, len);
	return (ssize_t)len;
}

/* Writes through a stream, because the verifier's log in one message may have 16 MB. */
static void keep(const char *fmt, va_list args)
{
	const cookie_io_functions_t functions = { .write = take };
	FILE *f = fopencookie(into, "w", functions);

	if (!f)
		return;
	vfprintf(f, fmt, args);
	fclose(f);
}

static int print(enum libbpf_print_level level, const char *fmt, va_list args)
{
	va_list again;

	if (level == LIBBPF_WARN && into) {
		va_copy(again, args);
		keep(fmt, again);
		va_end(again);
	}
	return shown && level != LIBBPF_DEBUG ? vfprintf(stderr, fmt, args) : 0;
}

void libbpf_log_show(bool show)
{
	shown = show;
	libbpf_set_print(print);
}

void libbpf_log_into(struct refusal *r)
{
	into = r;
	if (r)
		*r = (struct refusal){ 0 };
}
