/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/open_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/in_root.h"
#include "base/privs.h"
#include "base/sealed_file.h"
#include "kern/caps.h"

uint64_t open_child_rights(void)
{
	uint64_t rights = PRIVS_CAP(CAP_SYS_PTRACE) | PRIVS_CAP(CAP_DAC_READ_SEARCH) | PRIVS_CAP(CAP_CHECKPOINT_RESTORE);

	return rights | (caps_needed_mask() & PRIVS_CAP(CAP_SYS_ADMIN));
}

/* The mapped file itself. A pid that was reused, or a mapping replaced meanwhile, shows in inode and mtime. An fd or -errno. */
static int open_mapped(const struct open_ask *ask, const char *link, struct stat *st)
{
	uint64_t mtime_ns;
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	mtime_ns = fstat(fd, st) ? 0 : clock_timespec_ns(st->st_mtim);
	/* File systems that stack or snapshot may show another inode number; then the time must agree. */
	if (!mtime_ns || !S_ISREG(st->st_mode) || (st->st_ino != ask->ino && mtime_ns != ask->mtime_ns)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* Takes from. */
static int copy_of(int from, const struct stat *st, uint64_t most, uint32_t *ret_bytes)
{
	int to = (uint64_t)st->st_size > most ? -EFBIG : sealed_file_copy("sfbpf-file", from, 0, st->st_size, ret_bytes);

	close(from);
	return to;
}

static void serve(int sock, int none, const struct open_ask *ask)
{
	static struct open_answer answer;
	struct stat st;
	char link[96];
	ssize_t n;
	int fd;

	answer = (struct open_answer){ .err = -EINPROGRESS };
	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", living_thread(ask->pid),
		 (unsigned long long)ask->start, (unsigned long long)ask->end);
	n = readlink(link, answer.path, sizeof(answer.path) - 1);
	answer.path[n > 0 ? n : 0] = 0;
	/* What is known of one that may never be open. */
	if (ask->copy && fork_send(sock, &answer, sizeof(answer), &none, 1, 0))
		_exit(1);
	fd = open_mapped(ask, link, &st);
	if (fd >= 0 && ask->copy)
		fd = copy_of(fd, &st, ask->most, &answer.bytes);
	answer.err = fd < 0 ? fd : 0;
	if (fork_send(sock, &answer, sizeof(answer), fd < 0 ? &none : &fd, 1, 0))
		_exit(1);
	if (fd >= 0)
		close(fd);
}

void open_child_main(int sock, int mem)
{
	struct open_ask ask;

	prctl(PR_SET_NAME, "sfbpf-open");
	while (!fork_receive(sock, &ask, sizeof(ask), NULL, 0, 0))
		serve(sock, mem, &ask);
	_exit(0);
}
