/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/budget.h"
#include "agent/log.h"
#include "base/clock.h"
#include "base/num.h"

#define CLIENT_MS 1000

struct metrics {
	int fd, wake;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;
	struct metrics_values values;
	struct sender *sender;
	struct spool *spool;
	void (*on_thread)(void);
};

/* ---- The page ---- */

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP sfbpf_agent_%s %s\n# TYPE sfbpf_agent_%s %s\n", name, help, name, type);
}

static void one(FILE *f, const char *name, const char *type, const char *help, double value)
{
	head(f, name, type, help);
	fprintf(f, "sfbpf_agent_%s %.17g\n", name, value);
}

static void labelled(FILE *f, const char *name, const char *label, const char *text, uint64_t value)
{
	fprintf(f, "sfbpf_agent_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text, value);
}

static void write_sampling(FILE *f, const struct metrics_values *v)
{
	one(f, "samples_total", "counter", "Samples taken by the kernel part.", (double)v->samples_taken);
	head(f, "samples_lost_total", "counter", "Samples that did not arrive, by cause.");
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		labelled(f, "samples_lost_total", "cause", profile_lost_name(i), v->lost[i]);
	head(f, "stacks_total", "counter", "Samples with a user stack, by how its walk ended.");
	for (unsigned int i = 0; i < SF_STOP_MAX; i++)
		labelled(f, "stacks_total", "end", profile_stop_name((uint8_t)i), v->stops[i]);
	one(f, "windows_total", "counter", "Windows closed.", (double)v->windows);
	one(f, "windows_failed_total", "counter", "Windows that could not be encoded.", (double)v->windows_failed);
	one(f, "window_samples_total", "counter", "Samples in closed windows.", (double)v->window_samples);
	one(f, "window_samples_dropped_total", "counter", "Samples that a window had no memory for.", (double)v->samples_dropped);
	one(f, "window_seconds", "gauge", "Length of the last window.", v->last_window_s);
	one(f, "encode_seconds_total", "counter", "CPU time of naming and encoding.", v->encode_s);
	one(f, "frequency_hertz", "gauge", "Samples a second and CPU now.", (double)v->hz);
	one(f, "frequency_wanted_hertz", "gauge", "The configured frequency.", (double)v->hz_want);
	one(f, "throttled_total", "counter", "Times that the frequency was lowered for the CPU limit.", (double)v->throttled);
	one(f, "cpus", "gauge", "CPUs that are sampled.", (double)v->cpus);
}

static void write_off_cpu(FILE *f, const struct metrics_values *v)
{
	const struct metrics_off_cpu *o = &v->off;

	if (!v->off_cpu && !o->blocked_ns)
		return;
	one(f, "off_cpu_measured", "gauge", "1: blocked time is measured; 0: not now, for its limit.", o->on);
	one(f, "off_cpu_blocks_total", "counter", "Blocks that ended, in closed windows.", (double)o->blocks);
	one(f, "off_cpu_blocked_seconds_total", "counter", "Blocked time in closed windows.", (double)o->blocked_ns / 1e9);
	one(f, "off_cpu_sampled_seconds_total", "counter", "Blocked time that samples stand for.",
	    (double)(o->now.sampled_ns + o->before.sampled_ns) / 1e9);
	one(f, "off_cpu_lost_seconds_total", "counter", "Blocked time that is in no window.", (double)(o->now.lost_ns + o->before.lost_ns) / 1e9);
	one(f, "off_cpu_records_lost_total", "counter", "Records of blocks that did not arrive.", (double)(o->now.lost + o->before.lost));
	one(f, "off_cpu_bpf_seconds_total", "counter", "CPU time that measuring it took in the kernel.",
	    (double)(o->now.bpf_ns + o->before.bpf_ns) / 1e9);
	one(f, "off_cpu_sampling_seconds", "gauge", "Shorter blocks are sampled, one for each so much blocked time; 0: all are counted.",
	    (double)o->thin_ns / 1e9);
	one(f, "off_cpu_suspended_total", "counter", "Times that it was given up for a while.", (double)o->suspended);
}

static void write_memory(FILE *f, const struct metrics_values *v)
{
	one(f, "files", "gauge", "Mapped files with unwind tables.", (double)v->modules);
	one(f, "table_rows", "gauge", "Rows in the unwind tables.", (double)v->rows);
	one(f, "table_bytes", "gauge", "Kernel memory of the unwind tables.", (double)v->table_bytes);
	one(f, "files_seen_total", "counter", "Files met for the first time while sampling.", (double)v->needs);
	one(f, "parsers_died_total", "counter", "Processes that read mapped files and died, or took too long.", (double)run_parsers_ended(&v->parsers));
	one(f, "files_failed_total", "counter", "Files without tables or names because of that.", (double)v->parsers.failed);
	one(f, "symbol_bytes", "gauge", "Memory of symbol tables and names.", (double)v->symbol_bytes);
	one(f, "symbols_forgotten_total", "counter", "Times that symbols were forgotten for the memory limit.", (double)v->symbols_reset);
	one(f, "resident_memory_bytes", "gauge", "Resident memory of the agent, with the tables.", (double)budget_rss());
	one(f, "heap_bytes", "gauge", "Resident memory of its own: no tables, no libraries.", (double)budget_heap());
	one(f, "names_deferred_total", "counter", "Times that a file had no names yet, because others took too long to be read.", (double)v->parsers.deferred);
	one(f, "names_cut_total", "counter", "Functions without a name because their file has too many.", (double)v->parsers.cut);
	one(f, "cpu_seconds_total", "counter", "CPU time of the agent.", (double)(budget_cpu_ns() + v->parsers.cpu_ns) / 1e9);
	one(f, "start_time_seconds", "gauge", "When it was started, Unix time.", (double)v->start_unix_ns / 1e9);
	one(f, "reloads_total", "counter", "Configuration reloads.", (double)v->reloads);
	one(f, "reload_errors_total", "counter", "Reloads refused because of the file.", (double)v->reload_errors);
	one(f, "log_suppressed_total", "counter", "Log lines left out by the rate limit.", (double)agent_log_suppressed());
}

static void write_delivery(FILE *f, const struct sender_stats *s, const struct spool_account *a)
{
	char code[16];

	head(f, "requests_total", "counter", "Requests, by the status of the answer; 0: none came.");
	for (size_t i = 0; i < s->ncodes; i++) {
		snprintf(code, sizeof(code), "%d", s->codes[i].code);
		labelled(f, "requests_total", "code", code, s->codes[i].n);
	}
	one(f, "request_bytes_total", "counter", "Bytes of request bodies.", (double)s->bytes);
	one(f, "request_seconds_total", "counter", "Time in requests.", s->seconds);
	one(f, "rejected_profiles_total", "counter", "Profiles that a server did not take of an accepted request.", (double)s->rejected_profiles);
	one(f, "failures_in_a_row", "gauge", "Requests that failed since the last one that did not.", (double)s->failures);
	one(f, "copy_errors_total", "counter", "Copies of windows that could not be written.", (double)s->copy_errors);
	one(f, "bodies_added_total", "counter", "Request bodies put into the spool (over restarts).", (double)a->added.entries);
	one(f, "bodies_delivered_total", "counter", "Bodies that a server accepted (over restarts).", (double)a->done[SPOOL_DELIVERED].entries);
	head(f, "bodies_dropped_total", "counter", "Bodies that were given up, by cause (over restarts).");
	for (int i = SPOOL_DELIVERED + 1; i < SPOOL_OUTCOMES; i++)
		labelled(f, "bodies_dropped_total", "cause", spool_outcome_names[i], a->done[i].entries);
	labelled(f, "bodies_dropped_total", "cause", "disk_slow", s->overrun.entries);
	one(f, "samples_added_total", "counter", "Samples put into the spool (over restarts).", (double)a->added.samples);
	one(f, "samples_delivered_total", "counter", "Samples that a server accepted (over restarts).", (double)a->done[SPOOL_DELIVERED].samples);
	head(f, "samples_dropped_total", "counter", "Samples that were given up, by cause (over restarts).");
	for (int i = SPOOL_DELIVERED + 1; i < SPOOL_OUTCOMES; i++)
		labelled(f, "samples_dropped_total", "cause", spool_outcome_names[i], a->done[i].samples);
	labelled(f, "samples_dropped_total", "cause", "disk_slow", s->overrun.samples);
	one(f, "spool_bodies", "gauge", "Bodies in the spool.", (double)a->held.entries);
	one(f, "spool_samples", "gauge", "Samples in the spool.", (double)a->held.samples);
	one(f, "spool_bytes", "gauge", "Bytes in the spool.", (double)a->bytes);
	one(f, "spool_bodies_in_memory", "gauge", "Of these: not on disk.", (double)a->in_memory);
	one(f, "spool_oldest_timestamp_seconds", "gauge", "Start of the oldest window in it, Unix time; 0: empty.", (double)a->oldest_ns / 1e9);
	one(f, "spool_write_errors_total", "counter", "Bodies that the disk did not take.", (double)a->disk_errors);
}

void metrics_write(FILE *f, const struct metrics_values *v, const struct sender_stats *s, const struct spool_account *a)
{
	head(f, "build_info", "gauge", "Version.");
	fprintf(f, "sfbpf_agent_build_info{version=\"" SFBPF_VERSION "\"} 1\n");
	write_sampling(f, v);
	write_off_cpu(f, v);
	write_memory(f, v);
	write_delivery(f, s, a);
}

/* ---- The server ---- */

static bool resolve(const char *address, struct addrinfo **ret, char *err, size_t cap)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	char host[256] = "127.0.0.1";
	const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : address;
	size_t len = colon ? (size_t)(colon - address) : 0;
	uint64_t n;
	int rc;

	if (num_u64(port, 0, 65535, &n) || len >= sizeof(host)) {
		snprintf(err, cap, "'%s' is not HOST:PORT", address);
		return false;
	}
	if (len) {
		snprintf(host, sizeof(host), "%.*s", (int)len, address);
		if (host[0] == '[' && host[len - 1] == ']') {
			memmove(host, host + 1, len);
			host[len - 2] = 0;
		}
	}
	rc = getaddrinfo(host, port, &hints, ret);
	if (rc)
		snprintf(err, cap, "%s: %s", host, gai_strerror(rc));
	return !rc;
}

struct metrics *metrics_listen(const char *address, char *err, size_t cap)
{
	struct metrics *m = calloc(1, sizeof(*m));
	struct addrinfo *ai = NULL;
	int on = 1;

	if (!m || !resolve(address, &ai, err, cap)) {
		free(m);
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->wake = eventfd(0, EFD_CLOEXEC);
	m->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->fd < 0 || m->wake < 0 || setsockopt(m->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(m->fd, ai->ai_addr, ai->ai_addrlen) || listen(m->fd, 16)) {
		snprintf(err, cap, "%s: %s", address, strerror(errno));
		freeaddrinfo(ai);
		metrics_stop(m);
		return NULL;
	}
	freeaddrinfo(ai);
	return m;
}

/* Until its empty line, or what came in a second. False: no request. */
static bool read_request(int fd, char *buf, size_t cap)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + CLIENT_MS * NUM_MS, now;
	size_t len = 0;

	while ((now = clock_ns(CLOCK_MONOTONIC)) < until && len < cap - 1) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, (int)((until - now) / NUM_MS) + 1) <= 0)
			return false;
		n = recv(fd, buf + len, cap - 1 - len, MSG_DONTWAIT);
		if (n <= 0)
			return false;
		len += (size_t)n;
		buf[len] = 0;
		if (strstr(buf, "\r\n\r\n") || strstr(buf, "\n\n"))
			return true;
	}
	return false;
}

static void write_reply(int fd, const char *data, size_t len)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + CLIENT_MS * NUM_MS, now;

	while (len && (now = clock_ns(CLOCK_MONOTONIC)) < until) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&p, 1, (int)((until - now) / NUM_MS) + 1) <= 0)
			return;
		n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0)
			return;
		data += n;
		len -= (size_t)n;
	}
}

static bool is_path(const char *request, const char *path)
{
	size_t n = strlen(path);

	return !strncmp(request, path, n) && (request[n] == ' ' || request[n] == '?');
}

static void reply(struct metrics *m, int fd, const char *request)
{
	struct metrics_values v;
	struct sender_stats s;
	struct spool_account a;
	const char *status = "200 OK", *path = request + 4;
	char *body = NULL, *all = NULL;
	size_t len = 0, all_len = 0;
	FILE *f = open_memstream(&body, &len);

	if (!f)
		return;
	pthread_mutex_lock(&m->lock);
	v = m->values;
	pthread_mutex_unlock(&m->lock);
	if (strncmp(request, "GET ", 4)) {
		status = "405 Method Not Allowed";
	} else if (is_path(path, "/metrics")) {
		sender_stats(m->sender, &s);
		spool_account(m->spool, &a);
		metrics_write(f, &v, &s, &a);
	} else if (is_path(path, "/healthz")) {
		bool stale = clock_ns(CLOCK_MONOTONIC) - v.alive_ns > v.stale_ns;

		if (stale)
			status = "503 Service Unavailable";
		fputs(stale ? "stuck\n" : "ok\n", f);
	} else {
		status = "404 Not Found";
	}
	if (!fclose(f) && (f = open_memstream(&all, &all_len))) {
		fprintf(f, "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %zu\r\n"
			"Connection: close\r\n\r\n", status, len);
		fwrite(body, 1, len, f);
		if (!fclose(f))
			write_reply(fd, all, all_len);
		free(all);
	}
	free(body);
}

static void *metrics_main(void *arg)
{
	struct metrics *m = arg;
	struct pollfd p[2] = { { .fd = m->fd, .events = POLLIN }, { .fd = m->wake, .events = POLLIN } };
	char request[4096];
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	m->on_thread();
	while (poll(p, 2, -1) >= 0 && !p[1].revents) {
		int fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
				poll(&p[1], 1, 100);
			continue;
		}
		if (read_request(fd, request, sizeof(request)))
			reply(m, fd, request);
		close(fd);
	}
	return NULL;
}

int metrics_start(struct metrics *m, struct sender *sender, struct spool *spool, void (*on_thread)(void))
{
	int rc;

	m->sender = sender;
	m->spool = spool;
	m->on_thread = on_thread;
	rc = pthread_create(&m->thread, NULL, metrics_main, m);
	m->running = !rc;
	return -rc;
}

void metrics_set(struct metrics *m, const struct metrics_values *v)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->values = *v;
	pthread_mutex_unlock(&m->lock);
}

void metrics_stop(struct metrics *m)
{
	uint64_t n = 1;

	if (!m)
		return;
	if (m->running && write(m->wake, &n, sizeof(n)) == sizeof(n))
		pthread_join(m->thread, NULL);
	if (m->fd >= 0)
		close(m->fd);
	if (m->wake >= 0)
		close(m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
