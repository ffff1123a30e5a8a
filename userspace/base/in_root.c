/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/in_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WALK_DEPTH 64
#define WALK_LINKS 40 /* symbolic links; the kernel's limit */

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

/* ---- The walk without openat2 ---- */

struct walk {
	int dirs[WALK_DEPTH]; /* directories below the root; the last one may be a file */
	int depth, links;
	char left[PATH_MAX]; /* the rest of the path */
};

static void leave_all(struct walk *w)
{
	while (w->depth)
		close(w->dirs[--w->depth]);
}

/* A symbolic link: what it says, instead of its name. 0 or -errno. */
static int follow(struct walk *w, const char *link)
{
	char path[PATH_MAX];

	if (++w->links > WALK_LINKS)
		return -ELOOP;
	if (snprintf(path, sizeof(path), "%s/%s", link, w->left) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	strcpy(w->left, path);
	if (*link == '/')
		leave_all(w);
	return 0;
}

/* 0 or -errno */
static int enter(struct walk *w, int root_fd, const char *part)
{
	char link[PATH_MAX];
	ssize_t len;
	int fd;

	if (!strcmp(part, "..")) {
		if (w->depth)
			close(w->dirs[--w->depth]);
		return 0;
	}
	if (w->depth == WALK_DEPTH)
		return -ENAMETOOLONG;
	fd = openat(w->depth ? w->dirs[w->depth - 1] : root_fd, part,
		    O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = readlinkat(fd, "", link, sizeof(link) - 1);
	if (len < 0) { /* no link */
		w->dirs[w->depth++] = fd;
		return 0;
	}
	close(fd);
	link[len] = 0;
	return follow(w, link);
}

/*
 * Like openat2 with O_PATH and RESOLVE_IN_ROOT, one component after the other. A ".." goes back to
 * the directory that was entered, wherever it was moved. An fd or -errno.
 */
static int walk_in_root(int root_fd, const char *path)
{
	struct walk w = { .depth = 0 };
	char part[NAME_MAX + 1];
	int err = 0, fd = -ENOENT;
	size_t len;

	if (snprintf(w.left, sizeof(w.left), "%s", path) >= (int)sizeof(w.left))
		return -ENAMETOOLONG;
	while (!err) {
		size_t from = strspn(w.left, "/");

		len = strcspn(w.left + from, "/");
		if (!len)
			break;
		if (len > NAME_MAX) {
			err = -ENAMETOOLONG;
			break;
		}
		memcpy(part, w.left + from, len);
		part[len] = 0;
		memmove(w.left, w.left + from + len, strlen(w.left + from + len) + 1);
		if (strcmp(part, ".") != 0)
			err = enter(&w, root_fd, part);
	}
	if (!err && w.depth)
		fd = w.dirs[--w.depth];
	leave_all(&w);
	return err ? err : fd;
}

/* Opens for reading what an O_PATH descriptor, which it closes, leads to. */
static int open_if_regular(int at, struct stat *st)
{
	char self[32];
	int fd = -EINVAL;

	if (!fstat(at, st) && S_ISREG(st->st_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(at);
	return fd;
}

int open_regular(const char *path, struct stat *st)
{
	int at = open(path, O_PATH | O_CLOEXEC);

	return at < 0 ? -errno : open_if_regular(at, st);
}

int open_in_root(int root_fd, const char *path, struct stat *st)
{
	/* Checked before it is opened, as opening some devices has side effects. */
	struct open_how look = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int at = (int)syscall(SYS_openat2, root_fd, path, &look, sizeof(look));

	if (at < 0)
		at = errno == ENOSYS ? walk_in_root(root_fd, path) : -errno;
	return at < 0 ? at : open_if_regular(at, st);
}
