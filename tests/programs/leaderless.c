/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * leaderless [SECONDS]: the first thread has ended; of its process two go on, one computes and one
 * sleeps.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include "prog.h"

HOT(ll)

static NOIPA void *ll_busy(void *arg)
{
	unsigned long r = ll_hot((unsigned long)arg);

	prog_keep(&r);
	exit(0);
}

static NOIPA unsigned int ll_sleep(unsigned int usec)
{
	int r = usleep(usec);

	prog_keep(&r);
	return r;
}

static NOIPA void *ll_idle(void *arg)
{
	unsigned int n = 0;

	while (!prog_stop)
		n += ll_sleep(10000);
	prog_keep(&n);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;

	prog_init(argc, argv);
	if (pthread_create(&t, NULL, ll_busy, (void *)1) || pthread_create(&t, NULL, ll_idle, NULL))
		return 1;
	return (int)syscall(SYS_exit, 0); /* pthread_exit() loads a library first */
}
