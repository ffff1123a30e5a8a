/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sig [SECONDS [MODE]]: a busy signal handler above an interrupted chain. MODE 0: one signal, the
 * handler stays; 1: the same on an alternate stack; 2: a short handler every 2 ms, so that it
 * interrupts every kind of instruction; 3: like 2, on an alternate stack.
 */
#include <sys/time.h>
#include "prog.h"

HOT(si)
HOT_PARTS(sh)

static volatile unsigned int sh_rounds;
static char sh_stack[65536];

static NOIPA unsigned long sh_hot(unsigned long x)
{
	unsigned int n;

	for (n = 0; !prog_stop && (!sh_rounds || n < sh_rounds); n++)
		x += sh_mid(x, x + 1);
	return x;
}

static NOIPA void sh_handler(int sig)
{
	unsigned long r = sh_hot((unsigned long)sig);

	prog_keep(&r);
}

static NOIPA unsigned long si_victim(unsigned long x)
{
	return si_hot(x) + 1;
}

int main(int argc, char **argv)
{
	struct itimerval it = { { 0, 2000 }, { 0, 2000 } };
	long mode = prog_arg(argc, argv, 2, 0);
	struct sigaction sa;
	stack_t st;
	unsigned long r;

	prog_init(argc, argv);
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = sh_handler;
	if (mode & 1) {
		memset(&st, 0, sizeof(st));
		st.ss_sp = sh_stack;
		st.ss_size = sizeof(sh_stack);
		sigaltstack(&st, NULL);
		sa.sa_flags = SA_ONSTACK;
	}
	if (mode & 2)
		sh_rounds = 5000;
	sigaction(SIGVTALRM, &sa, NULL);
	setitimer(ITIMER_VIRTUAL, &it, NULL);
	r = si_victim((unsigned long)argc);
	prog_keep(&r);
	return 0;
}
