/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/page_server.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define REQUEST_MAX	4096
/* The pause after accept4() failed for lack of descriptors or memory */
#define ACCEPT_PAUSE_NS (100 * NUM_MS)
/* A flood of connections that are hung up on takes a part of a CPU, and waits for the rest. */
#define REFUSED_AT_ONCE 8
#define REFUSE_PAUSE_NS NUM_MS
#define CPU_MOST_NS	(500 * (int64_t)NUM_MS) /* unused CPU time that is saved */
#define PEERS		64			/* addresses that are remembered */
#define RATE_SAVED	10			/* requests of an address that come at once */

enum client_state {
	CLIENT_NONE,	/* the slot is free */
	CLIENT_ASKS,	/* reading the request, up to the empty line */
	CLIENT_LISTENS, /* writing the reply */
};

struct client {
	enum client_state state;
	int fd;
	uint64_t peer;	/* page_server_peer */
	uint64_t until; /* CLOCK_MONOTONIC, when the connection is closed */
	size_t len;	/* bytes of the request read so far, or of the whole reply */
	size_t done;	/* the part of len that was searched for the empty line, or sent */
	char request[REQUEST_MAX];
	char *reply;
};

struct page_server {
	int fd, wake;
	pthread_t thread;
	bool running;
	page_answer answer;
	void *ctx;
	void (*on_thread)(void);
	uint64_t accept_from; /* CLOCK_MONOTONIC: no accept before this time */
	uint64_t refused;     /* connections */
	char host[256];	      /* name of the address that is listened on */
	bool loopback;	      /* whether that address is one of loopback */
	/* CPU time that is left at `since`, or owed, and that the thread had used then */
	int64_t cpu_left;
	uint64_t cpu_used, since;
	struct peer {
		uint64_t peer;
		uint64_t until; /* the time up to which its requests have used up its rate */
	} peers[PEERS];
	struct client clients[PAGE_SERVER_CLIENTS];
};

/* ---- Clients ---- */

static void drop(struct client *c)
{
	close(c->fd);
	free(c->reply);
	c->reply = NULL;
	c->state = CLIENT_NONE;
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void write_reply(struct client *c)
{
	ssize_t n = send(c->fd, c->reply + c->done, c->len - c->done, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && would_block())
		return;
	if (n > 0)
		c->done += (size_t)n;
	if (n <= 0 || c->done == c->len)
		drop(c);
}

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 403:
		return "Forbidden";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	default:
		return "Service Unavailable";
	}
}

/* The value of the header Host, cut at its end. NULL: there is none. */
static const char *host_of(char *request)
{
	char *at = strcasestr(request, "\nhost:");

	if (!at)
		return NULL;
	at += strlen("\nhost:");
	at += strspn(at, " \t");
	at[strcspn(at, " \t\r\n")] = 0;
	return at;
}

bool page_server_own_host(const char *said, const char *host)
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

static int status_of(const struct page_server *s, char *request, FILE *body)
{
	char *path = request + 4;
	const char *host;

	if (strncmp(request, "GET ", 4))
		return 405;
	host = host_of(request);
	if (s->loopback && host && !page_server_own_host(host, s->host))
		return 403;
	path[strcspn(path, " ?\r\n")] = 0;
	return s->answer(s->ctx, path, body);
}

/* NULL: out of memory. */
static char *reply_of(const struct page_server *s, char *request, size_t *ret_len)
{
	char *body = NULL, *all = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&body, &len);
	int status;

	if (!f)
		return NULL;
	status = status_of(s, request, f);
	if (!fclose(f) && (f = open_memstream(&all, ret_len))) {
		fprintf(f,
			"HTTP/1.1 %d %s\r\n"
			"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
			"Content-Length: %zu\r\nConnection: close\r\n\r\n",
			status, status_text(status), len);
		fwrite(body, 1, len, f);
		if (fclose(f)) {
			free(all);
			all = NULL;
		}
	}
	free(body);
	return all;
}

/* Examines each byte once, across calls. */
static bool request_ended(struct client *c)
{
	for (; c->done < c->len; c->done++) {
		const char *at = c->request + c->done;

		if (*at != '\n' || c->done < 2)
			continue;
		if (at[-1] == '\n' || (at[-1] == '\r' && at[-2] == '\n'))
			return true;
	}
	return false;
}

static void read_request(const struct page_server *s, struct client *c)
{
	ssize_t n = recv(c->fd, c->request + c->len, sizeof(c->request) - 1 - c->len, MSG_DONTWAIT);

	if (n < 0 && would_block())
		return;
	if (n <= 0) { /* 0: the client hung up, or the request is too long */
		drop(c);
		return;
	}
	c->len += (size_t)n;
	if (!request_ended(c))
		return;
	c->request[c->len] = 0;
	c->done = 0;
	c->reply = reply_of(s, c->request, &c->len);
	if (!c->reply) {
		drop(c);
		return;
	}
	c->state = CLIENT_LISTENS;
	write_reply(c);
}

static void serve(const struct page_server *s, struct client *c)
{
	if (c->state == CLIENT_ASKS)
		read_request(s, c);
	else if (c->state == CLIENT_LISTENS)
		write_reply(c);
}

/* ---- Who is served ---- */

bool page_server_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

uint64_t page_server_peer(const struct sockaddr *a)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
	uint32_t four = ((const struct sockaddr_in *)a)->sin_addr.s_addr;
	uint64_t network;

	if (page_server_loopback(a))
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

/* Whether the address keeps to its rate. Without an entry it does not: there are too many. */
static bool in_rate(struct page_server *s, uint64_t peer, uint64_t now)
{
	struct peer *found = NULL;

	for (size_t i = 0; i < PEERS; i++) {
		struct peer *p = &s->peers[i];

		if (p->peer == peer || (p->until < now && (!found || found->peer != peer)))
			found = p;
	}
	if (!found)
		return false;
	if (found->peer != peer || found->until < now)
		*found = (struct peer){ peer, now };
	if (found->until > now + RATE_SAVED * NUM_S / PAGE_SERVER_RATE)
		return false;
	found->until += NUM_S / PAGE_SERVER_RATE;
	return true;
}

static bool may_ask(struct page_server *s, uint64_t peer, uint64_t now)
{
	const uint64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	s->cpu_left += (int64_t)((now - s->since) * PAGE_SERVER_CPU_PCT / 100);
	s->cpu_left -= (int64_t)(used - s->cpu_used);
	if (s->cpu_left > CPU_MOST_NS)
		s->cpu_left = CPU_MOST_NS;
	if (s->cpu_left < -CPU_MOST_NS)
		s->cpu_left = -CPU_MOST_NS;
	s->cpu_used = used;
	s->since = now;
	return in_rate(s, peer, now) || s->cpu_left > 0;
}

static size_t clients_of(const struct page_server *s, uint64_t peer)
{
	size_t n = 0;

	for (size_t i = 0; i < PAGE_SERVER_CLIENTS; i++)
		n += s->clients[i].state != CLIENT_NONE && s->clients[i].peer == peer;
	return n;
}

/*
 * A free slot, or that of the oldest client of the address with the most, whose connection is
 * closed.
 */
static struct client *next_slot(struct page_server *s)
{
	struct client *worst = NULL;
	size_t most = 0;

	for (size_t i = 0; i < PAGE_SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];
		size_t n = c->state == CLIENT_NONE ? 0 : clients_of(s, c->peer);

		if (!n)
			return c;
		if (n > most || (n == most && c->until < worst->until)) {
			worst = c;
			most = n;
		}
	}
	drop(worst);
	return worst;
}

static void accept_one(struct page_server *s, uint64_t now)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	int fd = accept4(s->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	struct client *c;
	uint64_t peer;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			s->accept_from = now + ACCEPT_PAUSE_NS;
		return;
	}
	peer = page_server_peer((struct sockaddr *)&from);
	if (!may_ask(s, peer, now)) {
		close(fd);
		if (++s->refused % REFUSED_AT_ONCE == 0)
			s->accept_from = now + REFUSE_PAUSE_NS;
		return;
	}
	c = next_slot(s);
	c->state = CLIENT_ASKS;
	c->fd = fd;
	c->peer = peer;
	c->until = now + PAGE_SERVER_CLIENT_MS * NUM_MS;
	c->len = c->done = 0;
	serve(s, c); /* the request is often there already */
}

/* ---- The loop ---- */

/* Fills p: the wake-up, the listening socket, each client. Returns the timeout for poll() in ms. */
static int fill(struct page_server *s, struct pollfd *p, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	p[0] = (struct pollfd){ .fd = s->wake, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = s->fd, .events = POLLIN };
	if (now < s->accept_from) {
		p[1].fd = -1;
		next = s->accept_from;
	}
	for (size_t i = 0; i < PAGE_SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->state != CLIENT_NONE && c->until <= now)
			drop(c);
		p[2 + i] = (struct pollfd){
			.fd = c->state == CLIENT_NONE ? -1 : c->fd,
			.events = c->state == CLIENT_ASKS ? POLLIN : POLLOUT,
		};
		if (c->state != CLIENT_NONE && c->until < next)
			next = c->until;
	}
	return next == UINT64_MAX ? -1 : (int)((next - now) / NUM_MS) + 1;
}

static void *server_main(void *arg)
{
	struct page_server *s = arg;
	struct pollfd p[2 + PAGE_SERVER_CLIENTS];
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	s->on_thread();
	s->since = clock_ns(CLOCK_MONOTONIC);
	s->cpu_used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	s->cpu_left = CPU_MOST_NS;
	for (;;) {
		int timeout = fill(s, p, clock_ns(CLOCK_MONOTONIC));

		if (poll(p, 2 + PAGE_SERVER_CLIENTS, timeout) < 0 || p[0].revents)
			return NULL;
		for (size_t i = 0; i < PAGE_SERVER_CLIENTS; i++)
			if (p[2 + i].revents)
				serve(s, &s->clients[i]);
		/*
		 * One accept per iteration, after ready clients were served: otherwise a flood of
		 * connections would close them unserved.
		 */
		if (p[1].revents)
			accept_one(s, clock_ns(CLOCK_MONOTONIC));
	}
}

/* ---- Life ---- */

const char *page_server_address(const char *address, char *host, size_t cap)
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

void page_server_name(const char *host, char *ret, size_t cap)
{
	bool v6 = strchr(host, ':') != NULL;

	snprintf(ret, cap, "%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "");
}

static bool resolve(struct page_server *s, const char *address, struct addrinfo **ret, char *err,
		    size_t cap)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	char host[200];
	const char *port = page_server_address(address, host, sizeof(host));
	int rc;

	if (!port) {
		snprintf(err, cap, "'%s' is not HOST:PORT", address);
		return false;
	}
	rc = getaddrinfo(host, port, &hints, ret);
	if (rc)
		snprintf(err, cap, "%s: %s", host, gai_strerror(rc));
	if (rc)
		return false;
	page_server_name(host, s->host, sizeof(s->host));
	s->loopback = page_server_loopback((*ret)->ai_addr);
	return true;
}

static bool open_socket(struct page_server *s, const struct addrinfo *ai)
{
	int on = 1;

	s->wake = eventfd(0, EFD_CLOEXEC);
	s->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* A full backlog would make clients wait a second before they try again. */
	return s->fd >= 0 && s->wake >= 0 &&
	       !setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	       !bind(s->fd, ai->ai_addr, ai->ai_addrlen) && !listen(s->fd, SOMAXCONN);
}

struct page_server *page_server_listen(const char *address, char *err, size_t cap)
{
	struct page_server *s = calloc(1, sizeof(*s));
	struct addrinfo *ai = NULL;

	if (!s) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	if (!resolve(s, address, &ai, err, cap)) {
		free(s);
		return NULL;
	}
	if (!open_socket(s, ai)) {
		snprintf(err, cap, "%s: %s", address, strerror(errno));
		page_server_stop(s);
		s = NULL;
	}
	freeaddrinfo(ai);
	return s;
}

int page_server_start(struct page_server *s, page_answer answer, void *ctx, void (*on_thread)(void))
{
	int rc;

	s->answer = answer;
	s->ctx = ctx;
	s->on_thread = on_thread;
	rc = pthread_create(&s->thread, NULL, server_main, s);
	s->running = !rc;
	return -rc;
}

uint64_t page_server_cpu_ns(const struct page_server *s)
{
	clockid_t clock;

	return s->running && !pthread_getcpuclockid(s->thread, &clock) ? clock_ns(clock) : 0;
}

void page_server_stop(struct page_server *s)
{
	uint64_t n = 1;

	if (!s)
		return;
	if (s->running && write(s->wake, &n, sizeof(n)) == sizeof(n))
		pthread_join(s->thread, NULL);
	for (size_t i = 0; i < PAGE_SERVER_CLIENTS; i++)
		if (s->clients[i].state != CLIENT_NONE)
			drop(&s->clients[i]);
	if (s->fd >= 0)
		close(s->fd);
	if (s->wake >= 0)
		close(s->wake);
	free(s);
}
