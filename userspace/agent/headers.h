/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of a request. Secrets among them are in files, which are read for each request
 * because tokens are renewed.
 */
#ifndef SFBPF_AGENT_HEADERS_H
#define SFBPF_AGENT_HEADERS_H

#include <stdbool.h>
#include <stddef.h>

#define HEADERS_MAX   64
#define HEADERS_BYTES 8192

struct header_list { /* zeroed: empty */
	const char *at[HEADERS_MAX + 1];
	size_t n, used;
	char text[HEADERS_BYTES];
};

/* A header that does not fit is left out. */
void headers_add(struct header_list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A file of "Name: value" lines. False: it cannot be read (errno). */
bool headers_read(struct header_list *l, const char *path);
/*
 * A file with a token, which is sent as "Authorization: Bearer". False: it cannot be read (errno).
 */
bool headers_read_token(struct header_list *l, const char *path);

#endif
