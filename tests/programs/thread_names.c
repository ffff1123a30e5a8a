/* SPDX-License-Identifier: BSD-2-Clause */
/* thread-names NAME...: a thread of each name spins for two seconds. */
#include <pthread.h>
#include <unistd.h>

static volatile unsigned long n;

static void *spin(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;)
		n++;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	for (int i = 1; i < argc; i++)
		if (pthread_create(&thread, NULL, spin, argv[i]))
			return 1;
	sleep(2);
	return 0;
}
