/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/num.h"

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

const char *listen_address(const char *address, char *host, size_t cap)
{
	const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
	size_t len = colon ? (size_t)(colon - address) : 0;
	uint64_t n;

	if (num_u64(port, 0, 65535, &n) || len >= cap)
		return NULL;
	if (len > 2 && address[0] == '[' && address[len - 1] == ']') {
		address++;
		len -= 2;
	}
	if (len)
		snprintf(host, cap, "%.*s", (int)len, address);
	else
		snprintf(host, cap, "127.0.0.1");
	return strpbrk(host, " []/\"@") ? NULL : port;
}

static int open_socket(const struct addrinfo *ai)
{
	int on = 1, fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* A full backlog would make clients wait a second before they try again. */
	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
			bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, SOMAXCONN))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int listen_open(const char *address, struct listener *ret, char *err, size_t cap)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICSERV },
			*list = NULL;
	char host[200];
	const char *port = listen_address(address, host, sizeof(host));
	bool v6 = port && strchr(host, ':');
	int rc = port ? getaddrinfo(host, port, &hints, &list) : 0;

	ret->fd = -1;
	if (!port)
		snprintf(err, cap, "'%s' is not HOST:PORT", address);
	else if (rc)
		snprintf(err, cap, "%s: %s", host, gai_strerror(rc));
	if (!port || rc)
		return -1;
	ret->loopback = is_loopback(list->ai_addr);
	snprintf(ret->host, sizeof(ret->host), "%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "");
	ret->fd = open_socket(list);
	if (ret->fd < 0)
		snprintf(err, cap, "%s: %s", address, strerror(errno));
	freeaddrinfo(list);
	return ret->fd < 0 ? -1 : 0;
}

bool listen_own_host(const char *said, const char *host)
{
	static const char *const loopback[] = { "localhost", "127.0.0.1", "[::1]" };
	size_t n = strlen(said);
	const char *colon = strrchr(said, ':');

	if (colon && strspn(colon + 1, "0123456789") == strlen(colon + 1))
		n = (size_t)(colon - said);
	for (size_t i = 0; i < sizeof(loopback) / sizeof(loopback[0]); i++)
		if (n == strlen(loopback[i]) && !strncasecmp(said, loopback[i], n))
			return true;
	return n && n == strlen(host) && !strncasecmp(said, host, n);
}

uint64_t listen_peer(const struct sockaddr *a)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
	uint32_t four = ((const struct sockaddr_in *)a)->sin_addr.s_addr;
	uint64_t network;

	if (is_loopback(a))
		return 0;
	if (a->sa_family == AF_INET)
		return four;
	if (IN6_IS_ADDR_V4MAPPED(six)) {
		memcpy(&four, six->s6_addr + 12, sizeof(four));
		return four;
	}
	memcpy(&network, six->s6_addr, sizeof(network));
	return network;
}
