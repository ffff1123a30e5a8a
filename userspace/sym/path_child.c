/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/path_child.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork_server.h"
#include "base/fs_kind.h"
#include "base/in_root.h"
#include "base/sealed_file.h"
#include "sym/jit_dump.h"

/* Looking there again would be for nothing otherwise. */
static bool is_ours(int root)
{
	struct stat theirs, ours;

	return fstat(root, &theirs) || stat("/", &ours) || (theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev);
}

/* What may be handed over: closing it asks nobody, nor does reading it if our own process reads. */
static bool may_have(const struct path_ask *ask, int fd)
{
	enum fs_kind kind = fs_kind_of_file(fd);

	/* Layers in our own root were put there by ours. */
	if (kind == FS_STACKED)
		return !ask->pid && !ask->at_root;
	return kind >= FS_LOCAL || (kind == FS_DISTANT && !ask->part);
}

/* Takes fd. What our own process gets in its place, or -errno. */
static int to_hand_over(const struct path_ask *ask, int fd, const struct stat *st, struct path_answer *a)
{
	uint64_t size = (uint64_t)st->st_size, from = ask->part && ask->ino == a->ino && ask->from <= size ? ask->from : 0;
	uint32_t bytes;
	int copy = -EFBIG;

	a->size = size;
	if (may_have(ask, fd))
		return fd;
	if (ask->part && size - from > ask->most)
		a->size = from + ask->most;
	/* What was read before is a hole in it. */
	if (a->size - from <= ask->most)
		copy = sealed_file_copy("sfbpf-file", fd, (off_t)from, (off_t)a->size, &bytes);
	a->copied = true;
	close(fd);
	return copy;
}

static int open_file(const struct path_ask *ask, int root, const char *path, struct path_answer *a)
{
	struct stat st;
	int fd = open_in_root(root, path, &st);

	if (fd < 0)
		return fd;
	if (st.st_size < 0) {
		close(fd);
		return -EINVAL;
	}
	a->uid = st.st_uid;
	a->dev = st.st_dev;
	a->ino = st.st_ino;
	return to_hand_over(ask, fd, &st, a);
}

static int open_first(const struct path_ask *ask, int root, struct path_answer *a)
{
	const char *path = ask->paths, *end = ask->paths + ask->len;
	int fd = -ENOENT, lost = -ENOENT;

	for (uint32_t i = 0; i < ask->n && path < end && fd < 0; i++, path += strlen(path) + 1) {
		if (i < ask->first)
			continue;
		a->place = i;
		fd = open_file(ask, root, path, a);
		if (fd == -EFBIG || fd == -ENOMEM)
			lost = fd;
	}
	return fd < 0 ? lost : fd;
}

static int open_dump(const struct path_ask *ask, int root, struct path_answer *a)
{
	char *path = jit_dump_path(ask->pid, ask->ns_pid);
	int fd = path && strlen(path) < sizeof(a->path) ? open_file(ask, root, path, a) : -ENOENT;

	if (fd >= 0)
		strcpy(a->path, path);
	free(path);
	return fd;
}

/* Takes root, which came along, or is -1. */
static int reply(const struct path_ask *ask, int root, struct path_answer *a)
{
	int fd;

	if (root < 0)
		root = root_of_process(ask->pid);
	if (root < 0)
		return root;
	if (ask->other_root && is_ours(root))
		fd = -ENOENT;
	else if (ask->question == PATH_ROOT)
		return root;
	else if (ask->question == PATH_FILE)
		fd = open_first(ask, root, a);
	else
		fd = open_dump(ask, root, a);
	close(root);
	return fd;
}

void path_child_main(int sock, int mem)
{
	static struct path_ask ask;
	static struct path_answer a;
	int root, fd;

	prctl(PR_SET_NAME, "sfbpf-paths");
	/* Who asks waits for it. Without the right to it a process like others. */
	setpriority(PRIO_PROCESS, 0, FORK_CHILD_NICE);
	while (!fork_receive_most(sock, &ask, offsetof(struct path_ask, paths), sizeof(ask), &root, 1, 0)) {
		a = (struct path_answer){ .question = ask.question };
		if (ask.len > sizeof(ask.paths) || (ask.len && ask.paths[ask.len - 1]))
			break;
		if (!ask.at_root) {
			close(root);
			root = -1;
		}
		fd = reply(&ask, root, &a);
		/* Why one cannot be opened is of no use to anybody. */
		a.err = fd >= 0 ? 0 : fd == -EFBIG || fd == -ENOMEM ? fd : -ENOENT;
		if (fork_send(sock, &a, sizeof(a), fd < 0 ? &mem : &fd, 1, 0))
			break;
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}
