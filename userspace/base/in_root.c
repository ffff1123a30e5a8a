/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/in_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 64 /* threads checked; a thread that has ended stays only if it is traced */

static bool is_living(uint32_t tid)
{
	char path[32], to;

	snprintf(path, sizeof(path), "/proc/%u/root", tid);
	return readlink(path, &to, 1) == 1;
}

uint32_t living_thread(uint32_t pid)
{
	uint32_t found = 0;
	char path[32];
	struct dirent *e;
	DIR *threads;

	if (is_living(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	threads = opendir(path);
	for (int looked = 0; threads && !found && looked < THREADS_MAX && (e = readdir(threads));
	     looked++) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);

		found = tid && is_living(tid) ? tid : 0;
	}
	if (threads)
		closedir(threads);
	return found ? found : pid;
}

int root_of_process(uint32_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), pid ? "/proc/%u/root" : "/", pid ? living_thread(pid) : 0);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int open_in_root(int root_fd, const char *path, struct stat *st)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	/* Checked before it is opened, as opening some devices has side effects. */
	struct open_how look = { .flags = O_PATH | O_CLOEXEC, .resolve = how.resolve };
	int fd = (int)syscall(SYS_openat2, root_fd, path, &look, sizeof(look)), err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, st))
		err = -errno;
	else if (!S_ISREG(st->st_mode))
		err = -EINVAL;
	close(fd);
	if (err)
		return err;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}
