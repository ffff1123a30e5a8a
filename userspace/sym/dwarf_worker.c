/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/dwarf_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/child_end.h"
#include "base/clock.h"
#include "base/fork_server.h"
#include "base/full_io.h"
#include "base/jail.h"
#include "base/num.h"
#include "base/privs.h"
#include "base/vec.h"

#define ANSWER_MAX (256u << 20)
#define STRING_MAX 4095		/* bytes of a name or a path; longer ones are cut */
#define NOBODY 65534
#define WALL 4			/* times the CPU time */
#define LOOK_MS 1000
#define SILENT_NS (10 * NUM_S)	/* without a use of the CPU: it waits for a file system */
#define END_MS 2000

/*
 * On the pipe, for each address: index, number of frames; for each frame: line, name, file. Numbers are 32 bits in our own
 * byte order, strings end with a NUL.
 */

/* ---- The worker ---- */

struct answer {
	int fd;
	size_t len;
	char buf[1 << 16];
};

static int flush(struct answer *a)
{
	if (write_full(a->fd, a->buf, a->len))
		return -EPIPE;
	a->len = 0;
	return 0;
}

static int put(struct answer *a, const void *data, size_t n)
{
	while (n) {
		size_t room = sizeof(a->buf) - a->len, some = n < room ? n : room;

		memcpy(a->buf + a->len, data, some);
		a->len += some;
		data = (const char *)data + some;
		n -= some;
		if (a->len == sizeof(a->buf) && flush(a))
			return -EPIPE;
	}
	return 0;
}

static int put_string(struct answer *a, const char *s)
{
	int err = put(a, s ? s : "", s ? strnlen(s, STRING_MAX) : 0);

	return err ? err : put(a, "", 1);
}

static int tell(void *ctx, size_t i, const struct dwarf_frame *frames, size_t n)
{
	uint32_t head[2] = { (uint32_t)i, (uint32_t)n };
	int err = put(ctx, head, sizeof(head));

	for (size_t k = 0; k < n && !err; k++) {
		err = put(ctx, &frames[k].line, sizeof(frames[k].line));
		if (!err)
			err = put_string(ctx, frames[k].name);
		if (!err)
			err = put_string(ctx, frames[k].file);
	}
	return err;
}

/* The owner of the file wrote the paths in it; the root of another file system is nobody in ours. */
static int drop_rights(const struct dwarf_job *job, const struct dwarf_place *place)
{
	struct stat st;
	uid_t uid;
	gid_t gid;

	if (geteuid() != 0)
		return 0;
	if (fstat(job->fd, &st))
		return -errno;
	uid = st.st_uid;
	gid = st.st_gid;
	if (place->root_fd >= 0 && (fchdir(place->root_fd) || chroot(".")))
		return -errno;
	if (place->foreign && !uid)
		uid = gid = NOBODY;
	if (!uid)
		return 0;
	return setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid) ? -errno : 0;
}

static _Noreturn void work(const struct dwarf_job *job, const struct dwarf_place *place, const struct dwarf_limits *limits, int pipe_fd)
{
	static struct answer a;
	const int keep[] = { job->fd, job->alt_fd, place->root_fd, pipe_fd };
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, 0);
	jail_close_others(keep, sizeof(keep) / sizeof(keep[0]));
	jail_limit(&(struct jail_limits){ .data_bytes = limits->bytes, .cpu_seconds = limits->seconds });
	a.fd = pipe_fd;
	err = drop_rights(job, place);
	if (!err)
		err = privs_keep(0);
	if (!err)
		err = dwarf_read(job, tell, &a);
	flush(&a);
	_exit(err == -ENOENT ? 2 : err ? 1 : 0);
}

/* ---- Our side ---- */

/* Whole records are emitted. Returns the bytes they take, or -errno of emit; -EBADMSG: not what a worker says. */
static ssize_t take_records(struct bytes b, size_t naddrs, dwarf_emit_fn emit, void *ctx)
{
	struct dwarf_frame frames[DWARF_MAX_CHAIN];
	size_t used = 0;

	for (;; used = b.pos) {
		uint32_t i = bytes_u32(&b), n = bytes_u32(&b);
		int err;

		if (b.err)
			return (ssize_t)used;
		if (i >= naddrs || !n || n > DWARF_MAX_CHAIN)
			return -EBADMSG;
		for (uint32_t k = 0; k < n && !b.err; k++) {
			frames[k].line = bytes_u32(&b);
			frames[k].name = bytes_str(&b);
			frames[k].file = bytes_str(&b);
			if (b.err)
				break;
			if (!*frames[k].name)
				frames[k].name = NULL;
			if (!*frames[k].file)
				frames[k].file = NULL;
		}
		if (b.err)
			return (ssize_t)used;
		err = emit(ctx, i, frames, n);
		if (err)
			return err;
	}
}

/* Everything that comes through the pipe until its end. */
static int read_answer(const struct dwarf_job *job, int fd, const struct fork_child *worker, unsigned int seconds, dwarf_emit_fn emit, void *ctx)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + seconds * NUM_S, total = 0;
	uint8_t *buf = NULL;
	size_t len = 0, cap = 0;
	ssize_t n = 0;
	int err = 0;

	while (!err) {
		err = clock_ns(CLOCK_MONOTONIC) >= deadline ? -ETIMEDOUT : fork_child_wait(worker, fd, LOOK_MS, SILENT_NS, deadline);
		if (!err)
			err = vec_reserve(&buf, &cap, len + 65536, 1);
		if (err || (n = read(fd, buf + len, cap - len)) <= 0)
			break;
		len += (size_t)n;
		total += (size_t)n;
		n = total > ANSWER_MAX ? -EFBIG :
		    take_records(bytes_of(buf, len, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__), job->n, emit, ctx);
		if (n < 0) {
			err = (int)n;
		} else {
			len -= (size_t)n;
			memmove(buf, buf + n, len);
		}
	}
	free(buf);
	return err;
}

int dwarf_work(const struct dwarf_job *job, const struct dwarf_place *place, const struct dwarf_limits *limits, dwarf_emit_fn emit, void *ctx)
{
	int fds[2], err, status;
	bool gone = false;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (!pid)
		work(job, place, limits, fds[1]);
	close(fds[1]);
	err = read_answer(job, fds[0], &(struct fork_child){ .pid = pid }, WALL * limits->seconds, emit, ctx);
	close(fds[0]);
	/* Also the end waits for file systems that it has files of. */
	if (!err)
		gone = child_wait(pid, END_MS, &status);
	if (!gone && !child_kill(pid, &status) && !err)
		err = -ETIMEDOUT;
	if (err)
		return err;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		return -ETIMEDOUT;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 1)
		return -ECHILD;
	return WEXITSTATUS(status) == 2 ? -ENOENT : 0;
}
