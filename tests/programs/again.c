/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * again SECONDS HOW USEC: a thread that blocks three times for USEC and then three times for twice
 * as long, in stacks that look like the ones before in all but one thing.
 *
 *   loaded     the code: two libraries of the same layout, loaded in turn at the same address. 77
 *              if they are not
 *   outermost  the outermost function, with the same twenty frames inside
 *   exchanged  what a descriptor stands for: a pipe or a socket, so that only the kernel part
 *              differs
 *   named      the thread's name
 *   ended      threads that each block eight times for USEC, and the one that waits for them
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include "prog.h"

typedef long enter_fn(long usec);

static int ends[2][2]; /* of the pipe, of the socket: where to read and where to write */

static struct timespec pause_of(long usec)
{
	return (struct timespec){ usec / 1000000, usec % 1000000 * 1000 };
}

/* The rest of a function whose frame is part of the chain: it blocks in syscall(). */
#define BLOCK_FOR(usec)                             \
	struct timespec ts = pause_of(usec);        \
	long r = syscall(SYS_nanosleep, &ts, NULL); \
                                                    \
	prog_keep(&r);                              \
	return r

/* ---- loaded ---- */

/* Not in registers, so that these are the same for both libraries, too. */
static char library[4096];
static volatile long loaded_usec;

static NOIPA void *loaded_turn(void)
{
	void *lib = dlopen(library, RTLD_NOW), *at;
	void (*enter)(const volatile long *usec);

	if (!lib)
		return NULL;
	*(void **)&enter = dlsym(lib, "ag_enter");
	at = (void *)((struct link_map *)lib)->l_addr;
	if (enter) {
		enter(&loaded_usec);
		enter(&loaded_usec);
		enter(&loaded_usec);
	}
	dlclose(lib);
	return at;
}

static NOIPA int loaded_run(long usec)
{
	ssize_t n = readlink("/proc/self/exe", library, sizeof(library) - 32);
	void *at[2];

	while (n > 0 && library[n - 1] != '/')
		n--;
	while (!prog_stop) {
		for (int i = 0; i < 2; i++) {
			snprintf(library + n, 32, i ? "libagainb.so" : "libagaina.so");
			loaded_usec = i ? 2 * usec : usec;
			at[i] = loaded_turn();
		}
		if (!at[0] || at[0] != at[1])
			return 77;
	}
	return 0;
}

/* ---- outermost ---- */

static NOIPA long inner_block(long usec)
{
	BLOCK_FOR(usec);
}

static NOIPA long inner_down(long n, long usec)
{
	long r = n > 1 ? inner_down(n - 1, usec) : inner_block(usec);

	prog_keep(&r);
	return r;
}

static NOIPA long outermost_a(long usec)
{
	long r = inner_down(20, usec);

	prog_keep(&r);
	return r;
}

static NOIPA long outermost_b(long usec)
{
	long r = inner_down(20, usec);

	prog_keep(&r);
	return r;
}

static NOIPA int outermost_run(long usec)
{
	enter_fn *volatile fns[2] = { outermost_a, outermost_b };

	for (unsigned i = 0; !prog_stop; i++)
		fns[i / 3 & 1]((long)(i / 3 & 1) * usec + usec);
	return 0;
}

/* ---- exchanged ---- */

static void *writer(void *arg)
{
	for (unsigned i = 0;; i++) {
		struct timespec ts = pause_of((long)(i / 3 & 1) * (long)arg + (long)arg);

		nanosleep(&ts, NULL);
		if (write(ends[i / 3 & 1][1], "", 1) != 1)
			return NULL;
	}
}

static NOIPA long exchanged_block(int fd)
{
	char c;
	long r = syscall(SYS_read, fd, &c, 1);

	prog_keep(&c);
	return r;
}

static NOIPA int exchanged_run(long usec)
{
	pthread_t thread;
	int fd = dup(0);

	if (fd < 0 || pipe(ends[0]) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends[1]) ||
	    pthread_create(&thread, NULL, writer, (void *)usec))
		return 1;
	for (unsigned i = 0; !prog_stop; i++)
		if (dup2(ends[i / 3 & 1][0], fd) < 0 || exchanged_block(fd) != 1)
			return 1;
	return 0;
}

/* ---- named ---- */

static NOIPA long named_block(long usec)
{
	BLOCK_FOR(usec);
}

static NOIPA int named_run(long usec)
{
	for (unsigned i = 0; !prog_stop; i++) {
		prctl(PR_SET_NAME, i / 3 & 1 ? "again-b" : "again-a");
		named_block((long)(i / 3 & 1) * usec + usec);
	}
	return 0;
}

/* ---- ended ---- */

static NOIPA long ended_block(long usec)
{
	BLOCK_FOR(usec);
}

static NOIPA void *ended_thread(void *arg)
{
	for (int i = 0; i < 8; i++)
		ended_block((long)arg);
	return NULL;
}

static NOIPA int join_block(pthread_t thread)
{
	int r = pthread_join(thread, NULL);

	prog_keep(&r);
	return r;
}

static NOIPA int ended_run(long usec)
{
	pthread_t thread;

	while (!prog_stop)
		if (pthread_create(&thread, NULL, ended_thread, (void *)usec) || join_block(thread))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	long usec = prog_arg(argc, argv, 3, 2000);

	prog_init(argc, argv);
	if (!strcmp(how, "loaded"))
		return loaded_run(usec);
	if (!strcmp(how, "outermost"))
		return outermost_run(usec);
	if (!strcmp(how, "named"))
		return named_run(usec);
	if (!strcmp(how, "ended"))
		return ended_run(usec);
	return strcmp(how, "exchanged") ? 2 : exchanged_run(usec);
}
