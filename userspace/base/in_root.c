/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int root_of_process(uint32_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), pid ? "/proc/%u/root" : "/", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int open_in_root(int root_fd, const char *path, struct stat *st)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	/* Looked at before it is opened: opening some devices does something. */
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
