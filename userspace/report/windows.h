/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The windows that `sfbpf agent --protocol file` wrote to a directory: their names, and a choice
 * among them. They are in folders of a day (UTC), "2026-01-31", or in the directory itself, where
 * older agents put them.
 */
#ifndef SFBPF_REPORT_WINDOWS_H
#define SFBPF_REPORT_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct window_choice {
	uint64_t since_ns, until_ns; /* Unix time of the start; 0: no limit */
	const char *host;	     /* NULL: all */
	bool off_cpu;		     /* windows of blocked time instead of CPU time */
};

struct window_name {
	uint64_t start_ns;
	char host[256];
	bool off_cpu;
};

/* False: the name is not that of a window that can be read again. */
bool window_name_parse(const char *name, struct window_name *ret);
/* Whether a file of that name is such a window, and chosen. */
bool window_chosen(const struct window_choice *c, const char *name, struct window_name *ret);
/*
 * Calls fn for each chosen window in a directory, in no order, until it returns nonzero; folder is
 * the descriptor of the directory that name is in. Returns what fn returned last, 0 without a call,
 * or -errno if the directory itself cannot be read.
 */
typedef int window_fn(void *ctx, int folder, const char *name, const struct window_name *w);
int windows_each(int dir, const struct window_choice *c, window_fn *fn, void *ctx);
/* Opens a window for reading. NULL: it is a link, or not a regular file. */
FILE *window_open_file(int folder, const char *name);
/*
 * A time: "90m" before now_ns, or "2026-01-31", "2026-01-31T12:00[:30]" in local time. 0 or
 * -EINVAL.
 */
int window_time(const char *text, uint64_t now_ns, uint64_t *ret_ns);

#endif
