/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/thread_links.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/idmap.h"
#include "base/process.h"
#include "base/vec.h"
#include "paths/process_maps.h"

#define FILES_MOST 16384

struct thread_links {
	struct path_opener *opener;
	struct elf_reader *reader;
	thread_links_fn fn;
	void *ctx;
	struct idmap ids; /* device, inode -> index into files */
	struct known_file {
		struct elf_tls tls;
		uint64_t ctime_ns;
	} * files;
	size_t cap;
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

/*
 * Opens the mapped file and asks for the variable. 0: *ret; -ENOENT, -ENOEXEC: it has none;
 * -EAGAIN: ask later; or the file gave no answer.
 */
static int read_file(struct thread_links *l, uint32_t pid, uint32_t owner,
		     const struct process_map *m, struct elf_tls *ret)
{
	int fd = process_maps_open(l->opener, pid, owner, m), err;

	if (fd < 0)
		return fd;
	err = elf_reader_tls(l->reader, fd, ret);
	close(fd);
	return err;
}

/* What is known of the file; NULL: nothing. */
static struct known_file *find(struct thread_links *l, const struct mapped_id *file)
{
	uint32_t id;

	return idmap_find(&l->ids, file->dev, file->ino, &id) &&
			       l->files[id].ctime_ns == file->ctime_ns
		       ? &l->files[id]
		       : NULL;
}

/* Remembers a file. Forgets all if there is no room: those who fill it must not keep others out. */
static void remember(struct thread_links *l, const struct mapped_id *file,
		     const struct elf_tls *tls)
{
	uint32_t id;

	if (l->ids.n >= FILES_MOST)
		idmap_reset(&l->ids);
	if (!vec_reserve(&l->files, &l->cap, l->ids.n + 1, sizeof(*l->files)) &&
	    !idmap_get(&l->ids, file->dev, file->ino, &id))
		l->files[id] = (struct known_file){ *tls, file->ctime_ns };
}

/*
 * *ret: of the file; SF_TLS_NONE: it has no such variable, or that is unknown. Only what was read
 * of the file itself is remembered: a failure may be due to the process that maps it, or to others.
 * 0 or -EAGAIN.
 */
static int look_at(struct thread_links *l, uint32_t pid, uint32_t owner,
		   const struct process_map *m, struct elf_tls *ret)
{
	const struct known_file *known = find(l, &m->id);
	int err = 0;

	*ret = known ? known->tls : (struct elf_tls){ .how = SF_TLS_NONE };
	if (!known)
		err = read_file(l, pid, owner, m, ret);
	if (!known && (!err || err == -ENOENT || err == -ENOEXEC))
		remember(l, &m->id, ret);
	return err == -EAGAIN ? err : 0;
}

static int search(struct thread_links *l, uint32_t pid, uint32_t owner, char *list)
{
	struct sf_thread_link link = { .start_stack = process_start_stack(pid) };
	struct elf_tls tls = { .how = SF_TLS_NONE };
	struct process_map m = { 0 };
	int err = 0;

	while (!err && tls.how == SF_TLS_NONE && process_maps_next(&list, &m))
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
	char *list = NULL;
	int err = process_maps_read(l->opener, pid, owner, &list);

	if (!err)
		err = search(l, pid, owner, list);
	free(list);
	return err;
}
