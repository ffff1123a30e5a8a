/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * path MODE [ITEMS]: a main thread that waits for others, and knows what its elapsed time was spent
 * on. Prints "elapsed US", and for each function on its critical path "part NAME US": the CPU time
 * of the function, or for [timer] the time that was slept.
 *
 *   mutex, rwlock, cond, sem  a thread of the process
 *   pipe, unix, tcp           a process, over two pipes or a socket
 *   pipeline                  a thread, which passes the item on to a process, which answers
 *   pool                      three threads at once, of which the slowest one counts
 *   child                     a process for each item
 *   chain                     a thread that waits for a lock, which another thread has that sleeps
 *   timer                     nobody
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include "prog.h"

static long clock_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void burn(long us)
{
	long end = clock_us(CLOCK_THREAD_CPUTIME_ID) + us;
	volatile long n = 0;

	while (clock_us(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 1000; i++)
			n = n + 1;
}

/* Shared by the processes */
static struct parts {
	long own_work, other_work, first_stage, second_stage, holding, timer;
} * parts;

#define PART(name)                                                        \
	static NOIPA void name(long us)                                   \
	{                                                                 \
		long begin = clock_us(CLOCK_THREAD_CPUTIME_ID);           \
                                                                          \
		burn(us);                                                 \
		parts->name += clock_us(CLOCK_THREAD_CPUTIME_ID) - begin; \
	}
PART(own_work)
PART(other_work)
PART(first_stage)
PART(second_stage)
PART(holding)

static void sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static NOIPA void sleeping(long us)
{
	long begin = clock_us(CLOCK_MONOTONIC);

	sleep_us(us);
	parts->timer += clock_us(CLOCK_MONOTONIC) - begin;
}

static void must(bool ok)
{
	if (!ok)
		_exit(1);
}

static void thread(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	must(!pthread_create(&t, NULL, fn, arg));
}

/* ---- Threads ---- */

static sem_t go, held, done;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool answered;

static void *holder(void *mode)
{
	bool rw = *(const char *)mode == 'r';

	prctl(PR_SET_NAME, "holder");
	for (;;) {
		sem_wait(&go);
		if (rw)
			pthread_rwlock_wrlock(&rwlock);
		else
			pthread_mutex_lock(&mutex);
		sem_post(&held);
		other_work(4000);
		if (rw)
			pthread_rwlock_unlock(&rwlock);
		else
			pthread_mutex_unlock(&mutex);
		sem_post(&done);
	}
	return NULL;
}

static void lock_item(bool rw)
{
	sem_post(&go);
	sem_wait(&held);
	if (rw) {
		pthread_rwlock_rdlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	sem_wait(&done);
	own_work(1000);
}

static void *answerer(void *mode)
{
	prctl(PR_SET_NAME, "answerer");
	for (;;) {
		sem_wait(&go);
		other_work(4000);
		if (*(const char *)mode == 's') {
			sem_post(&done);
			continue;
		}
		pthread_mutex_lock(&mutex);
		answered = true;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void answer_item(bool sem)
{
	sem_post(&go);
	if (sem) {
		sem_wait(&done);
	} else {
		pthread_mutex_lock(&mutex);
		while (!answered)
			pthread_cond_wait(&cond, &mutex);
		answered = false;
		pthread_mutex_unlock(&mutex);
	}
	own_work(1000);
}

static volatile bool pool_waited_for; /* the main thread is about to wait */

/* The slowest one of three is on the path, but only while the main thread waits. */
static void *in_pool(void *us)
{
	prctl(PR_SET_NAME, us ? "slow" : "fast");
	while (us && !pool_waited_for)
		sched_yield();
	if (us)
		other_work(6000);
	else
		sleep_us(1000);
	return NULL;
}

static void pool_item(void)
{
	pthread_t t[3];

	pool_waited_for = false;
	for (long i = 0; i < 3; i++)
		must(!pthread_create(&t[i], NULL, in_pool, i == 2 ? &t[i] : NULL));
	pool_waited_for = true;
	for (int i = 3; i-- > 0;) /* the slow one began last, and is waited for first */
		pthread_join(t[i], NULL);
	own_work(2000);
}

static sem_t chain_go, chain_done;

static void *chain_holder(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "sleeper");
	for (;;) {
		sem_wait(&chain_go);
		pthread_mutex_lock(&mutex);
		sem_post(&held);
		sleeping(4000);
		holding(2000);
		pthread_mutex_unlock(&mutex);
		sem_post(&chain_done);
	}
	return NULL;
}

static void *chain_middle(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "middle");
	for (;;) {
		sem_wait(&go);
		sem_post(&chain_go);
		sem_wait(&held);
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		other_work(2000);
		sem_wait(&chain_done);
		sem_post(&done);
	}
	return NULL;
}

static void chain_item(void)
{
	sem_post(&go);
	sem_wait(&done);
	own_work(2000);
}

/* ---- Processes ---- */

static int to[2], from[2];

static void tell(int fd)
{
	must(write(fd, "x", 1) == 1);
}

static void hear(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(0);
}

static void sockets(bool tcp)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);
	int fd;

	if (!tcp) {
		must(!socketpair(AF_UNIX, SOCK_STREAM, 0, to));
		from[0] = to[0];
		from[1] = to[1];
		to[1] = from[0];
		to[0] = from[1];
		return;
	}
	fd = socket(AF_INET, SOCK_STREAM, 0);
	must(!bind(fd, (struct sockaddr *)&a, sizeof(a)) && !listen(fd, 1) &&
	     !getsockname(fd, (struct sockaddr *)&a, &len));
	from[0] = to[1] = socket(AF_INET, SOCK_STREAM, 0);
	must(!connect(to[1], (struct sockaddr *)&a, sizeof(a)));
	from[1] = to[0] = accept(fd, NULL, NULL);
}

static void serve(const char *name, void (*work)(long us), long us)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	for (;;) {
		hear(to[0]);
		work(us);
		tell(from[1]);
	}
}

static int stage[2];

static void *first(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "first");
	for (;;) {
		hear(stage[0]);
		first_stage(3000);
		tell(to[1]);
	}
	return NULL;
}

static void item_at(int fd)
{
	tell(fd);
	hear(from[0]);
	own_work(2000);
}

static void child_item(void)
{
	int pid = fork();

	if (!pid) {
		prctl(PR_SET_NAME, "child");
		other_work(6000);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid);
	own_work(2000);
}

static void timer_item(void)
{
	sleeping(3000);
	own_work(2000);
}

/* ---- Modes ---- */

static void prepare(const char *mode)
{
	must(!pipe(to) && !pipe(from) && !pipe(stage));
	if (!strcmp(mode, "mutex") || !strcmp(mode, "rwlock"))
		thread(holder, (void *)mode);
	if (!strcmp(mode, "cond") || !strcmp(mode, "sem"))
		thread(answerer, (void *)mode);
	if (!strcmp(mode, "unix") || !strcmp(mode, "tcp"))
		sockets(!strcmp(mode, "tcp"));
	if (!strcmp(mode, "pipe") || !strcmp(mode, "unix") || !strcmp(mode, "tcp"))
		serve("server", other_work, 6000);
	if (!strcmp(mode, "pipeline")) {
		serve("second", second_stage, 5000);
		thread(first, NULL);
	}
	if (!strcmp(mode, "chain")) {
		thread(chain_holder, NULL);
		thread(chain_middle, NULL);
	}
}

static void do_item(const char *mode)
{
	if (!strcmp(mode, "mutex") || !strcmp(mode, "rwlock"))
		lock_item(*mode == 'r');
	else if (!strcmp(mode, "cond") || !strcmp(mode, "sem"))
		answer_item(*mode == 's');
	else if (!strcmp(mode, "pipeline"))
		item_at(stage[1]);
	else if (!strcmp(mode, "pool"))
		pool_item();
	else if (!strcmp(mode, "child"))
		child_item();
	else if (!strcmp(mode, "chain"))
		chain_item();
	else if (!strcmp(mode, "timer"))
		timer_item();
	else
		item_at(to[1]);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "mutex";
	long items = argc > 2 ? atol(argv[2]) : 300, begin = clock_us(CLOCK_MONOTONIC);

	parts = mmap(NULL, sizeof(*parts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	must(parts != MAP_FAILED);
	prepare(mode);
	for (long i = 0; i < items; i++)
		do_item(mode);
	fprintf(stderr,
		"elapsed %ld\npart own_work %ld\npart other_work %ld\npart first_stage %ld\n"
		"part second_stage %ld\npart holding %ld\npart [timer] %ld\n",
		clock_us(CLOCK_MONOTONIC) - begin, parts->own_work, parts->other_work,
		parts->first_stage, parts->second_stage, parts->holding, parts->timer);
	return 0;
}
