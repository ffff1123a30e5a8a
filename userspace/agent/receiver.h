/* SPDX-License-Identifier: BSD-2-Clause */
/* A kind of receiver: how to encode a window for it and how to deliver a body. */
#ifndef SFBPF_AGENT_RECEIVER_H
#define SFBPF_AGENT_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/body.h"

#define BODY_BIT(kind) (1u << (kind))

struct receiver {
	const char *endpoint; /* the default; NULL: the user must give one */
	/* BODY_BIT of each kind it accepts; other kinds in the spool belong to another receiver. */
	unsigned int bodies;
	bool processes; /* its bodies tell processes apart, with and without label-pid */
	/* Encodes all bodies of a window. 0 or -errno. */
	int (*encode)(const struct encode_input *in, body_fn fn, void *ctx);
	/* One of these bodies was dropped before it was delivered. NULL: nothing to do. */
	void (*dropped)(const struct body *b);

	/* Writes to a directory: there is no URL, the members below are not used. 0 or -errno. */
	int (*write)(const struct agent_config *cfg, const char *host, const struct body *b);

	bool grpc; /* gRPC over HTTP/2, not a plain POST */
	/*
	 * A path in the endpoint replaces .path, unless the endpoint is the base for all signals.
	 */
	bool path_in_endpoint;
	const char *content_type; /* content type of a plain POST */
	const char *path;	  /* appended to the endpoint; not NULL without url and write */
	/* Used instead of path: makes the URL from a base of len bytes. 0 or -EINVAL. */
	int (*url)(const struct agent_config *cfg, const struct body *b, const char *base, int len,
		   char *ret, size_t cap);
	/*
	 * How many profiles were rejected according to the answer to an accepted body, and why.
	 * NULL: the answer does not tell.
	 */
	uint64_t (*rejected)(const void *data, size_t len, char *why, size_t cap);
};

#define RECEIVER(id, name) extern const struct receiver receiver_##name;
#include "agent/receivers.def"
#undef RECEIVER

const struct receiver *receiver_at(enum agent_protocol protocol);
/* Reports a dropped body, which may belong to a receiver that is no longer configured. */
void receiver_dropped(const struct body *b);

#endif
