/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths tell more than profiles need: users' names, projects, customers. */
#ifndef SFBPF_BASE_REDACT_H
#define SFBPF_BASE_REDACT_H

#include <stddef.h>

enum redact {
	REDACT_NONE,
	REDACT_HOME,	/* what is below /home, /root, /Users, /run/user: "~/" and the file's name */
	REDACT_ALL,	/* every absolute path: the file's name */
};

/* text into dst with the paths in it shortened; NUL-terminated, cut to cap. */
void redact_paths(enum redact which, const char *text, char *dst, size_t cap);

#endif
