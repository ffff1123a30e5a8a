/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is connected to an HTTP server, and for how long. There are as many connections as the server
 * wants. A new one closes another if all are taken: one that has not asked a valid question, of the
 * address that has the most of them, the oldest first. Each is closed some time after it began if
 * it has not asked by then, however slowly it writes. Therefore no client can keep others out, with
 * or without a token. Any thread.
 */
#ifndef SFBPF_AGENT_GUESTS_H
#define SFBPF_AGENT_GUESTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define GUESTS_MAX	64
#define GUEST_ANSWER_MS 300000 /* time for the answer to a valid question */

struct guest {
	bool here;
	bool answered;	/* it has asked a valid question and reads the answer */
	bool sent_away; /* it is closed as soon as its connection is handled next */
	int fd;
	uint64_t peer;	/* listen_peer */
	uint64_t until; /* CLOCK_MONOTONIC */
};

struct guests {
	pthread_mutex_t lock;
	size_t most;
	uint64_t ask_ms;
	struct guest all[2 * GUESTS_MAX]; /* guests who were sent away stay for a moment */
};

/* most: connections, at most GUESTS_MAX. ask_ms: the time for a question. */
void guests_init(struct guests *g, size_t most, uint64_t ask_ms);
/* A connection begins. NULL: there is no entry; it must be closed. */
struct guest *guests_come(struct guests *g, int fd, const struct sockaddr *from);
/* Its question is valid: it may read the answer. */
void guests_answer(struct guests *g, struct guest *guest);
/* The answer has been sent: it may ask the next question. */
void guests_answered(struct guests *g, struct guest *guest);
/* The connection ends; its descriptor is still open. */
void guests_go(struct guests *g, struct guest *guest);
/*
 * Closes the connections whose time is over. Returns when the next one's is, on CLOCK_MONOTONIC.
 * UINT64_MAX: there is none.
 */
uint64_t guests_look(struct guests *g);

#endif
