/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/fork_server.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "worker/child_end.h"
#include "worker/jail.h"
#include "worker/privs.h"

#define ANSWER_S  10 /* seconds for a fork; the server is given up if it does not answer in time */
/*
 * Killed children that have not exited; with this many no new child is made. What asks for children
 * limits those of each user, and those of all users but root: kern/opener.h to 40 in all, and
 * paths/path_opener.h to 40 more of the same server, beside a few that read lists and memory. This
 * is above their sum. Otherwise users who reach those limits would keep the children of all others
 * from being made, root's too.
 */
#define MAX_STUCK 128

struct fork_server {
	pthread_mutex_t lock;
	pid_t pid;
	int sock; /* -1: the server is gone */
};

struct ask {
	pid_t end; /* child to end; 0: make a new one */
	/* what a new child runs; valid because the server is a fork with the same addresses */
	fork_child_fn fn;
};

struct answer {
	int err;
	struct fork_child child; /* its descriptors come with the message */
};

/* ---- Messages ---- */

union control {
	char room[CMSG_SPACE(FORK_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int fork_send(int sock, const void *data, size_t len, const int *fds, size_t nfds, int flags)
{
	struct iovec io = { (void *)data, len };
	union control control = { { 0 } };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t n;

	if (nfds) {
		m.msg_control = control.room;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do
		n = sendmsg(sock, &m, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : (size_t)n == len ? 0 : -EMSGSIZE;
}

/* Takes the received descriptors and closes those beyond nfds. */
static size_t take_fds(struct msghdr *m, int *fds, size_t nfds)
{
	size_t got = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (got < nfds)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	return got;
}

int fork_receive_most(int sock, void *data, size_t least, size_t most, int *ret_fds, size_t nfds,
		      int flags)
{
	struct iovec io = { data, most };
	union control control;
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = control.room,
			    .msg_controllen = sizeof(control) };
	size_t got;
	ssize_t n;

	do
		n = recvmsg(sock, &m, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	got = take_fds(&m, ret_fds, nfds);
	if (n && (size_t)n >= least && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && got == nfds)
		return 0;
	while (got)
		close(ret_fds[--got]);
	return n ? -EBADMSG : -EPIPE;
}

int fork_receive(int sock, void *data, size_t len, int *ret_fds, size_t nfds, int flags)
{
	return fork_receive_most(sock, data, len, len, ret_fds, nfds, flags);
}

/* ---- The server's process ---- */

static _Noreturn void be_child(fork_child_fn fn, int sock, int mem, int other)
{
	const int keep[] = { sock, mem };

	close(other); /* its number may be below 3 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	jail_close_others(keep, 2);
	fn(sock, mem);
	_exit(1);
}

static int make_child(fork_child_fn fn, struct fork_child *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	*ret = (struct fork_child){ -1, pair[0], memfd_create("sfbpf-tables", MFD_CLOEXEC) };
	if (ret->mem >= 0)
		ret->pid = fork();
	if (!ret->pid)
		be_child(fn, pair[1], ret->mem, pair[0]);
	close(pair[1]);
	if (ret->pid > 0)
		return 0;
	fork_child_close(ret);
	return -EAGAIN;
}

struct stuck {
	pid_t pids[MAX_STUCK];
	size_t n;
};

/* Reaps killed children that have exited since. */
static void reap(struct stuck *stuck)
{
	for (size_t i = 0; i < stuck->n;)
		if (waitpid(stuck->pids[i], NULL, WNOHANG))
			stuck->pids[i] = stuck->pids[--stuck->n];
		else
			i++;
}

static void end_child(pid_t pid, struct stuck *stuck)
{
	int status;

	if (!child_kill(pid, &status) && stuck->n < MAX_STUCK)
		stuck->pids[stuck->n++] = pid;
}

static _Noreturn void serve(int sock)
{
	struct stuck stuck = { .n = 0 };
	struct ask ask;

	while (!fork_receive(sock, &ask, sizeof(ask), NULL, 0, 0)) {
		struct answer answer = { .child = FORK_CHILD_NONE };
		int fds[2], err;

		reap(&stuck);
		if (ask.end)
			end_child(ask.end, &stuck);
		else
			answer.err = stuck.n == MAX_STUCK ? -EAGAIN
							  : make_child(ask.fn, &answer.child);
		fds[0] = answer.child.sock;
		fds[1] = answer.child.mem;
		err = fork_send(sock, &answer, sizeof(answer), fds, answer.child.pid ? 2 : 0, 0);
		fork_child_close(&answer.child);
		if (err)
			break;
	}
	_exit(0);
}

/* Workers read foreign files and must not see tokens in the environment. */
static void wipe_environment(void)
{
	for (char **e = environ; e && *e; e++)
		explicit_bzero(*e, strlen(*e));
}

/* Lets the kernel kill the workers first if memory runs out. */
static void be_first_to_go(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1000", 4) < 0)
		errno = 0; /* not possible on this system */
	close(fd);
}

static _Noreturn void be_server(uint64_t rights, int sock, pid_t parent)
{
	const struct rlimit nice = { 20 - FORK_CHILD_NICE, 20 - FORK_CHILD_NICE };

	/*
	 * Signals that a terminal or a service manager sends to the whole group are for the parent,
	 * which ends the server when it is done.
	 */
	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	prctl(PR_SET_NAME, "sfbpf-parse");
	setrlimit(RLIMIT_NICE, &nice);
	setpriority(PRIO_PROCESS, 0, FORK_CHILD_NICE);
	if (sock < 3)
		sock = fcntl(sock, F_DUPFD_CLOEXEC, 3);
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer reports to stderr */
	close_range(0, 2, 0);
#endif
	jail_close_others(&sock, 1);
	wipe_environment();
	be_first_to_go();
	if (privs_keep(rights))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	serve(sock);
}

/* ---- The main process ---- */

struct fork_server *fork_server_start(uint64_t rights)
{
	const struct timeval timeout = { .tv_sec = ANSWER_S };
	struct fork_server *s = malloc(sizeof(*s));
	pid_t self = getpid();
	int pair[2];

	if (!s)
		return NULL;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		free(s);
		return NULL;
	}
	s->pid = fork();
	if (!s->pid)
		be_server(rights, pair[1], self);
	close(pair[1]);
	if (s->pid < 0) {
		int err = errno;

		close(pair[0]);
		free(s);
		errno = err;
		return NULL;
	}
	s->sock = pair[0];
	setsockopt(s->sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

static int call(struct fork_server *s, struct ask ask, struct answer *ret, int *fds)
{
	int err;

	pthread_mutex_lock(&s->lock);
	err = s->sock < 0 ? -EPIPE : fork_send(s->sock, &ask, sizeof(ask), NULL, 0, 0);
	if (!err)
		err = fork_receive(s->sock, ret, sizeof(*ret), fds, ask.end ? 0 : 2, 0);
	if (err == -EBADMSG && !ask.end)
		err = -EAGAIN; /* an answer without descriptors */
	else if (err && s->sock >= 0) {
		close(s->sock);
		s->sock = -1;
		err = -EPIPE;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

int fork_server_child(struct fork_server *s, fork_child_fn fn, struct fork_child *ret)
{
	struct answer answer;
	int fds[2], err;

	*ret = FORK_CHILD_NONE;
	err = call(s, (struct ask){ .fn = fn }, &answer, fds);
	if (!err)
		*ret = (struct fork_child){ answer.child.pid, fds[0], fds[1] };
	return err;
}

uint64_t fork_child_cpu_ns(const struct fork_child *c)
{
	clockid_t clock;

	return !c->pid || clock_getcpuclockid(c->pid, &clock) ? 0 : clock_ns(clock);
}

void fork_server_kill(struct fork_server *s, const struct fork_child *c)
{
	struct answer answer;

	call(s, (struct ask){ .end = c->pid }, &answer, NULL);
}

void fork_child_close(struct fork_child *c)
{
	if (c->pid) {
		close(c->sock);
		close(c->mem);
	}
	*c = FORK_CHILD_NONE;
}

void fork_server_stop(struct fork_server *s)
{
	if (!s)
		return;
	if (s->sock >= 0)
		close(s->sock);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

pid_t fork_server_pid(const struct fork_server *s)
{
	return s->pid;
}
