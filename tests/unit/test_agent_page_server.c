/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of the agent's pages: clients that are silent, slow or many delay no other. */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/page_server.h"
#include "base/clock.h"
#include "test.h"

#define LARGE  (16u << 20) /* more than the kernel buffers for a client that does not read */
#define MEDIUM (1u << 20)
#define MANY   200

#define REQUEST(method_and_path) method_and_path " HTTP/1.1\r\nHost: localhost\r\n\r\n"

static int on_threads;

static void on_thread(void)
{
	on_threads++;
}

static int answer(void *ctx, const char *path, FILE *f)
{
	(void)ctx;
	if (!strcmp(path, "/small")) {
		fputs("ok\n", f);
		return 200;
	}
	if (!strcmp(path, "/costly")) {
		uint64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 20 * NUM_MS;

		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
			;
		return 200;
	}
	if (strcmp(path, "/medium") && strcmp(path, "/large"))
		return 404;
	for (unsigned int i = 0; i < (path[1] == 'm' ? MEDIUM : LARGE) / 16; i++)
		fputs("0123456789abcdef", f);
	return 200;
}

/* A port that was free a moment ago. */
static struct page_server *start(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*at);
	struct page_server *s;
	char address[32], err[256] = "";

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	EXPECT(!bind(fd, (struct sockaddr *)at, sizeof(*at)));
	EXPECT(!getsockname(fd, (struct sockaddr *)at, &len));
	close(fd);
	snprintf(address, sizeof(address), "%d", ntohs(at->sin_port));
	s = page_server_listen(address, err, sizeof(err));
	EXPECT_STR(err, "");
	on_threads = 0;
	EXPECT(s && !page_server_start(s, answer, NULL, on_thread));
	return s;
}

static int dial(const struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	EXPECT(!connect(fd, (const struct sockaddr *)at, sizeof(*at)));
	return fd;
}

static uint64_t ms_since(uint64_t start)
{
	return (clock_ns(CLOCK_MONOTONIC) - start) / NUM_MS;
}

/* All bytes until the server hangs up, or for 10 s. The first ones stay in buf. */
static size_t read_all(int fd, char *buf, size_t cap)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t sum = 0, have = 0;
	char more[65536];
	ssize_t n;

	while (poll(&p, 1, 10000) > 0 && (n = recv(fd, more, sizeof(more), 0)) > 0) {
		size_t room = cap - 1 - have, take = (size_t)n < room ? (size_t)n : room;

		memcpy(buf + have, more, take);
		have += take;
		sum += (size_t)n;
	}
	buf[have] = 0;
	return sum;
}

static size_t ask(const struct sockaddr_in *at, const char *request, char *buf, size_t cap)
{
	int fd = dial(at);
	size_t n;

	EXPECT(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
	n = read_all(fd, buf, cap);
	close(fd);
	return n;
}

/* Waits for the server to hang up; returns the ms since start. */
static uint64_t hung_up_after(int fd, uint64_t start)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char buf[65536];

	while (poll(&p, 1, 10000) > 0 && recv(fd, buf, sizeof(buf), 0) > 0)
		;
	return ms_since(start);
}

TEST(answers)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	char buf[512];

	ask(&at, "GET /small HTTP/1.1\r\nHost: localhost:9419\r\n\r\n", buf, sizeof(buf));
	EXPECT(!strncmp(buf, "HTTP/1.1 200 OK\r\n", 17));
	EXPECT(strstr(buf, "Content-Length: 3\r\n") && strstr(buf, "\r\n\r\nok\n"));
	EXPECT(strstr(buf, "Connection: close\r\n"));
	ask(&at, "GET /small?x=1 HTTP/1.0\r\n\r\n", buf, sizeof(buf));
	EXPECT(!strncmp(buf, "HTTP/1.1 200 OK\r\n", 17));
	ask(&at, REQUEST("GET /other"), buf, sizeof(buf));
	EXPECT(!strncmp(buf, "HTTP/1.1 404 ", 13));
	ask(&at, REQUEST("GET /smaller"), buf, sizeof(buf));
	EXPECT(!strncmp(buf, "HTTP/1.1 404 ", 13));
	ask(&at, REQUEST("POST /small"), buf, sizeof(buf));
	EXPECT(!strncmp(buf, "HTTP/1.1 405 ", 13));
	EXPECT(ask(&at, REQUEST("GET /medium"), buf, sizeof(buf)) > MEDIUM);
	EXPECT_EQ(on_threads, 1);
	page_server_stop(s);
}

/* Each silent client had a second before: now none costs the next one anything. */
TEST(silent_clients_delay_nobody)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	int fds[MANY];
	char buf[512];

	for (int n = 12; n <= MANY; n += MANY - 12) {
		uint64_t begin;

		for (int i = 0; i < n; i++)
			fds[i] = dial(&at);
		begin = clock_ns(CLOCK_MONOTONIC);
		ask(&at, REQUEST("GET /small"), buf, sizeof(buf));
		EXPECT(!strncmp(buf, "HTTP/1.1 200 OK\r\n", 17));
		EXPECT(ms_since(begin) < PAGE_SERVER_CLIENT_MS / 2);
		for (int i = 0; i < n; i++)
			close(fds[i]);
	}
	page_server_stop(s);
}

/* All clients but the last PAGE_SERVER_CLIENTS are closed at once, the oldest first. */
TEST(the_oldest_goes_first)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	int fds[PAGE_SERVER_CLIENTS + 3], n = PAGE_SERVER_CLIENTS + 3;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < n; i++)
		fds[i] = dial(&at);
	for (int i = 0; i < 3; i++)
		EXPECT(hung_up_after(fds[i], begin) < PAGE_SERVER_CLIENT_MS);
	for (int i = 3; i < n; i++)
		EXPECT(hung_up_after(fds[i], begin) >= PAGE_SERVER_CLIENT_MS);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	page_server_stop(s);
}

/* A byte every 20 ms starts no new deadline. */
TEST(slow_writer)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), ms;
	int fd = dial(&at);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (!poll(&p, 1, 20) && ms_since(begin) < 10000)
		if (send(fd, "x", 1, MSG_NOSIGNAL) != 1)
			break;
	ms = ms_since(begin);
	EXPECT(ms >= PAGE_SERVER_CLIENT_MS && ms < 5 * PAGE_SERVER_CLIENT_MS);
	close(fd);
	page_server_stop(s);
}

/* A reader of a few bytes every 20 ms loses the rest of the page at the deadline. */
TEST(slow_reader)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	const char *request = REQUEST("GET /large");
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	int fd = dial(&at);
	size_t sum = 0;
	char buf[512];
	ssize_t n;

	EXPECT(send(fd, request, strlen(request), MSG_NOSIGNAL) > 0);
	while (ms_since(begin) < 2 * PAGE_SERVER_CLIENT_MS && (n = recv(fd, buf, 100, 0)) > 0) {
		sum += (size_t)n;
		poll(NULL, 0, 20);
	}
	sum += read_all(fd, buf, sizeof(buf)); /* what the kernel had taken by then */
	EXPECT(sum > 0 && sum < LARGE);
	close(fd);
	page_server_stop(s);
}

/* A request without an end is not answered, and one that is too long is cut off at once. */
TEST(endless_request)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	uint64_t begin = clock_ns(CLOCK_MONOTONIC);
	char buf[16384];
	int fd = dial(&at);

	memset(buf, 'x', sizeof(buf));
	EXPECT(send(fd, buf, sizeof(buf), MSG_NOSIGNAL) > 0);
	EXPECT(hung_up_after(fd, begin) < PAGE_SERVER_CLIENT_MS);
	close(fd);
	page_server_stop(s);
}

/* A page of that name in a browser must not read ours. */
TEST(other_hosts)
{
	static const char *const own[] = { "127.0.0.1", "127.0.0.1:1", "LocalHost", "[::1]:9419" },
				 *const others[] = { "a.example",
						     "a.example:9419",
						     "localhost.a",
						     "127.0.0.1.a.example",
						     "",
						     ":9419" };
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	char buf[512], request[200];

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		snprintf(request, sizeof(request), "GET /small HTTP/1.1\r\nhost:%s\r\n\r\n",
			 own[i]);
		ask(&at, request, buf, sizeof(buf));
		EXPECT(!strncmp(buf, "HTTP/1.1 200 ", 13));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		snprintf(request, sizeof(request), "GET /small HTTP/1.1\r\nHost: %s\r\n\r\n",
			 others[i]);
		ask(&at, request, buf, sizeof(buf));
		EXPECT(!strncmp(buf, "HTTP/1.1 403 ", 13));
	}
	page_server_stop(s);
}

/* Who asks for more than the server's share of the CPU is hung up on, and served later again. */
TEST(flood)
{
	struct sockaddr_in at;
	struct page_server *s = start(&at);
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), most;
	uint64_t asked = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	char buf[512];
	int refused = 0;

	while (ms_since(begin) < 5000)
		refused += !ask(&at, REQUEST("GET /costly"), buf, sizeof(buf));
	/*
	 * What is saved, its share, 5 pages a second, and hanging up, which costs less than to call
	 * in.
	 */
	most = (500 + 5000 * PAGE_SERVER_CPU_PCT / 100) * NUM_MS;
	printf("# %d refused, %d ms of CPU time\n", refused, (int)(page_server_cpu_ns(s) / NUM_MS));
	EXPECT(refused > 0);
	EXPECT(page_server_cpu_ns(s) < 2 * most + clock_ns(CLOCK_THREAD_CPUTIME_ID) - asked);
	poll(NULL, 0, 3000);
	ask(&at, REQUEST("GET /small"), buf, sizeof(buf));
	EXPECT(!strncmp(buf, "HTTP/1.1 200 OK\r\n", 17));
	page_server_stop(s);
}

TEST(bad_addresses)
{
	char err[256] = "";

	EXPECT(!page_server_listen("1234567", err, sizeof(err)));
	EXPECT_STR(err, "'1234567' is not HOST:PORT");
	EXPECT(!page_server_listen("localhost:http", err, sizeof(err)));
}
