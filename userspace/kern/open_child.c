/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/open_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/in_root.h"
#include "kern/caps.h"
#include "worker/privs.h"
#include "worker/sealed_file.h"

uint64_t open_child_rights(void)
{
	uint64_t rights = PRIVS_CAP(CAP_SYS_PTRACE) | PRIVS_CAP(CAP_DAC_READ_SEARCH) |
			  PRIVS_CAP(CAP_CHECKPOINT_RESTORE);

	return rights | (caps_needed_mask() & PRIVS_CAP(CAP_SYS_ADMIN));
}

/*
 * Opens the mapped file itself. Inode and mtime detect a reused pid or a replaced mapping. Returns
 * an fd or -errno.
 */
static int open_mapped(const struct open_ask *ask, const char *link, struct stat *st)
{
	uint64_t mtime_ns;
	int fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	mtime_ns = fstat(fd, st) ? 0 : clock_timespec_ns(st->st_mtim);
	/*
	 * Stacking and snapshotting file systems may show another inode number; then mtime must
	 * match.
	 */
	if (!mtime_ns || !S_ISREG(st->st_mode) ||
	    (st->st_ino != ask->ino && mtime_ns != ask->mtime_ns)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* Returns a copy of the file, or -errno. Closes `from`. */
static int copy_of(int from, const struct stat *st, uint64_t most, uint32_t *ret_bytes)
{
	int to = (uint64_t)st->st_size > most
			 ? -EFBIG
			 : sealed_file_copy("sfbpf-file", from, 0, st->st_size, ret_bytes);

	close(from);
	return to;
}

static int open_file(const struct worker_request *r)
{
	const struct open_ask *ask = r->ask;
	struct open_answer *answer = r->answer;
	struct stat st;
	char link[96];
	int fd;

	answer->err = -EINPROGRESS;
	snprintf(link, sizeof(link), "/proc/%u/map_files/%llx-%llx", living_thread(ask->pid),
		 (unsigned long long)ask->start, (unsigned long long)ask->end);
	if (readlink(link, answer->path, sizeof(answer->path) - 1) < 0)
		answer->path[0] = 0;
	/* The path is useful even if the open never returns. */
	if (ask->copy && fork_send(r->sock, answer, sizeof(*answer), &r->mem, 1, 0))
		_exit(1);
	fd = open_mapped(ask, link, &st);
	if (fd >= 0 && ask->copy)
		fd = copy_of(fd, &st, ask->most, &answer->bytes);
	answer->err = fd < 0 ? fd : 0;
	return fd;
}

void open_child_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = sizeof(struct open_ask),
		.most = sizeof(struct open_ask),
		.answer_len = sizeof(struct open_answer),
		.sends_fd = true,
		.reply = open_file,
	};

	prctl(PR_SET_NAME, "sfbpf-open");
	worker_serve(sock, mem, &service);
}
