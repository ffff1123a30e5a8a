/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small process that makes others when they are needed: children that read what somebody else made, and may not survive it.
 *
 * It is forked at the start of the program, before there are threads, BPF maps, secrets or large tables; so a child has none of
 * these, costs a fraction of a millisecond, and can be replaced when our own process may not fork any more. It holds no capabilities but those
 * that it was started for and no descriptors but its socket, belongs to no terminal, and ends when its socket is closed; then so do its children.
 *
 * A child that waits in the kernel for a file system that does not answer cannot be ended. Nobody waits for it; with 32 of them there are
 * no new ones.
 */
#ifndef SFBPF_BASE_FORK_SERVER_H
#define SFBPF_BASE_FORK_SERVER_H

#include <stdint.h>
#include <sys/types.h>

struct fork_server;

/* What a child runs, with the rights of the fork server; sock: SOCK_SEQPACKET to whoever asked for it; mem: an empty memfd, shared too. */
typedef void (*fork_child_fn)(int sock, int mem);

struct fork_child {
	pid_t pid;		/* 0: there is none */
	int sock, mem;		/* our ends; close-on-exec */
};

#define FORK_CHILD_NONE ((struct fork_child){ 0, -1, -1 })
#define FORK_CHILD_NICE (-10)	/* that a child may give itself, if we may now */

/* While there is one thread. rights: capabilities (PRIVS_CAP) that stay, if we have them. The environment is wiped in its copy. NULL with errno. */
struct fork_server *fork_server_start(uint64_t rights);
/* A new child, which runs fn. Any thread. 0 or -errno; -EPIPE: the server is gone, and stays so. */
int fork_server_child(struct fork_server *s, fork_child_fn fn, struct fork_child *ret);
/* Kills it, if it still lives, and closes our ends. *c is FORK_CHILD_NONE then. Returns wait(2)'s status, -1 if it is not known. */
int fork_server_end(struct fork_server *s, struct fork_child *c);
/* Kills it and keeps our ends: its socket is at its end (POLLHUP) when it is no more. Returns as fork_server_end. */
int fork_server_kill(struct fork_server *s, const struct fork_child *c);
uint64_t fork_child_cpu_ns(const struct fork_child *c);	/* that it has used; 0: it is gone */
/*
 * Waits for fd to be readable, whose other end c has. 0; -ETIMEDOUT: not until deadline_ns (CLOCK_MONOTONIC), or c has not used the CPU for
 * silent_ns: it waits for somebody who does not answer. It is looked at in steps of look_ms.
 */
int fork_child_wait(const struct fork_child *c, int fd, int look_ms, uint64_t silent_ns, uint64_t deadline_ns);
void fork_server_stop(struct fork_server *s);	/* and its children; also NULL */
pid_t fork_server_pid(const struct fork_server *s);

/* A message on a SOCK_SEQPACKET socket, with descriptors. All of it, or -errno; receive: -EPIPE at the end, -EBADMSG if it is not of that size. */
int fork_send(int sock, const void *data, size_t len, const int *fds, size_t nfds, int flags);
int fork_receive(int sock, void *data, size_t len, int *ret_fds, size_t nfds, int flags);
int fork_receive_most(int sock, void *data, size_t least, size_t most, int *ret_fds, size_t nfds, int flags);	/* of least to most bytes */
int fork_receive_until(int sock, void *data, size_t len, int *ret_fds, size_t nfds, uint64_t until_ns);	/* -ETIMEDOUT; of CLOCK_MONOTONIC */

#endif
