/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is connected to `serve`, and for how long. There are as many connections as entries. A new
 * one closes another if all are taken: one that has not asked a valid question, of the address that
 * has the most of them, the oldest first. Each is closed some seconds after it began if it has not
 * asked by then, however slowly it writes. So nobody keeps others out, with or without the token.
 * Any thread.
 */
#ifndef SFBPF_TOOLS_SERVE_GUESTS_H
#define SFBPF_TOOLS_SERVE_GUESTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define GUESTS		64
#define GUEST_ASK_MS	5000   /* time for a question */
#define GUEST_ANSWER_MS 300000 /* time for its answer */

struct guest {
	bool here;
	bool answered;	/* it has asked a valid question and reads the answer */
	bool sent_away; /* it is closed as soon as its connection is handled next */
	int fd;
	uint64_t peer;	/* page_server_peer */
	uint64_t until; /* CLOCK_MONOTONIC */
};

struct guests {
	pthread_mutex_t lock;
	struct guest all[2 * GUESTS]; /* guests who were sent away stay for a moment */
};

void guests_init(struct guests *g);
/* A connection begins. NULL: there is no entry; it must be closed. */
struct guest *guests_come(struct guests *g, int fd, const struct sockaddr *from);
/* Its question is valid: it may read the answer. */
void guests_answer(struct guests *g, struct guest *guest);
/* The answer has been sent: it may ask the next question. */
void guests_answered(struct guests *g, struct guest *guest);
/* The connection ends; its descriptor is still open. */
void guests_go(struct guests *g, struct guest *guest);
/* Closes those whose time is over. */
void guests_look(struct guests *g);

#endif
