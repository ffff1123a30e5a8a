// SPDX-License-Identifier: BSD-2-Clause
/*
 * locked MODE [N]: threads wait for a lock whose owner the program knows. Prints what it knows of
 * the waits: "lock NAME waits N wait_us N", then a line for each owner: "owner TID NAME waits N us
 * N".
 *
 * Modes mutex, recursive, pi, robust, rwlock, std, heap, member: a waiter and two holders take
 * turns. A holder takes the lock, tells the waiter, and gives the lock up 2 ms later. Every fourth
 * turn is that of holder_b.
 * Mode convoy: four threads take one lock again and again.
 * Modes cond, sem: the waiter waits for holder_a, which is not the owner of anything.
 * Mode file: the lock is the kernel's lock of a file. A holder's write() has it while the memory
 * that it writes does not come, for 2 ms (userfaultfd).
 */
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static long now_us()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000l + t.tv_nsec / 1000;
}

struct Pool {
	long zero[5];
	pthread_mutex_t m;
	static std::mutex std_m;
};

std::mutex Pool::std_m;
pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t special_lock; // recursive, pi or robust
pthread_rwlock_t index_lock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t cond_ready = PTHREAD_COND_INITIALIZER;
sem_t sem_ready;
Pool pool = { {}, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t *heap_lock;
static volatile bool ready;
static volatile unsigned long sink;

// How a lock is taken. try_to: 0: it was free, and is taken.
struct kind {
	const char *mode, *name;
	void (*take)();
	int (*try_to)();
	void (*hold)(); // what the holder does, if it is another way than take
	void (*give)();
};

#define MUTEX(id, m)                             \
	NOINLINE void take_##id()                \
	{                                        \
		pthread_mutex_lock(m);           \
		sink = sink + 1;                 \
	}                                        \
	static int try_##id()                    \
	{                                        \
		return pthread_mutex_trylock(m); \
	}                                        \
	static void give_##id()                  \
	{                                        \
		pthread_mutex_unlock(m);         \
	}
MUTEX(cache, &cache_lock)
MUTEX(special, &special_lock)
MUTEX(member, &pool.m)
MUTEX(heap, heap_lock)

NOINLINE void take_std()
{
	Pool::std_m.lock();
	sink = sink + 1;
}

static int try_std()
{
	return !Pool::std_m.try_lock();
}

static void give_std()
{
	Pool::std_m.unlock();
}

NOINLINE void take_read()
{
	pthread_rwlock_rdlock(&index_lock);
	sink = sink + 1;
}

static int try_read()
{
	return pthread_rwlock_tryrdlock(&index_lock);
}

static void hold_write()
{
	pthread_rwlock_wrlock(&index_lock);
}

static void give_read()
{
	pthread_rwlock_unlock(&index_lock);
}

static const kind kinds[] = {
	{ "mutex", "cache_lock", take_cache, try_cache, take_cache, give_cache },
	{ "recursive", "special_lock", take_special, try_special, take_special, give_special },
	{ "pi", "special_lock", take_special, try_special, take_special, give_special },
	{ "robust", "special_lock", take_special, try_special, take_special, give_special },
	{ "rwlock", "index_lock", take_read, try_read, hold_write, give_read },
	{ "std", "Pool::std_m", take_std, try_std, take_std, give_std },
	{ "heap", "[in take_heap]", take_heap, try_heap, take_heap, give_heap },
	{ "member", "pool+0x28", take_member, try_member, take_member, give_member },
};

static const kind *which;
static sem_t turn[2], held, done;
static struct {
	const char *name;
	volatile long tid;
	long waits, us;
} holders[4] = { { "holder_a", 0, 0, 0 }, { "holder_b", 0, 0, 0 } };

static void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void *holder(void *arg)
{
	long i = (long)arg;

	name_thread(holders[i].name);
	holders[i].tid = syscall(SYS_gettid);
	for (;;) {
		sem_wait(&turn[i]);
		which->hold();
		sem_post(&held);
		usleep(2000);
		which->give();
		sem_post(&done);
	}
	return nullptr;
}

static void report(const char *name, int n)
{
	long waits = 0, us = 0;

	for (int i = 0; i < n; i++) {
		waits += holders[i].waits;
		us += holders[i].us;
	}
	fprintf(stderr, "lock %s waits %ld wait_us %ld\n", name, waits, us);
	for (int i = 0; i < n; i++)
		fprintf(stderr, "owner %ld %s waits %ld us %ld\n", holders[i].tid, holders[i].name,
			holders[i].waits, holders[i].us);
	fflush(stderr);
}

static void take_turns(long n)
{
	pthread_t t;

	for (long i = 0; i < 2; i++)
		pthread_create(&t, nullptr, holder, (void *)i);
	for (long i = 0; i < n; i++) {
		int h = i % 4 == 3;
		long begin;

		sem_post(&turn[h]);
		sem_wait(&held);
		if (which->try_to()) {
			begin = now_us();
			which->take();
			holders[h].waits++;
			holders[h].us += now_us() - begin;
		}
		which->give();
		sem_wait(&done);
	}
	report(which->name, 2);
}

static volatile long owner_now;

static void *in_convoy(void *arg)
{
	long i = (long)arg, end = now_us() + 2000000;
	static const char *const names[] = { "worker_0", "worker_1", "worker_2", "worker_3" };

	name_thread(names[i]);
	holders[i].name = names[i];
	holders[i].tid = syscall(SYS_gettid);
	while (now_us() < end) {
		if (try_cache()) {
			long owner = owner_now, begin = now_us();

			take_cache();
			__sync_fetch_and_add(&holders[owner].waits, 1);
			__sync_fetch_and_add(&holders[owner].us, now_us() - begin);
		}
		owner_now = i;
		usleep(200 + 100 * i);
		give_cache();
		usleep(50);
	}
	return nullptr;
}

static void convoy()
{
	pthread_t t[4];

	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], nullptr, in_convoy, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], nullptr);
	report("cache_lock", 4);
}

static void *signaller(void *arg)
{
	bool cond = arg != nullptr;

	name_thread("holder_a");
	for (;;) {
		sem_wait(&turn[0]);
		usleep(2000);
		if (!cond) {
			sem_post(&sem_ready);
			continue;
		}
		pthread_mutex_lock(&cache_lock);
		ready = true;
		pthread_cond_signal(&cond_ready);
		pthread_mutex_unlock(&cache_lock);
	}
	return nullptr;
}

NOINLINE void wait_cond()
{
	pthread_mutex_lock(&cache_lock);
	while (!ready)
		pthread_cond_wait(&cond_ready, &cache_lock);
	ready = false;
	pthread_mutex_unlock(&cache_lock);
}

NOINLINE void wait_sem()
{
	sem_wait(&sem_ready);
	sink = sink + 1;
}

static void signals(bool cond, long n)
{
	pthread_t t;

	pthread_create(&t, nullptr, signaller, cond ? &t : nullptr);
	for (long i = 0; i < n; i++) {
		long begin = now_us();

		sem_post(&turn[0]);
		if (cond)
			wait_cond();
		else
			wait_sem();
		holders[0].waits++;
		holders[0].us += now_us() - begin;
	}
	report(cond ? "cond_ready" : "sem_ready", 1);
}

// ---- The kernel's lock of a file

static int file_fd = -1, fault_fd = -1;
static char *fault_memory;

static void *faults(void *)
{
	struct uffd_msg msg;

	name_thread("faults");
	while (read(fault_fd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_zeropage zero = { { msg.arg.pagefault.address & ~4095ull, 4096 },
						0,
						0 };

		sem_post(&held);
		usleep(2000);
		ioctl(fault_fd, UFFDIO_ZEROPAGE, &zero);
	}
	return nullptr;
}

static void *writer(void *arg)
{
	long i = (long)arg;

	name_thread(holders[i].name);
	holders[i].tid = syscall(SYS_gettid);
	for (;;) {
		sem_wait(&turn[i]);
		madvise(fault_memory, 4096, MADV_DONTNEED);
		if (pwrite(file_fd, fault_memory, 4096, 0) != 4096)
			_exit(1);
		sem_post(&done);
	}
	return nullptr;
}

static bool open_file()
{
	struct uffdio_api api = { UFFD_API, 0, 0 };
	struct uffdio_register region = {};

	file_fd = open("locked.file", O_RDWR | O_CREAT, 0600);
	fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	fault_memory = (char *)mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	region.range.start = (unsigned long)fault_memory;
	region.range.len = 4096;
	region.mode = UFFDIO_REGISTER_MODE_MISSING;
	return file_fd >= 0 && fault_fd >= 0 && !ioctl(fault_fd, UFFDIO_API, &api) &&
	       !ioctl(fault_fd, UFFDIO_REGISTER, &region);
}

static void file(long n)
{
	pthread_t t;

	if (!open_file()) {
		fprintf(stderr, "no userfaultfd\n");
		_exit(77);
	}
	pthread_create(&t, nullptr, faults, nullptr);
	for (long i = 0; i < 2; i++)
		pthread_create(&t, nullptr, writer, (void *)i);
	for (long i = 0; i < n; i++) {
		int h = i % 4 == 3;
		long begin;

		sem_post(&turn[h]);
		sem_wait(&held);
		begin = now_us();
		if (pwrite(file_fd, "x", 1, 0) != 1)
			_exit(1);
		holders[h].waits++;
		holders[h].us += now_us() - begin;
		sem_wait(&done);
	}
	report("file", 2);
}

static void make_special(const char *mode)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	if (!strcmp(mode, "recursive"))
		pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
	if (!strcmp(mode, "pi"))
		pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	if (!strcmp(mode, "robust"))
		pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&special_lock, &a);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "mutex";
	long n = argc > 2 ? atol(argv[2]) : 400;

	name_thread("waiter");
	heap_lock = (pthread_mutex_t *)calloc(1, 1 << 20);
	pthread_mutex_init(heap_lock, nullptr);
	make_special(mode);
	sem_init(&turn[0], 0, 0);
	sem_init(&turn[1], 0, 0);
	sem_init(&held, 0, 0);
	sem_init(&done, 0, 0);
	sem_init(&sem_ready, 0, 0);
	if (!strcmp(mode, "convoy"))
		convoy();
	else if (!strcmp(mode, "cond") || !strcmp(mode, "sem"))
		signals(!strcmp(mode, "cond"), n);
	else if (!strcmp(mode, "file"))
		file(n);
	for (const kind &k : kinds) {
		if (strcmp(k.mode, mode))
			continue;
		which = &k;
		take_turns(n);
	}
	_exit(0);
}
