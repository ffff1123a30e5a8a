/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads foreign files: it makes the same tables, has no rights, and whatever one
 * does that was broken into harms nothing else.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc_status.h"
#include "readers/code_rows.h"
#include "sound.h"
#include "tables/table_entry.h"
#include "tables/table_worker.h"
#include "test.h"
#include "worker/jail.h"

#define SPACE (8u << 20)
static struct sound_space made, got;

static struct pack_space space_of(struct sound_space *s)
{
	if (!s->space.mem)
		EXPECT(space_init(&s->space, SPACE));
	sound_clear(s);
	return (struct pack_space){ sound_alloc, s };
}

static int own_file(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static struct worker worker;
static struct worker_totals totals;
static struct worker_limits limits;

static void honest(int sock, int mem)
{
	table_worker_run(sock, mem,
			 (struct jail_reader){ .memory = 256u << 20, .output = 64u << 20 });
}

static bool begin(fork_child_fn fn, uint64_t cpu_ns, uint64_t wall_ns)
{
	struct fork_server *server = fork_server_start(0);

	totals = (struct worker_totals){ 0 };
	limits = (struct worker_limits){ .cpu_ns = cpu_ns, .wall_ns = wall_ns };
	worker_init(&worker, server, fn, &totals);
	EXPECT(server != NULL);
	return server != NULL;
}

static void end(void)
{
	worker_end(&worker);
	fork_server_stop(worker.server);
}

static int wait_event(struct table_answer *a)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int event;

	do {
		struct pollfd p = { .fd = worker.child.sock, .events = POLLIN };

		poll(&p, 1, 20);
		event = table_worker_look(&worker, a);
	} while (event == -EAGAIN && clock_ns(CLOCK_MONOTONIC) - start < 60 * 1000000000ull);
	return event;
}

static const struct table_ask plain = { 0 };

static int ask_for(int fd, const struct table_ask *ask, struct table_answer *a)
{
	int err = worker_ask(&worker, &limits, ask, sizeof(*ask), &fd, 1);

	EXPECT_EQ(err, 0);
	return err ? -EAGAIN : wait_event(a);
}

/* ---- An honest child ---- */

static void same_tables(const struct pack_result *a, const struct pack_result *b)
{
	const uint32_t *x = space_at(&made.space, a->tables.dir),
		       *y = space_at(&got.space, b->tables.dir);

	EXPECT(a->rows == b->rows && a->rules == b->rules && a->bytes == b->bytes &&
	       a->nranges == b->nranges && a->rows > 100);
	EXPECT(a->tables.npages == b->tables.npages &&
	       a->tables.first_page == b->tables.first_page && a->tables.flags == b->tables.flags);
	EXPECT(!memcmp(space_at(&made.space, a->tables.rules),
		       space_at(&got.space, b->tables.rules), a->rules * sizeof(struct sf_rule)));
	EXPECT(sound_tables(&got, b));
	for (uint32_t i = 0; i < a->tables.npages && i < b->tables.npages; i++) {
		const uint8_t *page = space_at(&made.space, x[i]),
			      *other = space_at(&got.space, y[i]);
		uint32_t size = sound_size(&made, x[i]);

		EXPECT(size == sound_size(&got, y[i]) && !x[i] == !y[i]);
		if (!x[i] || !y[i] || size != sound_size(&got, y[i]))
			continue;
		/* Two bytes after the index are padding. */
		EXPECT(!memcmp(page, other, 2 * SF_PAGE_INDEX) &&
		       !memcmp(page + SF_PAGE_ROWS, other + SF_PAGE_ROWS, size - SF_PAGE_ROWS));
	}
}

TEST(child_makes_the_same_tables)
{
	const struct pack_space here = space_of(&made), there = space_of(&got);
	const struct table_ask all = { .code = CODE_ALL };
	const struct code_rows_opts opts = { 0 };
	struct pack_result a = { 0 }, b = { 0 };
	struct table_answer answer = { 0 };
	struct unwind_file file;
	int fd = own_file(), fds;

	EXPECT_EQ(unwind_file_open_fd(&file, fd, NULL), 0);
	/* Parts of the C library that are linked in have no tables in some releases. */
	if (code_gap_bytes(&file))
		EXPECT_EQ(code_rows(&file, &opts), 0);
	EXPECT_EQ(pack_file(&file, &here, &a, NULL), 0);
	unwind_file_close(&file);
	if (begin(honest, 10000000000ull, 60000000000ull)) {
		EXPECT_EQ(ask_for(fd, &all, &answer), 0);
		fds = count_fds("/proc/self/fd");
		for (int i = 0; i < 3; i++) {
			sound_clear(&got);
			if (i)
				EXPECT_EQ(ask_for(fd, &all, &answer), 0);
			EXPECT(answer.message == TABLE_DONE && !answer.err && answer.cpu_ns);
			EXPECT_EQ(table_worker_read(&worker, &answer, 64 << 20, &there, &b), 0);
			same_tables(&a, &b);
			free(b.ranges);
		}
		EXPECT_EQ(count_fds("/proc/self/fd"), fds);
		EXPECT(totals.cpu_ns > 0);
		EXPECT(!totals.died && !totals.late);
		end();
	}
	free(a.ranges);
	close(fd);
}

TEST(child_refuses_what_is_too_large_for_it)
{
	const struct table_ask ask = { .max_bytes = 16 };
	struct table_answer answer = { 0 };
	int fd = own_file();

	if (begin(honest, 10000000000ull, 60000000000ull)) {
		EXPECT(ask_for(fd, &ask, &answer) == 0 && answer.message == TABLE_LARGE &&
		       !worker.busy);
		EXPECT(ask_for(fd, &plain, &answer) == 0 && answer.message == TABLE_DONE &&
		       !answer.err);
		end();
	}
	close(fd);
}

#ifndef __SANITIZE_ADDRESS__
static int fds_of(pid_t pid)
{
	char path[64];
	int n = -2;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}
#endif

TEST(child_has_no_rights)
{
	struct table_answer answer;
	int fd = own_file();

	if (begin(honest, 10000000000ull, 60000000000ull)) {
		pid_t pid;

		EXPECT_EQ(ask_for(fd, &plain, &answer), 0);
		pid = worker.child.pid;
		for (const char *const *f = (const char *const[]){ "CapInh", "CapPrm", "CapEff",
								   "CapBnd", "CapAmb", NULL };
		     *f; f++) {
			EXPECT(status_has(pid, *f, "0000000000000000") || geteuid());
			EXPECT(status_has(fork_server_pid(worker.server), *f, "0000000000000000") ||
			       geteuid());
		}
		EXPECT(status_has(pid, "NoNewPrivs", "1"));
#ifndef __SANITIZE_ADDRESS__
		EXPECT(status_has(pid, "Seccomp", jail_can_filter() ? "2" : "0"));
		/* Its socket and the memory; what was sent is closed a moment later. */
		for (int i = 0;
		     i < 500 && (fds_of(pid) > 2 || fds_of(fork_server_pid(worker.server)) > 1);
		     i++)
			usleep(10000);
		EXPECT(fds_of(pid) == 2 || geteuid());
		EXPECT(fds_of(fork_server_pid(worker.server)) == 1 || geteuid());
#endif
		end();
		EXPECT(kill(pid, 0) && errno == ESRCH);
	}
	close(fd);
}

/* ---- The jail ---- */

/* The signal that ends a process that does this under the filter; 0: it went on. */
static int filtered(void (*fn)(void))
{
	static const uint16_t calls[] = { SYS_write, SYS_exit_group, SYS_close };
	pid_t pid = fork();
	int status = 0;

	if (!pid) {
		jail_limit(&(struct jail_limits){ .cpu_seconds = 10 });
		if (jail_calls(calls, sizeof(calls) / sizeof(calls[0])))
			_exit(2);
		fn();
		syscall(SYS_exit_group, 0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static void do_nothing(void)
{
	syscall(SYS_close, 99);
	syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void do_open(void)
{
	syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

static void do_exec_memory(void)
{
	syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void do_fork(void)
{
	syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

TEST(jail_allows_what_is_listed)
{
	if (!jail_can_filter())
		SKIP("this kernel cannot filter system calls");
	EXPECT_EQ(filtered(do_nothing), 0);
	EXPECT_EQ(filtered(do_open), SIGSYS);
	EXPECT_EQ(filtered(do_exec_memory), SIGSYS);
	EXPECT_EQ(filtered(do_fork), SIGSYS);
}

/* ---- Children that were broken into ---- */

static bool take_ask(int sock)
{
	struct table_ask ask;
	int fd;

	if (fork_receive(sock, &ask, sizeof(ask), &fd, 1, 0))
		_exit(0);
	close(fd);
	return true;
}

/* An entry as an honest one makes it. */
static struct table_answer real_answer(int mem)
{
	const struct pack_space inner = space_of(&made);
	struct table_pieces pieces = { .inner = &inner };
	const struct pack_space space = table_pieces_space(&pieces);
	struct table_answer a = { .message = TABLE_DONE };
	struct pack_result packed;
	struct unwind_file file;
	int fd = own_file();

	if (unwind_file_open_fd(&file, fd, NULL) || pack_file(&file, &space, &packed, NULL) ||
	    table_entry_write(mem, &packed, &pieces, &a.bytes))
		_exit(1);
	return a;
}

static void dies(int sock, int mem)
{
	(void)mem;
	take_ask(sock);
	raise(SIGKILL);
}

static void runs(int sock, int mem)
{
	(void)mem;
	take_ask(sock);
	for (volatile int i = 0;; i = i + 1)
		;
}

static void sleeps(int sock, int mem)
{
	(void)mem;
	take_ask(sock);
	for (;;)
		pause();
}

/* What it says, one thing a file; then the process is of no use any more. */
static struct table_answer lies[] = {
	{ .message = TABLE_DONE, .bytes = 1ull << 62 },
	{ .message = TABLE_DONE, .bytes = 64 << 20 },
	{ .message = TABLE_DONE, .bytes = 63 },
	{ .message = TABLE_DONE, .bytes = 0 },
	{ .message = TABLE_DONE, .err = 1 },
	{ .message = 77 },
	{ .message = 0 },
	{ .message = TABLE_DONE, .build_id_len = 21 },
	{ .message = TABLE_LARGE, .build_id_len = UINT32_MAX },
};
static _Atomic unsigned int *lie; /* shared: which one is next */

static void says_lies(int sock, int mem)
{
	(void)mem;
	take_ask(sock);
	fork_send(sock, &lies[*lie], sizeof(lies[0]), NULL, 0, 0);
	for (;;)
		pause();
}

static void floods(int sock, int mem)
{
	struct table_answer a = { .message = TABLE_LARGE };
	int fds[] = { mem, sock };

	take_ask(sock);
	while (!fork_send(sock, &a, sizeof(a), fds, 2, 0))
		;
	_exit(0);
}

/* Right when it is looked at first. */
static void changes(int sock, int mem)
{
	struct table_answer a;
	uint32_t x = (uint32_t)getpid();
	uint8_t *p;

	take_ask(sock);
	a = real_answer(mem);
	p = mmap(NULL, a.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	if (fork_send(sock, &a, sizeof(a), NULL, 0, 0))
		_exit(0);
	for (;;) {
		x = x * 1664525 + 1013904223;
		p[(x >> 4) % a.bytes] ^= (uint8_t)(1u << (x & 7));
		/* Counts at the start, pages' indexes. */
		p[16 + (x >> 8) % 48] ^= (uint8_t)(1u << (x & 7));
	}
}

static void shrinks(int sock, int mem)
{
	struct table_answer a;

	take_ask(sock);
	a = real_answer(mem);
	if (ftruncate(mem, (off_t)a.bytes / 2))
		_exit(0);
	fork_send(sock, &a, sizeof(a), NULL, 0, 0);
	for (;;)
		pause();
}

TEST(parser_survives_its_children)
{
	struct table_answer a;
	int fd = own_file(), fds;

	if (begin(dies, 1000000000ull, 60000000000ull)) {
		fds = count_fds("/proc/self/fd");
		for (unsigned int i = 1; i <= 5; i++) {
			EXPECT_EQ(ask_for(fd, &plain, &a), -ECHILD);
			EXPECT(totals.died == i && !worker.busy && !worker.child.pid);
		}
		EXPECT_EQ(count_fds("/proc/self/fd"), fds);
		end();
	}
	close(fd);
}

TEST(parser_ends_what_takes_too_long)
{
	struct table_answer a;
	int fd = own_file();

	if (begin(runs, 50000000ull, 600000000000ull)) {
		EXPECT_EQ(ask_for(fd, &plain, &a), -ETIME);
		EXPECT(totals.late == 1 && !totals.died && !worker.child.pid &&
		       totals.cpu_ns >= 50000000ull);
		end();
	}
	if (begin(sleeps, 50000000ull, 300000000ull)) {
		EXPECT_EQ(ask_for(fd, &plain, &a), -ETIMEDOUT);
		EXPECT(totals.late == 1 && !worker.child.pid);
		end();
	}
	close(fd);
}

TEST(parser_believes_no_lies)
{
	const struct pack_space there = space_of(&got);
	struct pack_result packed;
	struct table_answer a;
	int fd = own_file();

	lie = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (begin(says_lies, 1000000000ull, 60000000000ull)) {
		for (*lie = 0; *lie < sizeof(lies) / sizeof(lies[0]); ++*lie) {
			int event = ask_for(fd, &plain, &a);

			EXPECT(event == -ECHILD || (event == 0 && a.message == TABLE_DONE));
			if (event == 0)
				EXPECT_EQ(table_worker_read(&worker, &a, 64 << 20, &there, &packed),
					  -EBADMSG);
			EXPECT_EQ(totals.died, *lie + 1);
			EXPECT(!worker.child.pid);
		}
		end();
	}
	munmap((void *)lie, 4096);
	close(fd);
}

/*
 * One answer is taken, the second one of its kind ends the child; descriptors in it stay nowhere.
 */
TEST(parser_is_not_flooded)
{
	struct table_answer a;
	int fd = own_file(), fds;

	if (begin(floods, 1000000000ull, 60000000000ull)) {
		fds = count_fds("/proc/self/fd");
		for (int i = 0; i < 3; i++) {
			int event = ask_for(fd, &plain, &a);

			for (int k = 0; k < 3 && event == 0; k++)
				event = wait_event(&a);
			EXPECT_EQ(event, -ECHILD);
		}
		EXPECT_EQ(count_fds("/proc/self/fd"), fds);
		end();
	}
	close(fd);
}

TEST(parser_takes_what_it_checked)
{
	int fd = own_file(), refused = 0, taken = 0;
	struct table_answer a;

	if (begin(changes, 10000000000ull, 60000000000ull)) {
		for (int i = 0; i < 40; i++) {
			const struct pack_space there = space_of(&got);
			struct pack_result packed;
			int err;

			EXPECT_EQ(ask_for(fd, &plain, &a), 0);
			/* As often as it is let. */
			do {
				err = table_worker_read(&worker, &a, 64 << 20, &there, &packed);
				if (!err) {
					EXPECT(sound_tables(&got, &packed));
					free(packed.ranges);
					sound_clear(&got);
				}
				taken += !err;
			} while (!err);
			refused += err == -EBADMSG;
			EXPECT(err == -EBADMSG);
		}
		printf("  taken %d, refused %d\n", taken, refused);
		EXPECT(refused > 0);
		end();
	}
	if (begin(shrinks, 10000000000ull, 60000000000ull)) {
		const struct pack_space there = space_of(&got);
		struct pack_result packed;

		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		EXPECT_EQ(table_worker_read(&worker, &a, 64 << 20, &there, &packed), -EBADMSG);
		EXPECT_EQ(totals.died, 1);
		end();
	}
	close(fd);
}

/* Killed from outside while idle, and while at work. */
TEST(parser_gets_another_child)
{
	struct table_answer a;
	int fd = own_file();

	if (begin(honest, 10000000000ull, 60000000000ull)) {
		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		kill(worker.child.pid, SIGKILL);
		usleep(50000);
		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		EXPECT_EQ(totals.died, 1);
		kill(worker.child.pid, SIGKILL);
		EXPECT_EQ(wait_event(&a), -ECHILD);
		EXPECT_EQ(totals.died, 2);
		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		/* Idle ones may go; no child is missed then. */
		worker_rest(&worker);
		EXPECT(worker.child.pid);
		worker.since_ns -= WORKER_IDLE_NS;
		worker_rest(&worker);
		EXPECT(!worker.child.pid && totals.died == 2 &&
		       table_worker_look(&worker, &a) == -EAGAIN);
		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		/* Without the fork server: an error, no wait; and no descriptor is left. */
		kill(fork_server_pid(worker.server), SIGKILL);
		EXPECT_EQ(wait_event(&a), -ECHILD);
		EXPECT_EQ(worker_ask(&worker, &limits, &plain, sizeof(plain), &fd, 1), -ECHILD);
		end();
	}
	close(fd);
}

#ifndef __SANITIZE_ADDRESS__
static void small(int sock, int mem)
{
	table_worker_run(sock, mem, (struct jail_reader){ .memory = 4096, .output = 64u << 20 });
}

static void short_entry(int sock, int mem)
{
	table_worker_run(sock, mem, (struct jail_reader){ .memory = 256u << 20, .output = 100 });
}

TEST(child_stays_in_its_memory)
{
	struct table_answer a;
	int fd = own_file();

	malloc_trim(0); /* what other tests freed would be the child's */
	if (begin(small, 10000000000ull, 60000000000ull)) {
		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		EXPECT(a.message == TABLE_DONE && a.err == -ENOMEM);
		end();
	}
	if (begin(short_entry, 10000000000ull, 60000000000ull)) {
		EXPECT_EQ(ask_for(fd, &plain, &a), 0);
		EXPECT(a.message == TABLE_DONE && a.err == -EIO); /* the entry does not fit */
		end();
	}
	close(fd);
}
#endif
