/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Delivery. Two threads, so that neither a slow disk nor a slow server delays sampling: the writer
 * puts bodies into the spool, and the sender takes them from it and posts them one at a time,
 * oldest first.
 */
#ifndef SFBPF_AGENT_SENDER_H
#define SFBPF_AGENT_SENDER_H

#include "agent/deliver.h"
#include "agent/spool.h"

#define SENDER_CODES 32

struct sender_code {
	char code[DELIVER_CODE]; /* the code in struct delivery */
	uint64_t n;
};

struct sender_stats {
	uint64_t requests, bytes, rejected_profiles;
	double seconds; /* spent in requests */
	struct sender_code codes[SENDER_CODES];
	size_t ncodes;
	struct spool_count overrun; /* dropped because the writer was too slow */
	uint64_t waiting;	    /* bodies waiting for the writer */
	uint64_t failures;	    /* consecutive */
	uint64_t last_ok_ns;	    /* CLOCK_MONOTONIC; 0: never */
	uint64_t copy_errors;
};

struct sender;

/*
 * Takes over cfg. Each thread calls on_thread first (privileges). NULL: out of memory, or no
 * threads.
 */
struct sender *sender_start(struct spool *sp, struct agent_config *cfg, const char *host,
			    void (*on_thread)(void));
/* Takes over b->data. copy: write it to the directory cfg->copy instead of sending it. */
void sender_push(struct sender *s, struct body *b, bool copy);
void sender_reload(struct sender *s, struct agent_config *cfg); /* takes over cfg */
/* Waits until all bodies are delivered or dropped, at most timeout_ns. True: none are left. */
bool sender_drain(struct sender *s, uint64_t timeout_ns);
void sender_stats(struct sender *s, struct sender_stats *ret);
void sender_stop(struct sender *s); /* aborts the current request; its body stays in the spool */

#endif
