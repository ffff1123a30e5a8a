/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs with a known call chain share. Each one takes [SECONDS [PARAMETERS]], builds
 * its chain once and then spends its time under it; chains.txt says which stacks a profiler has to
 * show. 0 seconds: until killed. The hot part is three functions, so that samples hit loops, calls,
 * prologues and epilogues alike: NAME_hot loops, NAME_mid saves registers, NAME_leaf lives in the
 * red zone.
 */
#ifndef SFBPF_TESTS_PROG_H
#define SFBPF_TESTS_PROG_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* No inlining, cloning, folding of equal functions or passing of knowledge between functions. */
#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif
/* No frame of its own, whatever the flags. */
#define PROG_HELPER __attribute__((always_inline))

static volatile sig_atomic_t prog_stop;

static void prog_on_alarm(int sig)
{
	(void)sig;
	prog_stop = 1;
}

static inline PROG_HELPER long prog_arg(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? strtol(argv[i], NULL, 10) : otherwise;
}

/* Ends the process's hot loops after the seconds in argv[1]; the signal comes once, at the end. */
static inline PROG_HELPER void prog_init(int argc, char **argv)
{
	const char *comm = getenv("PROG_COMM");
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = prog_on_alarm;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &sa, NULL);
	alarm((unsigned)prog_arg(argc, argv, 1, 0));
	if (comm) /* fexecve names the process after the descriptor */
		prctl(PR_SET_NAME, comm, 0, 0, 0);
}

/* Keeps memory alive and a call from being the last thing its function does. */
static inline PROG_HELPER void prog_keep(const volatile void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

#define HOT_PARTS(name)                                                         \
	static NOIPA unsigned long name##_leaf(unsigned long x)                 \
	{                                                                       \
		volatile unsigned long acc[4] = { x, 1, 2, 3 };                 \
		unsigned int i;                                                 \
                                                                                \
		for (i = 0; i < 24; i++)                                        \
			acc[i & 3] = acc[(i + 1) & 3] * 31 + i;                 \
		return acc[0];                                                  \
	}                                                                       \
                                                                                \
	static NOIPA unsigned long name##_mid(unsigned long x, unsigned long y) \
	{                                                                       \
		unsigned long a = name##_leaf(x), b = name##_leaf(x ^ y);       \
		unsigned long c = name##_leaf(a + y);                           \
                                                                                \
		return a + b * c + x - y;                                       \
	}

#define HOT(name)                                              \
	HOT_PARTS(name)                                        \
	static NOIPA unsigned long name##_hot(unsigned long x) \
	{                                                      \
		unsigned long y = x;                           \
                                                               \
		while (!prog_stop) {                           \
			y += name##_mid(x, y);                 \
			x ^= name##_leaf(y);                   \
		}                                              \
		return x + y;                                  \
	}

#endif
