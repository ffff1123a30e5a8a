/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block SECONDS HOW [PARAMETER [THREADS]]: threads that are blocked under known chains.
 *
 *   sleep USEC    nanosleep
 *   futex USEC    two threads hand a futex over; each sleeps USEC in between
 *   epoll USEC    epoll_wait with a timeout
 *   pipe USEC     two threads hand a byte over through two pipes; 0: as fast as they can
 *   slow USEC     read from a pipe that is written to every USEC
 *   convoy USEC   threads that hold one mutex for USEC
 *   fsync KB      write KB and fsync
 *   wait USEC     waitpid for children that sleep USEC
 *   vfork USEC    vfork of a child that sleeps: uninterruptible
 *   still 0       asleep from start to end
 *   mixed USEC    sleeps, and computes as long as it slept
 *   busy 0        computes: more threads than CPUs wait for one
 *   relay USEC    four threads: the first sleeps and wakes the second, it the third, it the fourth
 *   spread USEC   sleeps at 200 depths in turn: as many stacks
 *   alike USEC    three sleeps each of 1, 2, 3 and 4 USEC in stacks that differ in one return
 *                 address, or in the system call
 *
 * BLOCK_DEPTH: so many calls more in each thread's chain. BLOCK_REPORT names a file for what the
 * threads measured about themselves, summed up: wall clock minus CPU time, time that they waited
 * for a CPU, both in ns, and voluntary switches.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "prog.h"

#define MAX_THREADS 64

static long param, nthreads;
static unsigned long off_ns, delay_ns, switches; /* summed up with atomics */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int baton;
static int pipes[2][2];

static unsigned long now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (unsigned long)ts.tv_sec * 1000000000ul + (unsigned long)ts.tv_nsec;
}

struct meter {
	unsigned long wall, cpu, delay;
};

/* Time on the run queue so far: the second number of schedstat. */
static unsigned long delay_now(void)
{
	unsigned long cpu, delay = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lu %lu", &cpu, &delay) != 2)
		delay = 0;
	if (f)
		fclose(f);
	return delay;
}

static void meter_start(struct meter *m)
{
	m->delay = delay_now();
	m->wall = now(CLOCK_MONOTONIC);
	m->cpu = now(CLOCK_THREAD_CPUTIME_ID);
}

static void meter_end(const struct meter *m)
{
	unsigned long cpu = now(CLOCK_THREAD_CPUTIME_ID) - m->cpu,
		      wall = now(CLOCK_MONOTONIC) - m->wall;
	struct rusage ru;

	getrusage(RUSAGE_THREAD, &ru);
	__atomic_fetch_add(&off_ns, wall - cpu, __ATOMIC_RELAXED);
	__atomic_fetch_add(&delay_ns, delay_now() - m->delay, __ATOMIC_RELAXED);
	__atomic_fetch_add(&switches, (unsigned long)ru.ru_nvcsw, __ATOMIC_RELAXED);
}

static void report(void)
{
	const char *path = getenv("BLOCK_REPORT");
	FILE *f = path ? fopen(path, "w") : NULL;

	if (!f)
		return;
	fprintf(f, "%lu %lu %lu\n", off_ns, delay_ns, switches);
	fclose(f);
}

/* ---- One thread and the clock ---- */

static NOIPA int sleep_wait(long usec)
{
	struct timespec ts = { usec / 1000000, usec % 1000000 * 1000 };
	int r = nanosleep(&ts, NULL);

	prog_keep(&r);
	return r;
}

static NOIPA int sleep_run(long usec)
{
	int n = 0;

	while (!prog_stop)
		n += sleep_wait(usec) + 1;
	prog_keep(&n);
	return n;
}

static NOIPA int still_run(void)
{
	int r = 0;

	while (!prog_stop)
		r += sleep_wait(1000000000);
	prog_keep(&r);
	return r;
}

static NOIPA unsigned long mixed_run(long usec)
{
	unsigned long n = 0, end;

	while (!prog_stop) {
		sleep_wait(usec);
		end = now(CLOCK_THREAD_CPUTIME_ID) + (unsigned long)usec * 1000;
		while (now(CLOCK_THREAD_CPUTIME_ID) < end)
			n++;
	}
	prog_keep(&n);
	return n;
}

static NOIPA unsigned long busy_run(void)
{
	unsigned long n = 0;

	while (!prog_stop)
		n++;
	prog_keep(&n);
	return n;
}

static NOIPA int epoll_block(int fd, long usec)
{
	struct epoll_event ev;
	int r = epoll_wait(fd, &ev, 1, (int)(usec / 1000));

	prog_keep(&ev);
	return r;
}

static NOIPA int epoll_run(long usec)
{
	int fd = epoll_create1(0), n = 0;

	while (!prog_stop)
		n += epoll_block(fd, usec);
	prog_keep(&n);
	return n;
}

static NOIPA int fsync_block(int fd)
{
	int r = fsync(fd);

	prog_keep(&r);
	return r;
}

static NOIPA int fsync_run(long kb)
{
	char name[] = "/var/tmp/sfbpf-block-XXXXXX";
	static char buf[1024];
	int fd = mkstemp(name), n = 0;

	if (fd < 0)
		exit(77);
	unlink(name);
	while (!prog_stop) {
		for (long i = 0; i < kb; i++)
			n += pwrite(fd, buf, sizeof(buf), i * 1024) == 1024;
		n += fsync_block(fd);
	}
	prog_keep(&n);
	return n;
}

/* ---- Children ---- */

static NOIPA int wait_block(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	prog_keep(&status);
	return status;
}

static NOIPA int wait_run(long usec)
{
	int n = 0;

	while (!prog_stop) {
		pid_t pid = fork();

		if (!pid) {
			usleep((useconds_t)usec);
			_exit(0);
		}
		n += wait_block(pid);
	}
	prog_keep(&n);
	return n;
}

static NOIPA int vfork_block(long usec)
{
	struct timespec ts = { 0, usec * 1000 };
	pid_t pid = vfork();

	if (!pid) {
		syscall(SYS_nanosleep, &ts, NULL);
		_exit(0);
	}
	return pid;
}

static NOIPA int vfork_run(long usec)
{
	int n = 0;

	while (!prog_stop)
		n += wait_block(vfork_block(usec));
	prog_keep(&n);
	return n;
}

/* ---- Two threads ---- */

static NOIPA int futex_wait_for(int turn)
{
	int r = 0;

	while (!prog_stop && __atomic_load_n(&baton, __ATOMIC_ACQUIRE) != turn)
		r += (int)syscall(SYS_futex, &baton, FUTEX_WAIT_PRIVATE, !turn, NULL, NULL, 0);
	prog_keep(&r);
	return r;
}

static NOIPA int futex_pass_to(int turn)
{
	int r;

	__atomic_store_n(&baton, turn, __ATOMIC_RELEASE);
	r = (int)syscall(SYS_futex, &baton, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	prog_keep(&r);
	return r;
}

static NOIPA int fa_run(long usec)
{
	int n = 0;

	while (!prog_stop) {
		n += futex_wait_for(0);
		n += sleep_wait(usec);
		n += futex_pass_to(1);
	}
	prog_keep(&n);
	return n;
}

static NOIPA int fb_run(long usec)
{
	int n = 0;

	while (!prog_stop) {
		n += futex_wait_for(1);
		n += sleep_wait(usec);
		n += futex_pass_to(0);
	}
	prog_keep(&n);
	return n;
}

/* One futex each: its value counts how often it was passed to. */
static int relay[4];

static NOIPA void relay_pass(int i)
{
	__atomic_add_fetch(&relay[i], 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &relay[i], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	prog_keep(&i);
}

static NOIPA void relay_wait(int i, int *seen)
{
	while (!prog_stop && __atomic_load_n(&relay[i], __ATOMIC_ACQUIRE) == *seen)
		syscall(SYS_futex, &relay[i], FUTEX_WAIT_PRIVATE, *seen, NULL, NULL, 0);
	*seen = __atomic_load_n(&relay[i], __ATOMIC_ACQUIRE);
}

static NOIPA void relay_first(long usec)
{
	while (!prog_stop) {
		sleep_wait(usec);
		relay_pass(1);
	}
}

#define RELAY(name, i)                               \
	static NOIPA void name(void)                 \
	{                                            \
		int seen = 0;                        \
                                                     \
		while (!prog_stop) {                 \
			relay_wait(i, &seen);        \
			if ((i) < 3)                 \
				relay_pass((i) + 1); \
		}                                    \
		prog_keep(&seen);                    \
	}

RELAY(relay_second, 1)
RELAY(relay_third, 2)
RELAY(relay_fourth, 3)

static NOIPA int spread_down(long n, long usec)
{
	int r = n > 0 ? spread_down(n - 1, usec) : sleep_wait(usec);

	prog_keep(&r);
	return r;
}

static NOIPA int spread_run(long usec)
{
	int n = 0;

	for (long depth = 0; !prog_stop; depth = (depth + 1) % 200)
		n += spread_down(depth, usec);
	prog_keep(&n);
	return n;
}

static NOIPA int pipe_wait(int fd)
{
	char c;
	int r = (int)read(fd, &c, 1);

	prog_keep(&c);
	return r;
}

static NOIPA int pipe_pass(int fd)
{
	int r = (int)write(fd, "", 1);

	prog_keep(&r);
	return r;
}

static NOIPA int pa_run(long usec)
{
	int n = 0;

	while (!prog_stop) {
		n += pipe_pass(pipes[0][1]);
		n += pipe_wait(pipes[1][0]);
		if (usec)
			n += sleep_wait(usec);
	}
	pipe_pass(pipes[0][1]);
	return n;
}

static NOIPA int pb_run(long usec)
{
	int n = 0;

	while (!prog_stop) {
		n += pipe_wait(pipes[0][0]);
		if (usec)
			n += sleep_wait(usec);
		n += pipe_pass(pipes[1][1]);
	}
	pipe_pass(pipes[1][1]);
	return n;
}

static NOIPA int slow_write(long usec)
{
	int n = 0;

	while (!prog_stop) {
		n += sleep_wait(usec);
		n += pipe_pass(pipes[0][1]);
	}
	prog_keep(&n);
	return n;
}

static NOIPA int slow_read(void)
{
	int n = 0;

	while (!prog_stop)
		n += pipe_wait(pipes[0][0]);
	prog_keep(&n);
	return n;
}

static NOIPA int convoy_lock(long usec)
{
	int r = pthread_mutex_lock(&mutex);

	r += sleep_wait(usec);
	r += pthread_mutex_unlock(&mutex);
	return r;
}

static NOIPA int convoy_run(long usec)
{
	int n = 0;

	while (!prog_stop)
		n += convoy_lock(usec);
	prog_keep(&n);
	return n;
}

/* ---- The same place, but another caller, or another system call ---- */

typedef long alike_fn(int poll, const struct timespec *ts);

static NOIPA long alike_block(int poll, const struct timespec *ts)
{
	long r = syscall(poll ? SYS_ppoll : SYS_nanosleep, poll ? NULL : ts, NULL, poll ? ts : NULL,
			 NULL, 0);

	prog_keep(&r);
	return r;
}

static NOIPA long alike_first(int poll, const struct timespec *ts)
{
	long r = alike_block(poll, ts);

	prog_keep(&r);
	return r;
}

static NOIPA long alike_second(int poll, const struct timespec *ts)
{
	long r = alike_block(poll, ts);

	prog_keep(&r);
	return r;
}

static NOIPA long alike_run(long usec)
{
	alike_fn *volatile fns[2] = { alike_first, alike_second };
	long n = 0;

	for (unsigned i = 0; !prog_stop; i++) {
		unsigned which = i / 3 % 4;
		struct timespec ts = { 0, (which + 1) * usec * 1000 };

		n += fns[which & 1](which >> 1, &ts);
	}
	prog_keep(&n);
	return n;
}

/* ---- All of them ---- */

static const char *how;

static void run(long i)
{
	if (!strcmp(how, "sleep"))
		sleep_run(param);
	else if (!strcmp(how, "still"))
		still_run();
	else if (!strcmp(how, "mixed"))
		mixed_run(param);
	else if (!strcmp(how, "busy"))
		busy_run();
	else if (!strcmp(how, "epoll"))
		epoll_run(param);
	else if (!strcmp(how, "alike"))
		alike_run(param);
	else if (!strcmp(how, "fsync"))
		fsync_run(param);
	else if (!strcmp(how, "wait"))
		wait_run(param);
	else if (!strcmp(how, "vfork"))
		vfork_run(param);
	else if (!strcmp(how, "convoy"))
		convoy_run(param);
	else if (!strcmp(how, "futex"))
		(i & 1 ? fb_run : fa_run)(param);
	else if (!strcmp(how, "pipe"))
		(i & 1 ? pb_run : pa_run)(param);
	else if (!strcmp(how, "spread"))
		spread_run(param);
	else if (!strcmp(how, "relay") && !i)
		relay_first(param);
	else if (!strcmp(how, "relay"))
		(i == 1 ? relay_second : i == 2 ? relay_third : relay_fourth)();
	else if (!strcmp(how, "slow") && (i & 1))
		slow_write(param);
	else if (!strcmp(how, "slow"))
		slow_read();
	else
		exit(2);
}

static NOIPA long deeper(long n, long i)
{
	if (n > 0)
		i = deeper(n - 1, i);
	else
		run(i);
	prog_keep(&i);
	return i;
}

static void start(long i)
{
	const char *depth = getenv("BLOCK_DEPTH");

	if (depth)
		deeper(strtol(depth, NULL, 10), i);
	else
		run(i);
}

static void *thread(void *arg)
{
	struct meter m;

	meter_start(&m);
	start((long)arg);
	meter_end(&m);
	return NULL;
}

static void interrupts(int sig)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = prog_on_alarm; /* no SA_RESTART */
	sigaction(sig, &sa, NULL);
}

/* Again and again: the thread may have been about to block when the signal came. */
static void end_thread(pthread_t t)
{
	while (pthread_tryjoin_np(t, NULL)) {
		pthread_kill(t, SIGUSR1);
		usleep(2000);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	sigset_t alarm_only;
	struct meter m;

	prog_init(argc, argv);
	how = argc > 2 ? argv[2] : "sleep";
	param = prog_arg(argc, argv, 3, 10000);
	nthreads = prog_arg(argc, argv, 4, 1);
	if (pipe(pipes[0]) || pipe(pipes[1]) || nthreads < 1 || nthreads > MAX_THREADS)
		return 1;
	/* The end interrupts whatever blocks in the first thread, and it the others. */
	interrupts(SIGALRM);
	interrupts(SIGUSR1);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	for (long i = 1; i < nthreads; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i))
			return 1;
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	meter_start(&m);
	start(0);
	prog_stop = 1;
	for (long i = 1; i < nthreads; i++)
		end_thread(threads[i]);
	meter_end(&m);
	report();
	return 0;
}
