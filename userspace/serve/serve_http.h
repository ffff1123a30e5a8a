/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP for `serve`: who may ask, and what is sent. GET and HEAD only. No answer depends on a path:
 * the address selects one of a few pages, and the query chooses among windows by time and name.
 */
#ifndef SFBPF_SERVE_SERVE_HTTP_H
#define SFBPF_SERVE_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct serve_query; /* the parameters of a request */

/* The value of a parameter. NULL: it is not there. */
const char *serve_parameter(const struct serve_query *q, const char *name);

struct serve_answer {
	FILE *body;
	const char *type;  /* Content-Type; NULL: plain text */
	const char *file;  /* the name to save it under; NULL: it is shown */
	const char *nonce; /* nonce of the page's scripts; NULL: it has none, or its own policy */
};

/* Writes the page of that name to a->body. Returns the HTTP status. */
typedef int serve_page(void *ctx, const char *name, const struct serve_query *q,
		       struct serve_answer *a);

struct serve_config {
	int fd;		   /* a listening socket */
	const char *token; /* NULL: everybody may ask who can reach the address */
	/* Our host. Requests for others are refused without a token, as after DNS rebinding */
	const char *host;
	serve_page *page;
	void *ctx;
};

struct serve_http;

struct serve_http *serve_http_start(const struct serve_config *config); /* NULL: it failed */
/* Once a second: closes the connections whose time is over. */
void serve_http_look(struct serve_http *h);
void serve_http_stop(struct serve_http *h);

#endif
