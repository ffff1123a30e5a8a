/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/asked_child.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"

#define IDLE_NS (3 * NUM_S)
#define FDS_MAX 2

void asked_child_init(struct asked_child *c, struct fork_server *server, fork_child_fn fn)
{
	*c = (struct asked_child){ .server = server, .fn = fn, .now = FORK_CHILD_NONE };
}

void asked_child_end(struct asked_child *c)
{
	c->cpu_ns += fork_child_cpu_ns(&c->now);
	fork_server_end(c->server, &c->now);
}

void asked_child_lose(struct asked_child *c)
{
	c->died += c->now.pid != 0;
	asked_child_end(c);
}

void asked_child_rest(struct asked_child *c)
{
	if (c->now.pid && clock_ns(CLOCK_MONOTONIC) - c->used_ns > IDLE_NS)
		asked_child_end(c);
}

uint64_t asked_child_cpu_ns(const struct asked_child *c)
{
	return c->cpu_ns + fork_child_cpu_ns(&c->now);
}

int asked_child_send(struct asked_child *c, const void *ask, size_t len, const int *fds, size_t nfds)
{
	int send[FDS_MAX];

	for (int tries = 0; tries < 2; tries++) {
		if (!c->now.pid && fork_server_child(c->server, c->fn, &c->now))
			return -ECHILD;
		for (size_t i = 0; i < nfds && i < FDS_MAX; i++)
			send[i] = fds[i] < 0 ? c->now.mem : fds[i];
		if (!fork_send(c->now.sock, ask, len, send, nfds, MSG_DONTWAIT))
			return 0;
		/* It had ended while it was idle. */
		asked_child_lose(c);
	}
	return -ECHILD;
}
