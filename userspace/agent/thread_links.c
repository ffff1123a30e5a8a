/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/thread_links.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/full_io.h"
#include "base/idmap.h"
#include "base/process.h"
#include "base/vec.h"

#define FILES_MOST 16384
#define FILES_NS   (10 * 60 * NUM_S) /* an inode may be another file later */
#define LIST_MOST  (1u << 20)	     /* bytes of a list of mappings: some 10,000 */
#define FILE_MOST  (1ull << 30)	     /* bytes of a file that is read as a copy */

struct thread_links {
	struct path_opener *opener;
	struct elf_reader *reader;
	thread_links_fn fn;
	void *ctx;
	struct idmap ids; /* device, inode -> index into files */
	struct elf_tls *files;
	size_t cap;
	uint64_t since_ns;
};

/* A mapping of a file with code. */
struct mapping {
	uint64_t start, offset, dev, ino;
	const char *path;
};

struct thread_links *thread_links_new(struct path_opener *opener, struct elf_reader *reader,
				      thread_links_fn fn, void *ctx)
{
	struct thread_links *l = calloc(1, sizeof(*l));

	if (l)
		*l = (struct thread_links){
			.opener = opener, .reader = reader, .fn = fn, .ctx = ctx
		};
	return l;
}

void thread_links_free(struct thread_links *l)
{
	if (!l)
		return;
	idmap_free(&l->ids);
	free(l->files);
	free(l);
}

void thread_links_forget(struct thread_links *l, uint32_t pid)
{
	if (l)
		l->fn(l->ctx, pid, NULL);
}

/* The list of mappings, NUL-terminated; the caller frees it. */
static int list_maps(struct thread_links *l, uint32_t pid, uint32_t owner, char **ret)
{
	static struct path_answer answer;
	static struct path_ask what;
	int fd, err = -ENOENT;
	char *list = NULL;

	path_ask_begin(&what, PATH_MAPS, pid, owner);
	what.live = true;
	fd = path_open(l->opener, &what, -1, &answer);
	if (fd < 0)
		return fd;
	if (answer.size && answer.size < LIST_MOST) {
		list = malloc((size_t)answer.size + 1);
		err = list ? pread_full(fd, list, (size_t)answer.size, 0) : -ENOMEM;
	}
	close(fd);
	if (err) {
		free(list);
		return err;
	}
	list[answer.size] = 0;
	*ret = list;
	return 0;
}

/* START-END r-xp OFFSET MAJOR:MINOR INODE PATH, without the newline. */
static bool parse(char *line, struct mapping *ret)
{
	unsigned int major, minor;

	if (sscanf(line, "%" SCNx64 "-%*x %*4s %" SCNx64 " %x:%x %" SCNu64, &ret->start,
		   &ret->offset, &major, &minor, &ret->ino) != 5)
		return false;
	ret->dev = (uint64_t)major << 32 | minor;
	ret->path = strchr(line, '/');
	return ret->path != NULL;
}

/* Opens the file as the process sees it, and asks for the variable. */
static int read_file(struct thread_links *l, uint32_t pid, uint32_t owner, const struct mapping *m,
		     struct elf_tls *ret)
{
	static struct path_answer answer;
	static struct path_ask what;
	int fd, err;

	path_ask_begin(&what, PATH_FILE, pid, owner);
	what.live = true;
	what.most = FILE_MOST;
	path_ask_add(&what, "%s", m->path);
	fd = path_open(l->opener, &what, -1, &answer);
	if (fd < 0)
		return fd;
	err = answer.ino == m->ino ? elf_reader_tls(l->reader, fd, ret) : -ENOENT;
	close(fd);
	return err;
}

/* *ret: of the file; SF_TLS_NONE: it has no such variable. 0, -EAGAIN or -ENOMEM. */
static int look_at(struct thread_links *l, uint32_t pid, uint32_t owner, const struct mapping *m,
		   struct elf_tls *ret)
{
	struct elf_tls found = { .how = SF_TLS_NONE };
	size_t before = l->ids.n;
	uint32_t id;

	if (idmap_find(&l->ids, m->dev, m->ino, &id)) {
		*ret = l->files[id];
		return 0;
	}
	if (read_file(l, pid, owner, m, &found) == -EAGAIN)
		return -EAGAIN;
	if (before >= FILES_MOST || vec_reserve(&l->files, &l->cap, before + 1, sizeof(found)) ||
	    idmap_get(&l->ids, m->dev, m->ino, &id))
		return -ENOMEM;
	l->files[id] = *ret = found;
	return 0;
}

static int search(struct thread_links *l, uint32_t pid, uint32_t owner, char *list)
{
	struct sf_thread_link link = { .start_stack = process_start_stack(pid) };
	struct elf_tls tls = { .how = SF_TLS_NONE };
	struct mapping m = { 0 };
	char *save, *line;
	int err = 0;

	for (line = strtok_r(list, "\n", &save); line && !err && tls.how == SF_TLS_NONE;
	     line = strtok_r(NULL, "\n", &save))
		if (parse(line, &m))
			err = look_at(l, pid, owner, &m, &tls);
	if (err || tls.how == SF_TLS_NONE || !link.start_stack)
		return err ? err : -ENOENT;
	link.tls = tls.how == SF_TLS_EXEC ? tls.at : tls.at + m.start - m.offset;
	link.tls_how = tls.how;
	link.musl = tls.musl;
	return l->fn(l->ctx, pid, &link);
}

int thread_links_find(struct thread_links *l, uint32_t pid, uint32_t owner)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	char *list = NULL;
	int err;

	if (now - l->since_ns > FILES_NS) {
		idmap_reset(&l->ids);
		l->since_ns = now;
	}
	err = list_maps(l, pid, owner, &list);
	if (!err)
		err = search(l, pid, owner, list);
	free(list);
	return err;
}
