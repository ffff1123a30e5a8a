/* SPDX-License-Identifier: BSD-2-Clause */
#include "debuginfo/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEBUG_DIR "/usr/lib/debug"
#define COPY_MAX  (128u << 20)

struct wanted {
	const struct debug_query *q;
	const char *path;			/* path of the file as the process sees it */
	bool (*has)(const struct elf_facts *f); /* whether a file has what is needed */
	bool foreign;				/* the search is below the root of a process */
	const uint8_t *id;
	size_t id_len;
};

void debug_file_close(struct debug_file *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->path);
	d->fd = -1;
	d->path = NULL;
}

static bool has_symbols(const struct elf_facts *f)
{
	return f->symtab;
}

static bool has_dwarf(const struct elf_facts *f)
{
	return f->dwarf;
}

static bool has_any(const struct elf_facts *f)
{
	return f->dwarf || f->debug_str;
}

/* 0 or -errno. */
static int is_same_code(const struct wanted *w, const struct elf_facts *f, int fd, bool by_link)
{
	uint32_t crc;
	int err;

	if (f->machine != w->q->facts->machine || f->be != w->q->facts->be || !w->has(f))
		return -ENOENT;
	if (f->id_len && w->id_len)
		return f->id_len == w->id_len && memcmp(f->id, w->id, w->id_len) == 0 ? 0 : -ENOENT;
	err = by_link ? elf_reader_crc(w->q->reader, fd, &crc) : -ENOENT;
	return err ? err : crc == w->q->facts->link_crc ? 0 : -ENOENT;
}

/* Accepts fd if it belongs to the same code and has the needed sections. Takes over fd. */
static int take(const struct wanted *w, int fd, bool by_link, struct debug_file *ret)
{
	int err = elf_reader_facts(w->q->reader, fd, &ret->facts);

	if (!err)
		err = is_same_code(w, &ret->facts, fd, by_link);
	if (err) {
		close(fd);
		return err == -EAGAIN ? err : -ENOENT;
	}
	ret->fd = fd;
	return 0;
}

/*
 * Whether the owner of a debug file may name the code. A build-id proves nothing, as anyone can
 * write any into a file, and the names are shown in every process that maps the code. So the debug
 * file must belong to whoever owns the code and can change it anyway. In our own file system it may
 * also be root's, or the caller's.
 */
static bool may_name(const struct wanted *w, uint32_t owner)
{
	return owner == w->q->owner ||
	       (!w->foreign && (!owner || owner == w->q->paths->allowance->caller));
}

/*
 * Finds the first path whose file belongs to the same code. The first n_by_id paths come from a
 * build-id, the others from a link. 0; -ENOENT; -EAGAIN. If path_open fails, the remaining paths
 * are not tried.
 */
static int try_paths(const struct wanted *w, struct path_ask *ask, uint32_t n_by_id,
		     struct debug_file *ret)
{
	struct path_answer a = { .place = 0 };
	const char *path;
	int fd, err;

	ask->most = COPY_MAX;
	do {
		fd = path_open(w->q->paths, ask, -1, &a);
		if (fd < 0) {
			err = fd == -EAGAIN ? fd : -ENOENT;
		} else if (!may_name(w, a.uid)) {
			close(fd);
			err = -ENOENT;
		} else {
			err = take(w, fd, a.place >= n_by_id, ret);
		}
		ask->first = a.place + 1;
	} while (fd >= 0 && err == -ENOENT);
	if (err)
		return err;
	path = ask->paths;
	for (uint32_t i = 0; i < a.place; i++)
		path += strlen(path) + 1;
	ret->path = strdup(path);
	ret->foreign = w->foreign;
	return 0;
}

static void add_build_id(const struct wanted *w, struct path_ask *ask)
{
	char id[2 * FACTS_ID_MAX + 1];

	if (w->id_len < 2)
		return;
	for (size_t i = 0; i < w->id_len; i++)
		snprintf(id + 2 * i, 3, "%02x", w->id[i]);
	path_ask_add(ask, DEBUG_DIR "/.build-id/%.2s/%s.debug", id, id + 2);
}

static void add_link(const struct wanted *w, struct path_ask *ask)
{
	const char *slash = strrchr(w->path, '/'), *link = w->q->facts->link;
	int dir = slash ? (int)(slash + 1 - w->path) : 0;

	if (!*link || w->path[0] != '/')
		return;
	path_ask_add(ask, "%.*s%s", dir, w->path, link);
	path_ask_add(ask, "%.*s.debug/%s", dir, w->path, link);
	path_ask_add(ask, DEBUG_DIR "%.*s%s", dir, w->path, link);
}

/*
 * The user who controls the file system of a process. Reading it from /proc asks no foreign file
 * system.
 */
static uint32_t owner_of_process(uint32_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return stat(path, &st) ? 0 : st.st_uid;
}

static void begin(const struct wanted *w, uint32_t pid, struct path_ask *ask)
{
	path_ask_begin(ask, PATH_FILE, pid, pid ? owner_of_process(pid) : w->q->owner);
	ask->other_root = pid != 0;
}

/* pid 0: searches our own root, otherwise that process's root if it is a different one. */
static int try_root(struct wanted *w, uint32_t pid, struct debug_file *ret)
{
	struct path_ask ask;
	uint32_t n_by_id;

	begin(w, pid, &ask);
	w->foreign = pid != 0;
	add_build_id(w, &ask);
	n_by_id = ask.n;
	add_link(w, &ask);
	return try_paths(w, &ask, n_by_id, ret);
}

int debug_file_root(struct path_opener *paths, uint32_t pid)
{
	struct path_answer a;
	struct path_ask ask;

	path_ask_begin(&ask, PATH_ROOT, pid, owner_of_process(pid));
	ask.other_root = true;
	return pid ? path_open(paths, &ask, -1, &a) : -ENOENT;
}

bool debug_file_is_at(struct path_opener *paths, const char *path, int fd)
{
	struct path_answer a = { .err = -ENOENT };
	struct path_ask ask;
	struct statx st;
	int at;

	if (!path || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st))
		return false;
	path_ask_begin(&ask, PATH_FILE, 0, allowance_owner(fd));
	path_ask_add(&ask, "%s", path);
	at = path_open(paths, &ask, -1, &a);
	if (at < 0)
		return false;
	close(at);
	return a.ino == st.stx_ino && a.dev == makedev(st.stx_dev_major, st.stx_dev_minor);
}

static int try_fetch(const struct wanted *w, struct debug_file *ret)
{
	const struct debug_fetch *f = &w->q->fetch;
	int fd = f->fn && w->id_len ? f->fn(f->ctx, w->id, w->id_len) : -1;

	return fd < 0 ? -ENOENT : take(w, fd, false, ret);
}

/* Searches the file systems first, then the fetch hook. */
static int find(struct wanted *w, struct debug_file *ret)
{
	int err;

	ret->fd = -1;
	ret->path = NULL;
	ret->foreign = false;
	err = try_root(w, 0, ret);
	if (err == -ENOENT && w->q->pid)
		err = try_root(w, w->q->pid, ret);
	return err == -ENOENT ? try_fetch(w, ret) : err;
}

static struct wanted wanted_of(const struct debug_query *q, bool (*has)(const struct elf_facts *f))
{
	return (struct wanted){ .q = q,
				.path = q->path ? q->path : "",
				.has = has,
				.id = q->facts->id,
				.id_len = q->facts->id_len };
}

int debug_file_find(const struct debug_query *q, struct debug_file *ret)
{
	struct wanted w = wanted_of(q, has_symbols);

	return find(&w, ret);
}

int debug_file_find_dwarf(const struct debug_query *q, struct debug_file *ret)
{
	struct wanted w = wanted_of(q, has_dwarf);

	return find(&w, ret);
}

int debug_file_find_alt(const struct debug_query *q, struct debug_file *ret)
{
	const struct elf_facts *f = q->facts;
	struct wanted w = {
		.q = q, .path = "", .has = has_any, .id = f->alt_id, .id_len = f->alt_id_len
	};
	const char *slash = q->path ? strrchr(q->path, '/') : NULL;
	int dir = *f->alt != '/' && slash ? (int)(slash + 1 - q->path) : 0, err;
	struct path_ask ask;

	ret->fd = -1;
	ret->path = NULL;
	if (!*f->alt)
		return -ENOENT;
	err = find(&w, ret);
	for (int own = 0; own < (q->pid ? 2 : 1) && err == -ENOENT; own++) {
		w.foreign = own;
		begin(&w, own ? q->pid : 0, &ask);
		path_ask_add(&ask, "%.*s%s", dir, q->path ? q->path : "", f->alt);
		err = try_paths(&w, &ask, ask.n, ret);
	}
	return err;
}
