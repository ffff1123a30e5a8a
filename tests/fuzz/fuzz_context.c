/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: what a process says about itself in its context. Built by scripts/fuzz.sh.
 *
 * Promises: all texts are clean and end within their room.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* It is part of the agent, which targets are built without. */
#include "agent/context.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text)
{
	char again[TARGET_TEXT];
	size_t len = strnlen(text, TARGET_TEXT);

	if (len >= TARGET_TEXT)
		abort();
	text_clean(again, sizeof(again), text, len, 0);
	if (strcmp(again, text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target t;
	bool threads;

	if (!context_parse(data, size, &t, &threads))
		return 0;
	check(t.service);
	check(t.space);
	check(t.version);
	check(t.instance);
	check(t.environment);
	return 0;
}
