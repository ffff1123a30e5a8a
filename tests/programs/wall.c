/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wall: a thread "wall-worker" that runs for 1.5 s of CPU time, waits 2 s for a mutex, sleeps 1 s
 * and reads 0.5 s from a pipe, and a thread "wall-idle" in epoll_wait. Prints the worker's life in
 * seconds, by its own clock.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include "prog.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipes[2], ready[2];

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static NOIPA void wall_sleep(double s)
{
	struct timespec ts = { (time_t)s, (long)((s - (double)(time_t)s) * 1e9) };

	nanosleep(&ts, NULL);
}

static NOIPA void wall_run(double s)
{
	double end = seconds(CLOCK_THREAD_CPUTIME_ID) + s;
	volatile long n = 0;

	while (seconds(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 100000; i++)
			n = n + 1;
}

static NOIPA void wall_lock(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void say(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
}

static NOIPA void hear(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(1);
}

static void *worker(void *life)
{
	double began = seconds(CLOCK_MONOTONIC);

	pthread_setname_np(pthread_self(), "wall-worker");
	wall_run(1.5);
	say(ready[1]);
	wall_lock();
	wall_sleep(1);
	say(ready[1]);
	hear(pipes[0]);
	*(double *)life = seconds(CLOCK_MONOTONIC) - began;
	return NULL;
}

static void *idle(void *unused)
{
	struct epoll_event ev;

	(void)unused;
	pthread_setname_np(pthread_self(), "wall-idle");
	epoll_wait(epoll_create1(0), &ev, 1, -1);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	double life = 0;

	if (pipe(pipes) || pipe(ready))
		return 1;
	pthread_mutex_lock(&mutex);
	pthread_create(&threads[0], NULL, idle, NULL);
	pthread_create(&threads[1], NULL, worker, &life);
	hear(ready[0]);
	wall_sleep(2);
	pthread_mutex_unlock(&mutex);
	hear(ready[0]);
	wall_sleep(.5);
	say(pipes[1]);
	pthread_join(threads[1], NULL);
	printf("%.6f\n", life);
	return 0;
}
