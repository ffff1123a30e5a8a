/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>

#include "kern/caps.h"
#include "kern/collector_internal.h"

int collector_fail(struct collector_error *err, enum collector_trouble trouble, const char *fmt,
		   ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	err->trouble = trouble;
	return -1;
}

int collector_forbid(struct collector_error *err, const char *refused)
{
	caps_explain(err->text, sizeof(err->text), refused);
	err->trouble = COLLECTOR_FORBIDDEN;
	return -1;
}
