/* SPDX-License-Identifier: BSD-2-Clause */
/* Choosing among the windows that `sfbpf agent --protocol file` wrote to a directory. */
#ifndef SFBPF_TOOLS_WINDOWS_H
#define SFBPF_TOOLS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

struct window_choice {
	uint64_t since_ns, until_ns; /* Unix time of the start; 0: no limit */
	const char *host;	     /* as in the names of the files; NULL: all */
	bool off_cpu;		     /* those of blocked time instead of CPU time */
};

/* Whether a file of that name is such a window, and chosen. */
bool window_chosen(const struct window_choice *c, const char *name);
/*
 * A time: "90m" before now_ns, or "2026-01-31", "2026-01-31T12:00[:30]" in local time. 0 or
 * -EINVAL.
 */
int window_time(const char *text, uint64_t now_ns, uint64_t *ret_ns);

#endif
