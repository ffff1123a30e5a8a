/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One body to its backend, and what the answer means. The rules:
 *
 *   2xx, gRPC 0                                             accepted
 *   400 413 415 422 and other 4xx; gRPC 3 5 6 9 11 12       the body is refused: dropped and counted
 *   401 403 404 407 3xx; gRPC 7 16                          the configuration is wrong: kept, retried slowly
 *   408 429 5xx; gRPC 1 2 4 8 10 13 14 15; no answer        retried, after what Retry-After says
 */
#ifndef SFBPF_AGENT_DELIVER_H
#define SFBPF_AGENT_DELIVER_H

#include "agent/body.h"
#include "agent/http.h"

enum verdict { DELIVER_OK, DELIVER_REFUSED, DELIVER_CONFIG, DELIVER_RETRY, DELIVER_UNSURE, DELIVER_OTHER_PROTOCOL };

struct delivery {
	enum verdict verdict;
	int status;		/* HTTP's or gRPC's; 0: no answer */
	double retry_after_s;	/* < 0: not said */
	uint64_t rejected;	/* of an accepted body: profiles that the server says it did not take */
	bool poison;		/* retried, but perhaps it is this body's fault */
	double seconds;
	char error[256];
};

void deliver(struct http *h, const struct agent_config *cfg, const char *host, const struct body *b, struct delivery *ret);
/* Writes data into dir under a name made of host, time and id: a repetition makes no second file. 0 or -errno. */
int deliver_file(const char *dir, const char *format, const char *host, const struct body *b);
/* The URL that a body of that kind goes to. */
int deliver_url(const struct agent_config *cfg, const struct body *b, char *ret, size_t cap);	/* 0, -EINVAL */
/* ExportProfilesServiceResponse: how many profiles it says were rejected, and why. */
uint64_t deliver_rejected(const void *data, size_t len, char *why, size_t cap);

#endif
