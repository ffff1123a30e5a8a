/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/spool_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/full_io.h"

#define NAME_MAX_LEN 32

static void name_of(uint64_t seq, const char *suffix, char ret[NAME_MAX_LEN])
{
	snprintf(ret, NAME_MAX_LEN, "%016" PRIx64 "%s", seq, suffix);
}

static uint32_t head_crc(const struct spool_head *h)
{
	size_t from = offsetof(struct spool_head, data_crc);

	return (uint32_t)crc32(0, (const Bytef *)h + from, (uInt)(sizeof(*h) - from));
}

static int read_all(int fd, void *data, size_t len)
{
	uint8_t *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int spool_file_write(int dir, uint64_t seq, const struct body *b)
{
	struct spool_head h = {
		.magic = SPOOL_MAGIC,
		.data_crc = (uint32_t)crc32(0, b->data, (uInt)b->len),
		.kind = b->kind,
		.seq = seq,
		.len = b->len,
		.time_ns = b->time_ns,
		.samples = b->samples,
		.gzip = b->gzip,
	};
	char tmp[NAME_MAX_LEN], name[NAME_MAX_LEN];
	int fd, err;

	memcpy(h.id, b->id, sizeof(h.id));
	h.head_crc = head_crc(&h);
	name_of(seq, ".tmp", tmp);
	name_of(seq, ".body", name);
	fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	err = write_full(fd, &h, sizeof(h));
	if (!err)
		err = write_full(fd, b->data, b->len);
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(dir, tmp, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, tmp, 0);
	else
		fsync(dir);
	return err;
}

static int read_head(int fd, struct spool_head *h)
{
	struct stat st;
	int err = fstat(fd, &st)	? -errno
		  : S_ISREG(st.st_mode) ? read_all(fd, h, sizeof(*h))
					: -EBADMSG;

	if (err)
		return err;
	if (h->magic != SPOOL_MAGIC || h->head_crc != head_crc(h) || !h->kind ||
	    h->kind >= BODY_KINDS || h->len > SPOOL_MAX_BODY ||
	    (uint64_t)st.st_size != sizeof(*h) + h->len)
		return -EBADMSG;
	return 0;
}

int spool_file_read(int dir, uint64_t seq, struct body *ret)
{
	char name[NAME_MAX_LEN];
	struct spool_head h;
	int fd, err;

	name_of(seq, ".body", name);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret = (struct body){ 0 };
	err = read_head(fd, &h);
	if (!err && !(ret->data = malloc(h.len ? h.len : 1)))
		err = -ENOMEM;
	if (!err)
		err = read_all(fd, ret->data, h.len);
	if (!err && (h.seq != seq || (uint32_t)crc32(0, ret->data, (uInt)h.len) != h.data_crc))
		err = -EBADMSG;
	close(fd);
	if (err) {
		free(ret->data);
		ret->data = NULL;
		return err;
	}
	ret->kind = h.kind;
	ret->gzip = h.gzip;
	ret->time_ns = h.time_ns;
	ret->samples = h.samples;
	ret->len = h.len;
	memcpy(ret->id, h.id, sizeof(ret->id));
	return 0;
}

void spool_file_remove(int dir, uint64_t seq)
{
	char name[NAME_MAX_LEN];

	name_of(seq, ".body", name);
	unlinkat(dir, name, 0);
}

bool spool_file_exists(int dir, uint64_t seq)
{
	char name[NAME_MAX_LEN];

	name_of(seq, ".body", name);
	return !faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* The number in a name like "SEQ.body". False: another file. */
static bool parse_name(const char *name, const char *suffix, uint64_t *ret)
{
	char want[NAME_MAX_LEN];

	if (sscanf(name, "%16" SCNx64, ret) != 1)
		return false;
	name_of(*ret, suffix, want);
	return !strcmp(want, name);
}

static int look_at(int dir, const char *name, int (*fn)(void *ctx, const struct spool_head *h),
		   void *ctx, uint64_t *damaged)
{
	struct spool_head h;
	uint64_t seq;
	int fd, err;

	if (parse_name(name, ".tmp", &seq)) {
		unlinkat(dir, name, 0);
		return 0;
	}
	if (!parse_name(name, ".body", &seq))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	err = fd < 0 ? -errno : read_head(fd, &h);
	if (fd >= 0)
		close(fd);
	if (!err && h.seq == seq)
		return fn(ctx, &h);
	unlinkat(dir, name, 0);
	++*damaged;
	return 0;
}

int spool_files(int dir, int (*fn)(void *ctx, const struct spool_head *h), void *ctx,
		uint64_t *ret_damaged)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(d)))
		err = look_at(dir, e->d_name, fn, ctx, ret_damaged);
	closedir(d);
	return err;
}

int spool_file_give(int dir, uint64_t seq, uid_t uid, gid_t gid)
{
	char name[NAME_MAX_LEN];

	name_of(seq, ".body", name);
	return fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}
