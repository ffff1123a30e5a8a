/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delivery, on two threads of its own, so that neither a slow disk nor a slow server holds up sampling: the writer puts bodies into
 * the spool, the sender takes them out and posts them, one at a time, oldest first.
 */
#ifndef SFBPF_AGENT_SENDER_H
#define SFBPF_AGENT_SENDER_H

#include "agent/deliver.h"
#include "agent/spool.h"

#define SENDER_CODES 32

struct sender_code {
	int code;		/* status of the answer; 0: none came */
	uint64_t n;
};

struct sender_stats {
	uint64_t requests, bytes, rejected_profiles;
	double seconds;			/* in requests */
	struct sender_code codes[SENDER_CODES];
	size_t ncodes;
	struct spool_count overrun;	/* bodies that the writer could not keep up with: dropped */
	uint64_t waiting;		/* for the writer */
	uint64_t failures;		/* in a row */
	uint64_t last_ok_ns;		/* CLOCK_MONOTONIC; 0: never */
	uint64_t copy_errors;
};

struct sender;

/* Takes over cfg. NULL: no memory or no threads. on_thread: called first on each thread (privileges). */
struct sender *sender_start(struct spool *sp, struct agent_config *cfg, const char *host, void (*on_thread)(void));
/* Takes over b->data. copy: for the directory cfg->copy instead of the backend. */
void sender_push(struct sender *s, struct body *b, bool copy);
void sender_reload(struct sender *s, struct agent_config *cfg);	/* takes over cfg */
/* Goes on until everything is delivered or given up, at most for that long. True: nothing is left. */
bool sender_drain(struct sender *s, uint64_t timeout_ns);
void sender_stats(struct sender *s, struct sender_stats *ret);
void sender_stop(struct sender *s);	/* gives up what is on its way; the spool keeps it */

#endif
