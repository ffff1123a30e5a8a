/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parallel SECONDS THREADS: runs in one thread for nine tenths of the time, then in all threads for
 * the last tenth.
 */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;
static double last, end;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void run_alone(void)
{
	while (now() < last)
		sink++;
}

__attribute__((noinline)) void run_together(void)
{
	while (now() < end)
		sink++;
}

static void *one(void *unused)
{
	run_together();
	return unused;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	int n = argc > 2 ? atoi(argv[2]) : 8;
	pthread_t t[128];

	if (n < 1 || n > 128)
		return 2;
	last = now() + .9 * seconds;
	end = last + .1 * seconds;
	run_alone();
	for (int i = 1; i < n; i++)
		if (pthread_create(&t[i], NULL, one, NULL))
			return 1;
	run_together();
	for (int i = 1; i < n; i++)
		pthread_join(t[i], NULL);
	return 0;
}
