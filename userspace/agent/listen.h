/* SPDX-License-Identifier: BSD-2-Clause */
/* Listening sockets for HTTP, and who calls in. */
#ifndef SFBPF_AGENT_LISTEN_H
#define SFBPF_AGENT_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct listener {
	int fd;
	bool loopback;	/* the address is one of loopback */
	char host[256]; /* the address's host as it is in a URL, and as browsers send it */
};

/* The port of "[HOST:]PORT", and its host. NULL: it is no address. */
const char *listen_address(const char *address, char *host, size_t cap);
/* address: "HOST:PORT" or "PORT" (on 127.0.0.1). 0, or -1 with a message. */
int listen_open(const char *address, struct listener *ret, char *err, size_t cap);
/*
 * Whether the Host of a request is this machine by an address of loopback or by the name `host`.
 * Another name leads here after DNS rebinding, and the page of that name would read ours.
 */
bool listen_own_host(const char *said, const char *host);
/* Tells addresses apart. All of loopback are one, and all of an IPv6 network of 64 bits. */
uint64_t listen_peer(const struct sockaddr *a);

#endif
