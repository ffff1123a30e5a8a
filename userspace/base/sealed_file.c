/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int sealed_file_begin(const char *name, off_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? -errno : ftruncate(fd, size) ? -errno : 0;

	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

int sealed_file_end(int fd, int err)
{
	if (fd < 0)
		return fd;
	if (!err && fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}
