/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_MS	    100 /* interval at which a wait checks the limits */
#define LOOK_CPU_MS 2	/* this interval with a short limit of CPU time */

void worker_init(struct worker *w, struct fork_server *server, fork_child_fn fn,
		 struct worker_totals *totals)
{
	*w = (struct worker){
		.server = server, .fn = fn, .totals = totals, .child = FORK_CHILD_NONE
	};
}

static void count_cpu(struct worker *w)
{
	uint64_t cpu = fork_child_cpu_ns(&w->child);

	if (cpu > w->cpu_ns) {
		w->totals->cpu_ns += cpu - w->cpu_ns;
		w->cpu_ns = cpu;
	}
}

void worker_drop(struct worker *w)
{
	fork_child_close(&w->child);
	w->busy = w->killed = false;
	w->cpu_ns = 0;
}

void worker_end(struct worker *w)
{
	count_cpu(w);
	if (w->child.pid && !w->killed)
		fork_server_kill(w->server, &w->child);
	worker_drop(w);
}

void worker_lose(struct worker *w)
{
	w->totals->died += w->child.pid != 0;
	worker_end(w);
}

void worker_rest(struct worker *w)
{
	if (w->child.pid && !w->busy && clock_ns(CLOCK_MONOTONIC) - w->since_ns > WORKER_IDLE_NS)
		worker_end(w);
}

int worker_start(struct worker *w)
{
	return !w->child.pid && fork_server_child(w->server, w->fn, &w->child) ? -ECHILD : 0;
}

int worker_ask(struct worker *w, const struct worker_limits *limits, const void *ask, size_t len,
	       const int *fds, size_t nfds)
{
	int send[FORK_FDS_MAX];

	if (w->killed)
		worker_drop(w);
	for (int tries = 0; tries < 2; tries++) {
		if (worker_start(w))
			return -ECHILD;
		for (size_t i = 0; i < nfds; i++)
			send[i] = fds[i] < 0 ? w->child.mem : fds[i];
		if (!fork_send(w->child.sock, ask, len, send, nfds, MSG_DONTWAIT)) {
			w->limits = *limits;
			w->busy = true;
			w->asked_ns = w->since_ns = clock_ns(CLOCK_MONOTONIC);
			return 0;
		}
		/* The child ended while it was idle. */
		worker_lose(w);
	}
	return -ECHILD;
}

static uint64_t deadline(const struct worker *w)
{
	uint64_t until = w->limits.wall_ns ? w->asked_ns + w->limits.wall_ns : UINT64_MAX;

	return w->limits.allowance ? allowance_cut(w->limits.allowance, until) : until;
}

bool worker_alive(struct worker *w)
{
	struct pollfd p = { .fd = w->child.sock };

	/* The other end of the socket is closed when the child has ended. */
	if (w->killed && poll(&p, 1, 0) > 0)
		worker_drop(w);
	return w->child.pid != 0;
}

/* Returns as worker_look, for a busy child without a message. */
static int check_limits(struct worker *w)
{
	const struct worker_limits *l = &w->limits;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), used;
	bool late = now >= deadline(w), silent = l->silent_ns && now - w->since_ns >= l->silent_ns;

	if (!late && !silent && (!l->cpu_ns || now - w->asked_ns < l->cpu_ns))
		return -EAGAIN;
	used = fork_child_cpu_ns(&w->child) - w->cpu_ns;
	if (silent && used) {
		count_cpu(w);
		w->since_ns = now;
		silent = false;
	}
	if (!late && !silent && (!l->cpu_ns || used < l->cpu_ns))
		return -EAGAIN;
	w->totals->late++;
	count_cpu(w);
	fork_server_kill(w->server, &w->child);
	w->killed = true;
	/* The child may not get its CPU time before the deadline on a busy machine. */
	return l->cpu_ns && used >= l->cpu_ns / 4 ? -ETIME : -ETIMEDOUT;
}

int worker_look(struct worker *w, void *answer, size_t least, size_t most, int *ret_fd)
{
	int err;

	if (!worker_alive(w) || w->killed)
		return -EAGAIN;
	err = fork_receive_most(w->child.sock, answer, least, most, ret_fd, ret_fd ? 1 : 0,
				MSG_DONTWAIT);
	if (err == -EAGAIN)
		return w->busy ? check_limits(w) : -EAGAIN;
	if (!err && w->busy) {
		w->busy = false;
		w->since_ns = clock_ns(CLOCK_MONOTONIC);
		count_cpu(w);
		return 0;
	}
	if (!err && ret_fd)
		close(*ret_fd);
	worker_lose(w);
	return -ECHILD;
}

/* Time until the next check of the limits. */
static int look_ms(const struct worker *w)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), until = deadline(w),
		 left = until > now ? until - now : 0;
	int look = w->limits.cpu_ns && w->limits.cpu_ns < NUM_S ? LOOK_CPU_MS : LOOK_MS;

	return left / NUM_MS < (uint64_t)look ? (int)(left / NUM_MS) + 1 : look;
}

int worker_wait(struct worker *w, void *answer, size_t least, size_t most, int *ret_fd)
{
	struct pollfd p = { .fd = w->child.sock, .events = POLLIN };
	int err;

	for (;;) {
		if (w->limits.stopped && w->limits.stopped())
			return -EINTR;
		err = worker_look(w, answer, least, most, ret_fd);
		if (err != -EAGAIN)
			return err;
		poll(&p, 1, look_ms(w));
	}
}

static int try_call(struct worker *w, struct allowance *a, const struct worker_question *q)
{
	uint64_t have = allowance_have(a, q->owner), start = clock_ns(CLOCK_MONOTONIC),
		 cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct worker_limits limits = {
		.wall_ns = q->wall_ns && q->wall_ns < have ? q->wall_ns : have,
		.cpu_ns = q->cpu_ns,
		.allowance = a,
	};
	int err;

	if (!have) {
		w->totals->deferred++;
		return -EAGAIN;
	}
	err = worker_ask(w, &limits, q->ask, q->len, q->fds, q->nfds);
	if (!err)
		err = worker_wait(w, q->answer, q->answer_len, q->answer_len, q->ret_fd);
	allowance_spend(a, q->owner, clock_ns(CLOCK_MONOTONIC) - start);
	a->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (err || q->sound(q->ask, q->answer))
		return err;
	if (q->ret_fd)
		close(*q->ret_fd);
	worker_lose(w);
	return -ECHILD;
}

int worker_call(struct worker *w, struct allowance *allowance, const struct worker_question *q)
{
	int err = try_call(w, allowance, q);

	return err == -ECHILD ? try_call(w, allowance, q) : err;
}

/* ---- The child ---- */

void worker_serve(int sock, int mem, const struct worker_service *s)
{
	int fds[FORK_FDS_MAX], fd = -1, err = 0;
	void *ask = malloc(s->most + 1), *answer = malloc(s->answer_len);
	const struct worker_request request = { ask, fds, sock, mem, answer };

	while (ask && answer && !err) {
		memset(ask, 0, s->most + 1);
		memset(answer, 0, s->answer_len);
		if (fork_receive_most(sock, ask, s->least, s->most, fds, s->nfds, 0))
			break;
		fd = s->reply(&request);
		err = fork_send(sock, answer, s->answer_len, fd < 0 ? &mem : &fd, s->sends_fd, 0);
		for (size_t i = 0; i < s->nfds; i++)
			close(fds[i]);
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}
