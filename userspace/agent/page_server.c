/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/page_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/guests.h"
#include "agent/listen.h"
#include "agent/web.h"
#include "base/clock.h"
#include "base/num.h"

#define CLIENT_BYTES	8192 /* memory of a client: its request, and the head of the reply */
/* The pause after accept4() failed for lack of descriptors or memory */
#define ACCEPT_PAUSE_NS (100 * NUM_MS)
/* A flood of connections that are hung up on takes a part of a CPU, and waits for the rest. */
#define REFUSED_AT_ONCE 8
#define REFUSE_PAUSE_NS NUM_MS
#define CPU_MOST_NS	(500 * (int64_t)NUM_MS) /* unused CPU time that is saved */
#define PEERS		64			/* addresses that are remembered */
#define RATE_SAVED	10			/* requests of an address that come at once */

struct page_server {
	struct listener at;
	int wake;
	struct MHD_Daemon *daemon;
	struct guests guests;
	pthread_t thread;
	bool running;
	page_answer answer;
	void *ctx;
	void (*on_thread)(void);
	uint64_t accept_from; /* CLOCK_MONOTONIC: no accept before this time */
	uint64_t refused;     /* connections */
	/* CPU time that is left at `since`, or owed, and that the thread had used then */
	int64_t cpu_left;
	uint64_t cpu_used, since;
	struct peer {
		uint64_t peer;
		uint64_t until; /* the time up to which its requests have used up its rate */
	} peers[PEERS];
};

/* ---- Answers ---- */

static int status_of(const struct page_server *s, struct MHD_Connection *c, const char *path,
		     const char *method, FILE *body)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");

	if (strcmp(method, "GET") != 0)
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	if (s->at.loopback && host && !listen_own_host(host, s->at.host))
		return MHD_HTTP_FORBIDDEN;
	return s->answer(s->ctx, path, body);
}

/* Called as soon as the head of a request is there. Its body, if it has one, is not read. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *data_size, void **state)
{
	static const struct web_header headers[] = { { "Content-Type",
						       "text/plain; version=0.0.4; charset=utf-8" },
						     { "Connection", "close" },
						     { 0 } };
	struct web_reply r;

	(void)version, (void)data, (void)data_size, (void)state;
	return web_begin(&r) ? web_send(&r, c, status_of(ctx, c, path, method, r.body), headers)
			     : MHD_NO;
}

/* ---- Who is served ---- */

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

static void accept_one(struct page_server *s, uint64_t now)
{
	struct sockaddr_storage from = { 0 };
	struct sockaddr *addr = (struct sockaddr *)&from;
	socklen_t len = sizeof(from);
	int fd = accept4(s->at.fd, addr, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 && may_ask(s, listen_peer(addr), now)) {
		MHD_add_connection(s->daemon, fd, addr, len);
		MHD_run(s->daemon); /* until then, its epoll knows nothing of the connection */
	} else if (fd >= 0) {
		close(fd);
		if (++s->refused % REFUSED_AT_ONCE == 0)
			s->accept_from = now + REFUSE_PAUSE_NS;
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		s->accept_from = now + ACCEPT_PAUSE_NS;
	}
}

/* ---- The loop ---- */

/* Hangs up on clients whose time is over. Returns the timeout for poll() in ms. */
static int wait_ms(struct page_server *s, uint64_t now)
{
	uint64_t next = guests_look(&s->guests);
	MHD_UNSIGNED_LONG_LONG most;

	if (MHD_get_timeout(s->daemon, &most) == MHD_YES && !most)
		return 0;
	if (now < s->accept_from && s->accept_from < next)
		next = s->accept_from;
	if (next == UINT64_MAX)
		return -1;
	return next < now ? 0 : (int)((next - now) / NUM_MS) + 1;
}

static void *server_main(void *arg)
{
	struct page_server *s = arg;
	struct pollfd p[] = {
		{ .fd = s->wake, .events = POLLIN },
		{ .fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		  .events = POLLIN },
		{ .events = POLLIN },
	};
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	s->on_thread();
	s->since = clock_ns(CLOCK_MONOTONIC);
	s->cpu_used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	s->cpu_left = CPU_MOST_NS;
	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);

		p[2].fd = now < s->accept_from ? -1 : s->at.fd;
		if (poll(p, 3, wait_ms(s, now)) < 0 || p[0].revents)
			return NULL;
		MHD_run(s->daemon);
		/*
		 * One accept per iteration, after ready clients were served: otherwise a flood of
		 * connections would close them unserved.
		 */
		if (p[2].revents)
			accept_one(s, clock_ns(CLOCK_MONOTONIC));
	}
}

/* ---- Life ---- */

struct page_server *page_server_listen(const char *address, char *err, size_t cap)
{
	struct page_server *s = calloc(1, sizeof(*s));

	if (!s) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	s->at.fd = -1;
	s->wake = eventfd(0, EFD_CLOEXEC);
	if (s->wake < 0)
		snprintf(err, cap, "%s: %s", address, strerror(errno));
	if (s->wake >= 0 && !listen_open(address, &s->at, err, cap))
		return s;
	page_server_stop(s);
	return NULL;
}

int page_server_start(struct page_server *s, page_answer answer, void *ctx, void (*on_thread)(void))
{
	int rc;

	s->answer = answer;
	s->ctx = ctx;
	s->on_thread = on_thread;
	guests_init(&s->guests, PAGE_SERVER_CLIENTS, PAGE_SERVER_CLIENT_MS);
	s->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
				     on_request, s, MHD_OPTION_CONNECTION_LIMIT,
				     2u * PAGE_SERVER_CLIENTS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				     (size_t)CLIENT_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
				     web_on_connection, &s->guests, MHD_OPTION_STRICT_FOR_CLIENT, 1,
				     MHD_OPTION_END);
	if (!s->daemon)
		return -ENOMEM;
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
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (s->at.fd >= 0)
		close(s->at.fd);
	if (s->wake >= 0)
		close(s->wake);
	free(s);
}
