/* SPDX-License-Identifier: BSD-2-Clause */
/* A child of a fork server that is asked now and then: made when there is a question, and ended when there was none for some seconds. */
#ifndef SFBPF_BASE_ASKED_CHILD_H
#define SFBPF_BASE_ASKED_CHILD_H

#include <stddef.h>

#include "base/fork_server.h"

struct asked_child {
	struct fork_server *server;
	fork_child_fn fn;
	struct fork_child now;
	uint64_t used_ns;	/* the last question, CLOCK_MONOTONIC; by who asks */
	uint64_t died;		/* children that were not ended by us */
	uint64_t cpu_ns;	/* of those that are gone */
};

void asked_child_init(struct asked_child *c, struct fork_server *server, fork_child_fn fn);
/* A descriptor below 0 stands for the child's own mem. 0, or -ECHILD: there can be no child. */
int asked_child_send(struct asked_child *c, const void *ask, size_t len, const int *fds, size_t nfds);
void asked_child_end(struct asked_child *c);
void asked_child_lose(struct asked_child *c);	/* the same, but it has died, if there was one */
void asked_child_rest(struct asked_child *c);	/* ends it, if it has been idle */
uint64_t asked_child_cpu_ns(const struct asked_child *c);	/* of all so far */

#endif
