/* SPDX-License-Identifier: BSD-2-Clause */
/* One POST over HTTP/1.1 or, as gRPC wants it, HTTP/2 with trailers; by libcurl. Used by one thread. */
#ifndef SFBPF_AGENT_HTTP_H
#define SFBPF_AGENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"

struct http;

struct http_request {
	const char *url;
	const char *const *headers;	/* "Name: value", NULL-terminated */
	const void *data;
	size_t len;
	bool grpc;
};

struct http_reply {
	bool answered;		/* there is a status */
	bool sent;		/* the request left as a whole, so the server may have taken it */
	long status;		/* HTTP's */
	int grpc_status;	/* -1: none came */
	double retry_after_s;	/* < 0: not said */
	char body[4096];	/* its beginning */
	size_t body_len;
	char error[256];	/* for people; what the server says of it, or curl */
	double seconds;
};

/* stop: checked while a request runs; it is then given up. NULL: out of memory. */
struct http *http_new(bool (*stop)(void *ctx), void *ctx);
void http_free(struct http *h);
/* cfg: deadlines, certificates. Always fills in *ret. */
void http_post(struct http *h, const struct agent_config *cfg, const struct http_request *req, struct http_reply *ret);

#endif
