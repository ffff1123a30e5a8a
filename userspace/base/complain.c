/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/complain.h"

#include <stdarg.h>
#include <stdio.h>

static const char *tool_name;

void complain_as(const char *tool)
{
	tool_name = tool;
}

int complain(int code, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "sfbpf%s%s: ", tool_name ? " " : "", tool_name ? tool_name : "");
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}
