/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits SECONDS HOW [USEC]: blocks that end otherwise than by themselves, again and again.
 *
 *   timer     read of a timerfd every USEC
 *   uring     io_uring_enter until a timeout of USEC is over
 *   signal    sleeps ten times USEC, but a signal ends it after USEC
 *   stopped   a child that stops; its parent lets it go on after USEC
 *   traced    the same under ptrace
 *   killed    two threads and a sleeping first one, whom _exit() in a fourth ends after USEC
 *   exec      a thread executes the program again after USEC, while the first one and another
 *             are blocked
 *   born      a thread that lives for one sleep of USEC, 16 at a time
 *   held      500 sleeps of USEC, and then none
 *   direct    3000 reads of WAITS_FILE past the page cache, and then none
 *
 * WAITS_REPORT names a file for what the last two measure about themselves: wall clock minus CPU
 * time, in ns.
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include "prog.h"

static long usec;
static char **args;

static NOIPA int sleep_for(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };
	int r = nanosleep(&ts, NULL);

	prog_keep(&r);
	return r;
}

static NOIPA int sleep_on(void)
{
	int r = 0;

	while (!prog_stop)
		r += sleep_for(1000000000);
	prog_keep(&r);
	return r;
}

/* ---- One thread ---- */

static NOIPA long timer_read(int fd)
{
	uint64_t n = 0;
	long r = read(fd, &n, sizeof(n));

	prog_keep(&n);
	return r;
}

static NOIPA void timer_run(void)
{
	struct itimerspec its = { { usec / 1000000, usec % 1000000 * 1000 }, { 0, 1 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	long n = 0;

	timerfd_settime(fd, 0, &its, NULL);
	while (!prog_stop)
		n += timer_read(fd);
	prog_keep(&n);
}

static NOIPA long uring_wait(int fd)
{
	long r = syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);

	prog_keep(&r);
	return r;
}

static NOIPA void uring_run(void)
{
	struct __kernel_timespec ts = { usec / 1000000, usec % 1000000 * 1000 };
	struct io_uring_params p = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, &p);
	struct io_uring_sqe *sqes;
	unsigned *tail, *head, n = 0;
	char *sq, *cq;

	if (fd < 0)
		exit(77);
	sq = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	cq = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_CQ_RING);
	sqes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED)
		exit(77);
	tail = (unsigned *)(sq + p.sq_off.tail);
	head = (unsigned *)(cq + p.cq_off.head);
	while (!prog_stop) {
		unsigned at = *tail & 3;

		memset(&sqes[at], 0, sizeof(sqes[at]));
		sqes[at].opcode = IORING_OP_TIMEOUT;
		sqes[at].fd = -1;
		sqes[at].addr = (uint64_t)(uintptr_t)&ts;
		sqes[at].len = 1;
		((unsigned *)(sq + p.sq_off.array))[at] = at;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		uring_wait(fd);
		__atomic_store_n(head,
				 __atomic_load_n((unsigned *)(cq + p.cq_off.tail),
						 __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
		n++;
	}
	prog_keep(&n);
}

static void nothing(int sig)
{
	(void)sig;
}

static NOIPA void signal_run(void)
{
	struct itimerval each = { { 0, usec }, { 0, usec } };
	struct sigaction sa;
	int n = 0;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = nothing; /* no SA_RESTART */
	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	for (;;)
		n += sleep_for(10 * usec);
	prog_keep(&n);
}

static NOIPA int direct_read(int fd, long i)
{
	static char buf[65536] __attribute__((aligned(4096)));
	int r = (int)pread(fd, buf, sizeof(buf), i % 64 * (long)sizeof(buf));

	prog_keep(buf);
	return r;
}

static NOIPA void direct_run(void)
{
	int fd = open(getenv("WAITS_FILE"), O_RDONLY | O_DIRECT), n = 0;

	sleep_for(300000); /* while tables are loaded */
	for (long i = 0; i < 3000; i++)
		n += direct_read(fd, i) == 65536;
	if (n != 3000)
		exit(1);
}

static NOIPA void held_run(void)
{
	int n = 0;

	for (int i = 0; i < 500; i++)
		n += sleep_for(usec);
	prog_keep(&n);
}

static long off_cpu_ns(void)
{
	struct timespec wall, cpu;

	clock_gettime(CLOCK_MONOTONIC, &wall);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	return (wall.tv_sec - cpu.tv_sec) * 1000000000l + wall.tv_nsec - cpu.tv_nsec;
}

static void measured(void (*run)(void))
{
	const char *path = getenv("WAITS_REPORT");
	long start = off_cpu_ns(), end;
	FILE *f;

	run();
	end = off_cpu_ns();
	f = path ? fopen(path, "w") : NULL;
	if (!f || fprintf(f, "%ld\n", end - start) < 0 || fclose(f))
		exit(1);
	exit(0);
}

/* ---- Children ---- */

static NOIPA int stop_here(void)
{
	int r = kill(getpid(), SIGSTOP);

	prog_keep(&r);
	return r;
}

static NOIPA void stopped_child(int traced)
{
	int n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (traced)
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	for (;;)
		n += stop_here();
	prog_keep(&n);
}

static NOIPA void stopped_run(int traced)
{
	pid_t pid = fork();
	int status, n = 0;

	if (!pid)
		stopped_child(traced);
	while (!prog_stop) {
		waitpid(pid, &status, WUNTRACED);
		n += sleep_for(usec);
		if (traced)
			ptrace(PTRACE_CONT, pid, NULL, NULL);
		else
			kill(pid, SIGCONT);
	}
	prog_keep(&n);
}

/* ---- Threads that do not return ---- */

static NOIPA void *stay(void *arg)
{
	int n = sleep_on();

	prog_keep(&n);
	return arg;
}

static NOIPA void *end_all(void *arg)
{
	sleep_for(usec);
	_exit(0);
	return arg;
}

static NOIPA void *exec_again(void *arg)
{
	sleep_for(usec);
	execv("/proc/self/exe", args);
	return arg;
}

static NOIPA void *sleep_once(void *arg)
{
	int r = sleep_for(usec);

	prog_keep(&r);
	return arg;
}

static NOIPA void with_two(void *(*other)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, stay, NULL) || pthread_create(&t, NULL, other, NULL))
		exit(1);
	sleep_on();
}

static NOIPA void killed_run(void)
{
	int n = 0;

	while (!prog_stop) {
		pid_t pid = fork();

		if (!pid)
			with_two(end_all);
		n += waitpid(pid, NULL, 0);
	}
	prog_keep(&n);
}

static NOIPA void born_run(void)
{
	pthread_t t[16];

	while (!prog_stop) {
		for (int i = 0; i < 16; i++)
			if (pthread_create(&t[i], NULL, sleep_once, NULL))
				exit(1);
		for (int i = 0; i < 16; i++)
			pthread_join(t[i], NULL);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "timer";

	prog_init(argc, argv);
	args = argv;
	usec = prog_arg(argc, argv, 3, 10000);
	prctl(PR_SET_NAME, strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0]);
	if (!strcmp(how, "timer"))
		timer_run();
	else if (!strcmp(how, "uring"))
		uring_run();
	else if (!strcmp(how, "signal"))
		signal_run();
	else if (!strcmp(how, "held"))
		measured(held_run);
	else if (!strcmp(how, "direct"))
		measured(direct_run);
	else if (!strcmp(how, "stopped") || !strcmp(how, "traced"))
		stopped_run(how[0] == 't');
	else if (!strcmp(how, "killed"))
		killed_run();
	else if (!strcmp(how, "exec"))
		with_two(exec_again);
	else if (!strcmp(how, "born"))
		born_run();
	return 2;
}
