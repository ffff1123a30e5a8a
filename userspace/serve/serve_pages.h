/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pages of `serve`:
 *
 *   /         the page, serve.html
 *   /summary  services, hosts and the time line, as JSON
 *   /flame    the flame graph, of one range or (before_since, before_until) the change of two
 *   /pprof    the stacks as pprof
 *
 * Parameters: since, until (milliseconds of Unix time; the last hour), service, host, off_cpu=1.
 * 202 is the answer while windows of the range are still to be read: it says how many, and the
 * request is to be repeated.
 */
#ifndef SFBPF_SERVE_SERVE_PAGES_H
#define SFBPF_SERVE_SERVE_PAGES_H

#include <stdint.h>

#include "serve/serve_http.h"
#include "serve/serve_store.h"

struct serve_pages {
	struct store *store;
	const char *title; /* the directory or the URL */
	uint64_t asked_ns; /* CLOCK_MONOTONIC of the last question; atomic */
};

serve_page serve_pages_answer; /* ctx: struct serve_pages */
/* Reads the windows of the last hour. False: there are more to read. */
bool serve_pages_prepare(struct serve_pages *p, uint64_t patience_ns);

#endif
