/* SPDX-License-Identifier: BSD-2-Clause */
/* brief [MILLISECONDS]: ends after so many milliseconds of its own CPU time (20). */
#include <sys/time.h>
#include "prog.h"

HOT(br)

static NOIPA unsigned long br_run(unsigned long x)
{
	return br_hot(x) + 1;
}

int main(int argc, char **argv)
{
	struct itimerval it = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa;
	unsigned long r;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = prog_on_alarm;
	sigaction(SIGPROF, &sa, NULL);
	it.it_value.tv_usec = prog_arg(argc, argv, 1, 20) * 1000;
	setitimer(ITIMER_PROF, &it, NULL);
	r = br_run((unsigned long)argc);
	prog_keep(&r);
	return 0;
}
