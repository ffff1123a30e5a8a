/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delivers one body to its receiver and interprets the answer:
 *
 *   2xx; gRPC 0                                        accepted
 *   400 413 415 422 and other 4xx; gRPC 3 5 6 9 11 12  refused: dropped and counted
 *   401 403 404 407 3xx; gRPC 7 16                     wrong configuration: retried after retry-max
 *   408 429 5xx; gRPC 1 2 4 8 10 13 14 15; no answer   retried, after Retry-After if it is given
 */
#ifndef SFBPF_AGENT_DELIVER_H
#define SFBPF_AGENT_DELIVER_H

#include "agent/body.h"
#include "agent/http.h"

enum verdict {
	DELIVER_OK,
	DELIVER_REFUSED,
	DELIVER_CONFIG,
	DELIVER_RETRY,
	DELIVER_UNSURE,
	DELIVER_OTHER_PROTOCOL
};

#define DELIVER_CODE 20

struct delivery {
	enum verdict verdict;
	/* "200": of HTTP; "grpc-0": of gRPC; "written", "not_written": a file; "none": no answer */
	char code[DELIVER_CODE];
	double retry_after_s; /* < 0: not given */
	/* Profiles that the server rejected from an accepted body */
	uint64_t rejected;
	bool poison; /* retried, but the body itself may cause the error */
	double seconds;
	char error[512];
};

void deliver(struct http *h, const struct agent_config *cfg, const char *host, const struct body *b,
	     struct delivery *ret);
/* The URL for a body of that kind. 0, or -EINVAL: no valid URL, or too long. */
int deliver_url(const struct agent_config *cfg, const struct body *b, char *ret, size_t cap);

#endif
