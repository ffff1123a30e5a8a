/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/result_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/full_io.h"
#include "base/num.h"

#define LINKS_MAX 8
#define TRIES	  8 /* limits a race in which the file is repeatedly created and removed */

/* An id from the environment. -1 is excluded, as it means "no change" to the kernel. */
static bool id_of(const char *name, uint64_t *ret)
{
	const char *text = getenv(name);

	return text && !num_u64(text, 0, UINT32_MAX - 1, ret);
}

bool result_file_caller(uid_t *uid, gid_t *gid)
{
	uint64_t u, g;

	if (geteuid() != 0 || !id_of("SUDO_UID", &u) || !id_of("SUDO_GID", &g) || !u)
		return false;
	*uid = (uid_t)u;
	*gid = (gid_t)g;
	return true;
}

int result_file_keep_caller(void)
{
	uid_t uid;
	gid_t gid;

	if (!result_file_caller(&uid, &gid))
		return 0;
	return (setresgid((gid_t)-1, (gid_t)-1, gid) || setresuid((uid_t)-1, (uid_t)-1, uid)) &&
			       errno != EPERM
		       ? -errno
		       : 0;
}

static bool is_ours(uid_t owner)
{
	uid_t caller;
	gid_t group;

	return owner == geteuid() || (result_file_caller(&caller, &group) && owner == caller);
}

/*
 * Creates the file with the caller's rights if these suffice. The file then belongs to the caller
 * from the start. Without CAP_DAC_OVERRIDE it is also the only way into the caller's directories.
 * The fs ids are per thread, so this affects only the calling thread.
 */
static int create_as_caller(const char *path, int flags) /* O_DIRECTORY: makes a directory */
{
	uid_t uid, old_uid = geteuid();
	gid_t gid, old_gid = getegid();
	int fd, err;

	if (!result_file_caller(&uid, &gid)) {
		errno = EACCES;
		return -1;
	}
	setfsgid(gid);
	setfsuid(uid);
	/*
	 * setfsuid and setfsgid report no errors. A call with -1 fails and returns the current id.
	 */
	fd = (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid
		     ? flags & O_DIRECTORY ? mkdir(path, 0700) : open(path, flags, 0600)
		     : (errno = EACCES, -1);
	err = errno;
	setfsuid(old_uid);
	setfsgid(old_gid);
	errno = err;
	return fd;
}

int result_file_make_directory(const char *path)
{
	uid_t uid;
	gid_t gid;

	if (result_file_caller(&uid, &gid) && !create_as_caller(path, O_DIRECTORY))
		return 0;
	return mkdir(path, 0700) ? -errno : 0;
}

/* An fd or -errno. */
static int create(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
	    fd = create_as_caller(path, flags);
	uid_t uid;
	gid_t gid;

	if (fd >= 0)
		return fd;
	if (errno != EACCES && errno != EPERM)
		return -errno;
	fd = open(path, flags, 0600);
	if (fd < 0)
		return -errno;
	/* Best effort: without CAP_CHOWN the file stays with root. */
	if (result_file_caller(&uid, &gid) && fchown(fd, uid, gid) && errno != EPERM &&
	    errno != EINVAL) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* Replaces path, which names the symbolic link open as `fd`, with its target. 0 or -errno. */
static int follow(int fd, char *path, size_t cap)
{
	char target[PATH_MAX], whole[2 * PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);
	const char *slash = strrchr(path, '/');
	int len;

	if (n < 0)
		return -errno;
	target[n] = 0;
	len = snprintf(whole, sizeof(whole), "%.*s%s",
		       *target == '/' || !slash ? 0 : (int)(slash + 1 - path), path, target);
	if (len < 0 || (size_t)len >= cap)
		return -ENAMETOOLONG;
	memcpy(path, whole, (size_t)len + 1);
	return 0;
}

/*
 * Opens an existing file for writing, through its descriptor, so that it is the file that was
 * checked. An fd or -errno.
 */
static int open_known(int look, const struct stat *st, const char **why)
{
	char self[32];
	int fd;

	/* Devices are accepted: only root can create one. */
	if ((S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode)) && !is_ours(st->st_uid)) {
		*why = "it belongs to another user; remove it first";
		return -EPERM;
	}
	if (S_ISREG(st->st_mode) && st->st_nlink > 1) {
		*why = "the file has other names (hard links); remove it first";
		return -EPERM;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", look);
	fd = open(self, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

/*
 * One attempt. -EAGAIN: path was replaced with the target of a link, or the file has changed
 * meanwhile.
 */
static int open_once(char *path, size_t cap, unsigned int *links, const char **why)
{
	int look = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC), fd;
	struct stat st;

	if (look < 0) {
		fd = errno == ENOENT ? create(path) : -errno;
		return fd == -EEXIST ? -EAGAIN : fd;
	}
	if (fstat(look, &st)) {
		fd = -errno;
	} else if (!S_ISLNK(st.st_mode)) {
		fd = open_known(look, &st, why);
	} else if (st.st_uid && !is_ours(st.st_uid)) {
		*why = "it is another user's symbolic link";
		fd = -EPERM;
	} else if (++*links > LINKS_MAX) {
		fd = -ELOOP;
	} else {
		fd = follow(look, path, cap);
		if (!fd)
			fd = -EAGAIN;
	}
	close(look);
	return fd;
}

/* The descriptor that a path stands for; -1: none. */
static int named_fd(const char *path)
{
	static const char *const dirs[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t n;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (!strncmp(path, dirs[i], strlen(dirs[i])) &&
		    !num_u64(path + strlen(dirs[i]), 0, INT_MAX, &n))
			return (int)n;
	return -1;
}

static int stream(int fd, FILE **ret)
{
	int err;

	if (fd < 0)
		return fd;
	*ret = fdopen(fd, "w");
	if (*ret)
		return 0;
	err = -errno;
	close(fd);
	return err;
}

int result_file_open(const char *path, FILE **ret, const char **why)
{
	char at[PATH_MAX];
	unsigned int links = 0;
	int fd = named_fd(path);

	*why = NULL;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		return stream(fd < 0 ? -errno : fd, ret);
	}
	if (strlen(path) >= sizeof(at))
		return -ENAMETOOLONG;
	strcpy(at, path);
	fd = -EAGAIN;
	for (unsigned int i = 0; i < TRIES + LINKS_MAX && fd == -EAGAIN; i++)
		fd = open_once(at, sizeof(at), &links, why);
	return stream(fd, ret);
}

int result_file_create(const char *path, FILE **ret)
{
	return stream(create(path), ret);
}

/*
 * Whether the file is ours from its start: not one that a shell opened with >>, or that has been
 * written to already. -errno.
 */
static int is_whole(FILE *f, off_t *ret_size)
{
	int fd = fileno(f), flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*ret_size = st.st_size;
	return S_ISREG(st.st_mode) && flags >= 0 && !(flags & O_APPEND) &&
	       lseek(fd, 0, SEEK_CUR) == 0 && ftell(f) == 0;
}

int result_file_begin(FILE *f)
{
	off_t size;
	int whole = is_whole(f, &size);

	if (whole <= 0)
		return whole;
	return ftruncate(fileno(f), 0) ? -errno : 0;
}

FILE *result_file_stage(void)
{
	int fd = memfd_create("sfbpf-result", MFD_CLOEXEC), err;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (!f && fd >= 0) {
		err = errno;
		close(fd);
		errno = err;
	}
	return f;
}

/* A file system that cannot reserve room is written to as it is. */
static int reserve(int fd, off_t size, off_t old_size)
{
	int err;

	if (size <= 0 || !fallocate(fd, 0, 0, size) ||
	    (errno != ENOSPC && errno != EDQUOT && errno != EFBIG))
		return 0;
	err = -errno;
	return ftruncate(fd, old_size) ? -errno : err;
}

static int copy(int from, int to)
{
	char buf[65536];
	off_t at = 0;
	ssize_t n;
	int err = 0;

	while (!err && (n = pread(from, buf, sizeof(buf), at)) > 0) {
		err = write_full(to, buf, (size_t)n);
		at += n;
	}
	return err ? err : n < 0 ? -errno : 0;
}

int result_file_fill(FILE *f, FILE *stage)
{
	int from = fileno(stage), to = fileno(f), whole, err = 0;
	off_t old_size, size;

	if (fflush(stage) || ferror(stage) || fflush(f))
		return errno ? -errno : -EIO;
	whole = is_whole(f, &old_size);
	size = lseek(from, 0, SEEK_END);
	if (whole < 0 || size < 0)
		return whole < 0 ? whole : -errno;
	if (whole)
		err = reserve(to, size, old_size);
	if (!err)
		err = copy(from, to);
	if (!err && whole && ftruncate(to, size))
		err = -errno;
	return err;
}
