/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int begin(const char *name, off_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err = fd < 0 ? -errno : ftruncate(fd, size) ? -errno : 0;

	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* Seals the file. With err it closes fd instead. */
static int seal(int fd, int err)
{
	if (fd < 0)
		return fd;
	if (!err && fcntl(fd, F_ADD_SEALS, SEALS))
		err = -errno;
	if (err)
		close(fd);
	return err ? err : fd;
}

/* Returns the bytes read; fewer than len only at the end of the file or on an error. */
static size_t read_block(int fd, uint8_t *buf, size_t len, off_t at)
{
	size_t got = 0;
	ssize_t n;

	while (got < len && (n = pread(fd, buf + got, len - got, at + (off_t)got)) > 0)
		got += (size_t)n;
	return got;
}

int sealed_file_copy(const char *name, int file, off_t from, off_t size, uint32_t *ret_bytes)
{
	static const uint8_t zeros[1 << 16];
	uint8_t buf[sizeof(zeros)];
	int to = begin(name, size), err = to < 0 ? to : 0;

	*ret_bytes = 0;
	for (off_t at = from; !err && at < size; at += (off_t)sizeof(buf)) {
		size_t want = size - at < (off_t)sizeof(buf) ? (size_t)(size - at) : sizeof(buf),
		       n = read_block(file, buf, want, at);

		if (n && memcmp(buf, zeros, n)) {
			*ret_bytes += (uint32_t)sizeof(buf);
			err = pwrite(to, buf, n, at) == (ssize_t)n ? 0 : -ENOMEM;
		}
		if (n < want)
			/* The file has shrunk or cannot be read: keep what there is */
			break;
	}
	return seal(to, err);
}

bool sealed_file_is(int fd)
{
	return fcntl(fd, F_GET_SEALS) == SEALS;
}
