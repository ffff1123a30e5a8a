/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths/path_worker.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs_kind.h"
#include "base/in_root.h"
#include "worker/sealed_file.h"
#include "worker/worker.h"

char *jit_dump_path(uint32_t pid, uint32_t ns_pid)
{
	char want[32], path[32], *line = NULL, *ret = NULL;
	size_t cap = 0, len;
	ssize_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/maps", living_thread(pid));
	snprintf(want, sizeof(want), "/jit-%u.dump", ns_pid);
	len = strlen(want);
	f = fopen(path, "re");
	while (f && !ret && (n = getline(&line, &cap, f)) > 0) {
		char *at = strchr(line, '/'), *rights = strchr(line, ' ');

		line[--n] = 0;
		/* "START-END r-xp ..." */
		if (at && (size_t)(line + n - at) >= len && !strcmp(line + n - len, want) &&
		    rights && rights < at && memchr(rights, 'x', 5))
			ret = strdup(at);
	}
	if (f)
		fclose(f);
	free(line);
	if (!ret && asprintf(&ret, "/tmp/jit-%u.dump", ns_pid) < 0)
		ret = NULL;
	return ret;
}

/* Whether root is our own root, where a second search would find nothing new. */
static bool is_ours(int root)
{
	struct stat theirs, ours;

	return fstat(root, &theirs) || stat("/", &ours) ||
	       (theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev);
}

/*
 * Whether fd may be handed to the main process: closing it must not block, nor reading it if the
 * main process reads it.
 */
static bool may_have(const struct path_ask *ask, int fd)
{
	enum fs_kind kind = fs_kind_of_file(fd);

	/* A stacked file system in our own root was mounted by our administrator. */
	if (kind == FS_STACKED)
		return !ask->pid && !ask->at_root;
	return kind >= FS_LOCAL || (kind == FS_DISTANT && !ask->part);
}

/* Takes over fd. Returns the descriptor for the main process (fd or a copy), or -errno. */
static int to_hand_over(const struct path_ask *ask, int fd, const struct stat *st,
			struct path_answer *a)
{
	uint64_t size = (uint64_t)st->st_size,
		 from = ask->part && ask->ino == a->ino && ask->from <= size ? ask->from : 0;
	uint32_t bytes;
	int copy = -EFBIG;

	a->size = size;
	if (may_have(ask, fd))
		return fd;
	if (ask->part && size - from > ask->most)
		a->size = from + ask->most;
	/* The part read before is a hole in the copy. */
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
	a->written = st.st_mtim;
	return to_hand_over(ask, fd, &st, a);
}

/* The file itself: it is not the path that leads to it. */
static int open_mapped(const struct path_ask *ask, struct path_answer *a)
{
	int fd = process_context_mapped(ask->pid, ask->mapping.start, ask->mapping.end, &a->id);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || st.st_size < 0) {
		close(fd);
		return -EINVAL;
	}
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

/* Takes over root, except for PATH_ROOT. */
static int open_below(const struct path_ask *ask, int root, struct path_answer *a)
{
	int fd = -ENOENT;

	if (root < 0)
		return root;
	if (!ask->other_root || !is_ours(root)) {
		if (ask->question == PATH_ROOT)
			return root;
		fd = ask->question == PATH_FILE ? open_first(ask, root, a)
						: open_dump(ask, root, a);
	}
	close(root);
	return fd;
}

static int reply(const struct worker_request *r)
{
	const struct path_ask *ask = r->ask;
	struct path_answer *a = r->answer;
	int fd;

	if (ask->len > sizeof(ask->paths) || (ask->len && ask->paths[ask->len - 1]))
		_exit(1);
	if (ask->question == PATH_CONTEXT) {
		a->at = ask->at;
		fd = process_context_open(ask->pid, &a->at, &a->size);
	} else if (ask->question == PATH_MAPS) {
		fd = process_context_maps(ask->pid, &a->size);
	} else if (ask->question == PATH_MAPPED) {
		fd = open_mapped(ask, a);
	} else {
		fd = open_below(ask, ask->at_root ? dup(r->fds[0]) : root_of_process(ask->pid), a);
	}
	a->question = ask->question;
	/* The reason why a path cannot be opened does not matter. */
	a->err = fd >= 0 ? 0 : fd == -EFBIG || fd == -ENOMEM ? fd : -ENOENT;
	return fd;
}

void path_worker_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = offsetof(struct path_ask, paths),
		.most = sizeof(struct path_ask),
		.nfds = 1,
		.answer_len = sizeof(struct path_answer),
		.sends_fd = true,
		.reply = reply,
	};

	prctl(PR_SET_NAME, "sfbpf-paths");
	worker_serve(sock, mem, &service);
}
