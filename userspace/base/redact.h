/* SPDX-License-Identifier: BSD-2-Clause */
/* Shortens paths, which reveal more than a profile needs: names of users, projects, customers. */
#ifndef SFBPF_BASE_REDACT_H
#define SFBPF_BASE_REDACT_H

#include <stddef.h>

enum redact {
	REDACT_NONE,
	REDACT_HOME, /* paths below /home, /root, /Users, /run/user: "~/" and the file name */
	REDACT_ALL,  /* every absolute path: the file name */
};

/* Copies text to dst with its paths shortened; NUL-terminated, cut to cap. */
void redact_paths(enum redact which, const char *text, char *dst, size_t cap);

#endif
