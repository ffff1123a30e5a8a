/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small process that makes the workers that read foreign bytes and may crash on them.
 *
 * It is forked at the start of the program, before there are threads, BPF maps, secrets or large
 * tables. A worker therefore has none of these, costs a fraction of a millisecond, and can be
 * replaced even when the main process may no longer fork. The server has only the capabilities that
 * it was started with and only its socket as a descriptor. It belongs to no terminal. It ends when
 * its socket is closed, and its children end with it.
 *
 * A child that is blocked in the kernel on a file system that does not answer cannot be ended. It
 * is not waited for. With 128 such children no new ones are made.
 */
#ifndef SFBPF_WORKER_FORK_SERVER_H
#define SFBPF_WORKER_FORK_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fork_server;

/*
 * The function that a child runs, with the rights of the fork server. sock: SOCK_SEQPACKET to the
 * process that requested the child. mem: an empty memfd, shared with it.
 */
typedef void (*fork_child_fn)(int sock, int mem);

struct fork_child {
	pid_t pid;     /* 0: no child */
	int sock, mem; /* our ends; close-on-exec */
};

#define FORK_CHILD_NONE ((struct fork_child){ 0, -1, -1 })
#define FORK_FDS_MAX	3 /* descriptors in one message */
/*
 * Nice value of the server and its children, for which the main process waits, also on a busy
 * machine. A child may change its own between this and 0. Best effort: without the capability, it
 * is that of the main process.
 */
#define FORK_CHILD_NICE (-10)

/*
 * Call it while there is only one thread. rights: capabilities (PRIVS_CAP) to keep, of those that
 * we have. The copy of the environment is wiped. NULL with errno.
 */
struct fork_server *fork_server_start(uint64_t rights);
/* Makes a child that runs fn. Any thread. 0 or -errno; -EPIPE: the server is gone for good. */
int fork_server_child(struct fork_server *s, fork_child_fn fn, struct fork_child *ret);
/*
 * Kills the child and waits briefly for its end. Keeps our ends of the socket, which gets POLLHUP
 * when the child has ended, and of the memory.
 */
void fork_server_kill(struct fork_server *s, const struct fork_child *c);
void fork_child_close(struct fork_child *c); /* closes our ends; sets *c to FORK_CHILD_NONE */
uint64_t fork_child_cpu_ns(const struct fork_child *c); /* CPU time used; 0: the child is gone */
void fork_server_stop(struct fork_server *s);		/* also ends its children; s may be NULL */
pid_t fork_server_pid(const struct fork_server *s);

/*
 * Send or receive one message with descriptors on a SOCK_SEQPACKET socket. 0 for a complete
 * message, or -errno. Receive: -EPIPE at the end, -EBADMSG for a wrong size or number of
 * descriptors.
 */
int fork_send(int sock, const void *data, size_t len, const int *fds, size_t nfds, int flags);
int fork_receive(int sock, void *data, size_t len, int *ret_fds, size_t nfds, int flags);
/* A message of least to most bytes */
int fork_receive_most(int sock, void *data, size_t least, size_t most, int *ret_fds, size_t nfds,
		      int flags);

#endif
