/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slowcalls MODE CALLS [THREADS]: calls slow_serve() again and again; each 100th call is slow for
 * the cause that MODE names. Prints what it has measured itself:
 *
 *   calls N slow N slow_us N left N sure N sure_us N
 *
 * A call is slow by a clock around it, and for sure by a clock inside of it.
 * left: calls that did not return (longjmp, and threads that end inside).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVERY	100
#define SLOW_NS 4000000
#define PAGES	(32 << 20)

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int lock_wanted, lock_held;
static __thread jmp_buf away;
static __thread long inside_ns; /* the last call's time, by the clock inside of it */

struct sums {
	long calls, slow, slow_ns, left, sure, sure_ns;
};

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

NOINLINE static void spin(long ns)
{
	for (long end = now() + ns; now() < end;)
		sink++;
}

NOINLINE void usual_work(void)
{
	for (int i = 0; i < 20000; i++)
		sink += (unsigned long)i;
}

/* ---- Causes ---- */

NOINLINE void planted_lock(void)
{
	pthread_mutex_lock(&lock);
	sink++;
	pthread_mutex_unlock(&lock);
}

NOINLINE void planted_sleep(void)
{
	usleep(15000);
	sink++;
}

NOINLINE void planted_branch(void)
{
	spin(15000000);
	sink++;
}

/* A pipe whose other end is slow. */
NOINLINE void planted_pipe(void)
{
	int ends[2];
	char c = 0;
	pid_t child;

	if (pipe(ends))
		exit(1);
	child = fork();
	if (!child) {
		usleep(15000);
		_exit(write(ends[1], "x", 1) != 1);
	}
	if (read(ends[0], &c, 1) != 1)
		exit(1);
	close(ends[0]);
	close(ends[1]);
	waitpid(child, NULL, 0);
	sink += (unsigned long)c;
}

NOINLINE void planted_disk(void)
{
	static char block[1 << 16];
	char path[] = "slowcalls.XXXXXX";
	int fd = mkstemp(path);
	long end = now() + 12000000;

	unlink(path);
	while (fd >= 0 && now() < end)
		if (pwrite(fd, block, sizeof(block), 0) < 0 || fsync(fd))
			exit(1);
	close(fd);
	sink++;
}

NOINLINE void planted_fault(void)
{
	for (long end = now() + 12000000; now() < end;) {
		char *p = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		if (p == MAP_FAILED)
			exit(1);
		for (size_t at = 0; at < PAGES && now() < end; at += 4096)
			p[at] = 1;
		munmap(p, PAGES);
	}
	sink++;
}

/* Other threads of this CPU run meanwhile: run_queue() starts them. */
NOINLINE void planted_queue(void)
{
	lock_wanted = 1;
	for (long end = now() + 15000000; now() < end;)
		sched_yield();
	lock_wanted = 0;
	sink++;
}

static void *run_queue(void *unused)
{
	for (;;) {
		if (lock_wanted)
			spin(5000000);
		else
			usleep(500);
	}
	return unused;
}

static void *hold_lock(void *unused)
{
	for (;;) {
		while (!lock_wanted)
			usleep(50);
		pthread_mutex_lock(&lock);
		lock_wanted = 0;
		lock_held = 1;
		usleep(15000);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static const struct mode {
	const char *name;
	void (*cause)(void);
	void *(*helper)(void *);
	bool recursive, leaves;
} modes[] = {
	{ "lock", planted_lock, hold_lock, false, false },
	{ "sleep", planted_sleep, NULL, false, false },
	{ "branch", planted_branch, NULL, false, false },
	{ "pipe", planted_pipe, NULL, false, false },
	{ "disk", planted_disk, NULL, false, false },
	{ "fault", planted_fault, NULL, false, false },
	{ "queue", planted_queue, run_queue, false, false },
	{ "recursion", planted_sleep, NULL, true, false },
	{ "longjmp", planted_sleep, NULL, false, true },
};
static const struct mode *mode;

/* ---- Calls ---- */

NOINLINE long slow_serve(long number, int depth)
{
	long start = now();

	if (mode->recursive && depth < 5) {
		long n = slow_serve(number, depth + 1) + 1;

		inside_ns = now() - start;
		return n;
	}
	usual_work();
	if (mode->leaves && number % EVERY == 50)
		longjmp(away, 1);
	if (number % EVERY == EVERY - 1)
		mode->cause();
	inside_ns = now() - start;
	return (long)sink;
}

static void one(struct sums *s, long number)
{
	long start, ns;

	if (mode->helper == hold_lock && number % EVERY == EVERY - 1) {
		lock_held = 0;
		lock_wanted = 1;
		while (!lock_held)
			usleep(50);
	}
	start = now();
	if (setjmp(away)) {
		s->left++;
		return;
	}
	slow_serve(number, 0);
	ns = now() - start;
	s->calls++;
	if (ns < SLOW_NS)
		return;
	s->slow++;
	s->slow_ns += ns;
	s->sure += inside_ns >= SLOW_NS;
	s->sure_ns += inside_ns >= SLOW_NS ? inside_ns : 0;
}

static long calls;

static void *serve(void *sums)
{
	for (long i = 0; i < calls; i++)
		one(sums, i);
	return sums;
}

int main(int argc, char **argv)
{
	int n = argc > 3 ? atoi(argv[3]) : 1;
	struct sums all = { 0 }, each[64] = { { 0 } };
	pthread_t t[64], helper;
	cpu_set_t cpu;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]) && argc > 2; i++)
		if (!strcmp(argv[1], modes[i].name))
			mode = &modes[i];
	if (!mode || n < 1 || n > 64)
		return 2;
	calls = atol(argv[2]);
	if (mode->helper == run_queue) {
		CPU_ZERO(&cpu);
		CPU_SET(0, &cpu);
		sched_setaffinity(0, sizeof(cpu), &cpu);
	}
	if (mode->helper)
		pthread_create(&helper, NULL, mode->helper, NULL);
	for (int i = 1; i < n; i++)
		pthread_create(&t[i], NULL, serve, &each[i]);
	serve(&each[0]);
	for (int i = 1; i < n; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < n; i++) {
		all.calls += each[i].calls;
		all.slow += each[i].slow;
		all.slow_ns += each[i].slow_ns;
		all.left += each[i].left;
		all.sure += each[i].sure;
		all.sure_ns += each[i].sure_ns;
	}
	fprintf(stderr, "calls %ld slow %ld slow_us %ld left %ld sure %ld sure_us %ld\n", all.calls,
		all.slow, all.slow_ns / 1000, all.left, all.sure, all.sure_ns / 1000);
	return 0;
}
