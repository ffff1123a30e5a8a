/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/iter_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"

#define SILENT_NS (2 * NUM_S)
#define LOOK_MS	  10 /* interval at which iter_run checks how long the child was blocked */

struct message {
	uint32_t last; /* bool: end of the list; this message has no record */
	_Alignas(uint64_t) uint8_t record[ITER_RECORD_MAX];
};

/*
 * One record at a time: a larger read would wait for more records, and the records read so far
 * would be lost if it never returned.
 */
static int read_all(const struct worker_request *r)
{
	const uint32_t *size = r->ask;
	struct message *m = r->answer;
	ssize_t got;

	if (!*size || *size > sizeof(m->record))
		_exit(1);
	/* EAGAIN: the iterator visited a million mappings without a record. */
	while ((got = read(r->fds[0], m->record, *size)) == (ssize_t)*size ||
	       (got < 0 && errno == EAGAIN))
		if (got > 0 && fork_send(r->sock, m, sizeof(*m), NULL, 0, 0))
			_exit(1);
	if (got)
		_exit(1);
	m->last = 1;
	return -1;
}

static void iter_child_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = sizeof(uint32_t),
		.most = sizeof(uint32_t),
		.nfds = 1,
		.answer_len = sizeof(struct message),
		.reply = read_all,
	};

	prctl(PR_SET_NAME, "sfbpf-walk");
	worker_serve(sock, mem, &service);
}

int iter_read(struct fork_server *server, int iter_fd, size_t size,
	      void (*take)(void *ctx, const void *record), void *ctx, bool (*stopped)(void),
	      struct worker_totals *totals)
{
	/* There may be many mappings without a record. */
	const struct worker_limits limits = { .silent_ns = SILENT_NS, .stopped = stopped };
	const uint32_t ask = (uint32_t)size;
	struct worker w;
	struct message m = { .last = 0 };
	int err;

	worker_init(&w, server, iter_child_main, totals);
	err = worker_ask(&w, &limits, &ask, sizeof(ask), &iter_fd, 1);
	while (!err && !(err = worker_wait(&w, &m, sizeof(m), sizeof(m), NULL)) && !m.last) {
		take(ctx, m.record);
		w.busy = true;
	}
	worker_end(&w);
	return err;
}

/* How long a process has waited for a CPU so far, in ns. 0: the kernel does not say. */
static uint64_t queued_ns(pid_t pid)
{
	unsigned long long ns;
	char path[48];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%*u %llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

/*
 * How long the child was neither running nor waiting for a CPU since it was asked. On a busy
 * machine it may wait for a CPU most of the time.
 */
static uint64_t blocked_ns(const struct worker *w)
{
	uint64_t active = fork_child_cpu_ns(&w->child) + queued_ns(w->child.pid),
		 all = clock_ns(CLOCK_MONOTONIC) - w->asked_ns;

	return all > active ? all - active : 0;
}

int iter_run(struct fork_server *server, int iter_fd, const struct iter_patience *patience,
	     uint64_t *ret_ns, struct worker_totals *totals)
{
	const struct worker_limits limits = { 0 };
	const uint32_t ask = sizeof(uint64_t);
	struct worker w;
	struct message m;
	struct pollfd p = { .events = POLLIN };
	int err;

	*ret_ns = 0;
	worker_init(&w, server, iter_child_main, totals);
	err = worker_ask(&w, &limits, &ask, sizeof(ask), &iter_fd, 1);
	p.fd = w.child.sock;
	while (!err && (err = worker_look(&w, &m, sizeof(m), sizeof(m), NULL)) == -EAGAIN) {
		*ret_ns = blocked_ns(&w);
		err = *ret_ns >= patience->ns ? -ETIMEDOUT : 0;
		if (!err)
			poll(&p, 1, LOOK_MS);
	}
	if (err == -ETIMEDOUT) {
		totals->late++;
		patience->over(patience->ctx);
	}
	worker_end(&w);
	return err;
}
