/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client of a worker process: one question at a time, within limits. The process is started
 * when there is a question and ended after some idle seconds. One that dies, exceeds its limits or
 * breaks the protocol is ended, and the next question starts another one.
 *
 * A process may be blocked in the kernel on a file system that does not answer. Then it does not
 * end when it is killed. Its ends of the socket and the memory stay open until it has ended or the
 * worker is dropped.
 */
#ifndef SFBPF_WORKER_WORKER_H
#define SFBPF_WORKER_WORKER_H

#include <stddef.h>

#include "worker/allowance.h"
#include "worker/fork_server.h"

#define WORKER_IDLE_NS (3 * NUM_S) /* a new child takes a millisecond */

struct worker_limits {	       /* limits of one question; 0 or NULL: no limit */
	uint64_t wall_ns;      /* cut when `allowance` ends */
	uint64_t cpu_ns;       /* CPU time of the child */
	uint64_t silent_ns;    /* no message and no CPU time used: the child is blocked */
	bool (*stopped)(void); /* worker_wait: give up */
	struct allowance *allowance;
};

struct worker {
	struct fork_server *server;
	fork_child_fn fn;
	struct worker_totals *totals;
	struct fork_child child;
	struct worker_limits limits;
	bool busy;	   /* an answer is due */
	bool killed;	   /* busy, and past its limits: only the end of the child is due */
	uint64_t asked_ns; /* time of the last question, CLOCK_MONOTONIC */
	uint64_t since_ns; /* time of the last question, message or check for silence */
	uint64_t cpu_ns;   /* CPU time of the child that is part of the totals */
};

/* All arguments must outlive the worker. */
void worker_init(struct worker *w, struct fork_server *server, fork_child_fn fn,
		 struct worker_totals *totals);
/* Starts a child if there is none. 0 or -ECHILD. worker_ask does this too. */
int worker_start(struct worker *w);
/*
 * Sends a question. A descriptor below 0 is replaced with the child's own mem. 0; -ECHILD: no child
 * can be started.
 */
int worker_ask(struct worker *w, const struct worker_limits *limits, const void *ask, size_t len,
	       const int *fds, size_t nfds);
/*
 * Receives a message of least to most bytes, with a descriptor if ret_fd is set. It does not wait.
 * 0: an answer; the worker is no longer busy. -EAGAIN: nothing yet. -ECHILD: the child died, busy
 * or idle. -ETIMEDOUT: it was ended because of its limits; -ETIME: and it had used a good part of
 * its CPU time.
 */
int worker_look(struct worker *w, void *answer, size_t least, size_t most, int *ret_fd);
/* Waits until worker_look does not return -EAGAIN. -EINTR: limits.stopped returned true. */
int worker_wait(struct worker *w, void *answer, size_t least, size_t most, int *ret_fd);
bool worker_alive(struct worker *w); /* false: there is no child, or it has ended after a kill */
void worker_end(struct worker *w);
void worker_lose(struct worker *w); /* ends the child and counts it as died */
void worker_rest(struct worker *w); /* ends the child if it has been idle for some seconds */
/* Closes our ends of the child without killing it: it ends when it next reads or writes. */
void worker_drop(struct worker *w);

struct worker_question {
	const void *ask;
	size_t len;
	const int *fds;
	size_t nfds;
	void *answer;
	size_t answer_len;
	int *ret_fd; /* the descriptor that comes with an answer; NULL: none does */
	bool (*sound)(const void *ask, const void *answer);
	uint32_t owner;		  /* the user whose allowance is charged */
	uint64_t wall_ns, cpu_ns; /* further limits; 0: none */
};

/*
 * Asks and waits within the allowance, twice if the child dies: it may have been killed from
 * outside. 0; -EAGAIN: the allowance is used up (counted as deferred); else as worker_wait.
 */
int worker_call(struct worker *w, struct allowance *allowance, const struct worker_question *q);

/* ---- The child ---- */

struct worker_request {
	const void *ask;
	const int *fds; /* they are closed after the answer is sent */
	int sock, mem;
	void *answer; /* zeroed */
};

struct worker_service {
	size_t least, most; /* bytes of a question; those after a shorter one are 0 */
	size_t nfds;
	size_t answer_len;
	bool sends_fd;
	/*
	 * Fills the answer. Returns the descriptor to send with it, which is closed then; below 0:
	 * `mem` is sent instead, if sends_fd is set.
	 */
	int (*reply)(const struct worker_request *r);
};

/* Answers questions until the other end of the socket is closed. Then the process exits. */
_Noreturn void worker_serve(int sock, int mem, const struct worker_service *s);

#endif
