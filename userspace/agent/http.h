/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One POST over HTTP/1.1, or over HTTP/2 with trailers for gRPC, or one request whose answer is
 * wanted, with libcurl. For one thread only.
 */
#ifndef SFBPF_AGENT_HTTP_H
#define SFBPF_AGENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"

struct http;

struct http_request {
	const char *url;
	const char *const *headers; /* "Name: value", NULL-terminated */
	const void *data;
	size_t len;
	bool grpc;
};

/* https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
enum grpc_status {
	GRPC_OK,
	GRPC_CANCELLED,
	GRPC_UNKNOWN,
	GRPC_INVALID_ARGUMENT,
	GRPC_DEADLINE_EXCEEDED,
	GRPC_NOT_FOUND,
	GRPC_ALREADY_EXISTS,
	GRPC_PERMISSION_DENIED,
	GRPC_RESOURCE_EXHAUSTED,
	GRPC_FAILED_PRECONDITION,
	GRPC_ABORTED,
	GRPC_OUT_OF_RANGE,
	GRPC_UNIMPLEMENTED,
	GRPC_INTERNAL,
	GRPC_UNAVAILABLE,
	GRPC_DATA_LOSS,
	GRPC_UNAUTHENTICATED
};

struct http_reply {
	bool answered;	      /* a status was received */
	bool sent;	      /* the whole request was sent, so the server may have accepted it */
	long status;	      /* HTTP status */
	int grpc_status;      /* enum grpc_status, or another number; -1: not received */
	double retry_after_s; /* < 0: not given */
	char body[4096];      /* its first bytes */
	size_t body_len;
	char error[512]; /* a message for the user, from the server or libcurl */
	double seconds;
};

/*
 * stop is called during a request and aborts it by returning true; it may be NULL. NULL: out of
 * memory.
 */
struct http *http_new(bool (*stop)(void *ctx), void *ctx);
void http_free(struct http *h);
/* cfg: timeouts and certificates. Always sets *ret. */
void http_post(struct http *h, const struct agent_config *cfg, const struct http_request *req,
	       struct http_reply *ret);

struct http_get {
	const char *url, *token,
		*ca_file; /* token NULL or "": none; ca_file NULL: those of the system */
	bool insecure;
	bool proxy; /* one that the environment names, but never for this machine */
	uint64_t timeout_ns;
	size_t most;		    /* a longer body is an error */
	const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
	const char *post;	    /* a text to send; NULL: GET */
	/*
	 * Takes the body of an answer with status 200, piece by piece, in place of
	 * http_answer.data. False ends the request.
	 */
	bool (*take)(void *ctx, const char *data, size_t len);
	void *ctx;
};

struct http_answer {
	long status;
	char *data; /* malloc'ed; NULL: empty */
	size_t len;
	char error[512];
};

/* 0, or -EIO with a message: there is no whole answer. Always sets *ret. */
int http_get(struct http *h, const struct http_get *get, struct http_answer *ret);

#endif
