/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/debug_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/in_root.h"

#define DEBUG_DIR "/usr/lib/debug"

struct wanted {
	const struct debug_query *q;
	const char *path;	/* of the file, as the process sees it */
	bool (*has)(const struct elf_facts *f);	/* what is looked for */
	bool foreign;		/* looking below the root of a process */
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

/* The same code's, and with what is looked for. Takes fd. */
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

static int try_path(const struct wanted *w, int root, const char *path, bool by_link, struct debug_file *ret)
{
	struct stat st;
	int fd = open_in_root(root, path, &st), err = fd < 0 ? -ENOENT : take(w, fd, by_link, ret);

	if (err)
		return err;
	ret->path = strdup(path);
	ret->foreign = w->foreign;
	return 0;
}

static int try_build_id(const struct wanted *w, int root, struct debug_file *ret)
{
	char path[sizeof(DEBUG_DIR "/.build-id/") + 2 * FACTS_ID_MAX + sizeof("/.debug")];
	int n;

	if (w->id_len < 2)
		return -ENOENT;
	n = snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", w->id[0]);
	for (size_t i = 1; i < w->id_len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", w->id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	return try_path(w, root, path, false, ret);
}

static int try_link(const struct wanted *w, int root, struct debug_file *ret)
{
	static const char *const places[] = { "%.*s%s", "%.*s.debug/%s", DEBUG_DIR "%.*s%s" };
	const char *slash = strrchr(w->path, '/'), *link = w->q->facts->link;
	char path[PATH_MAX];
	int err = -ENOENT;

	if (!*link || !slash || w->path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < 3 && err == -ENOENT; i++)
		if (snprintf(path, sizeof(path), places[i], (int)(slash + 1 - w->path), w->path, link) < (int)sizeof(path))
			err = try_path(w, root, path, true, ret);
	return err;
}

static int try_root(struct wanted *w, uint32_t pid, struct debug_file *ret)
{
	int root = root_of_process(pid), err;

	if (root < 0)
		return -ENOENT;
	w->foreign = pid != 0;
	err = try_build_id(w, root, ret);
	if (err == -ENOENT)
		err = try_link(w, root, ret);
	close(root);
	return err;
}

/* Looking there again would be for nothing otherwise. */
bool debug_file_own_root(uint32_t pid)
{
	struct stat theirs, ours;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/root/.", pid);
	return pid && !stat(path, &theirs) && !stat("/.", &ours) && (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev);
}

static int try_fetch(const struct wanted *w, struct debug_file *ret)
{
	const struct debug_fetch *f = &w->q->fetch;
	int fd = f->fn && w->id_len ? f->fn(f->ctx, w->id, w->id_len) : -1;

	return fd < 0 ? -ENOENT : take(w, fd, false, ret);
}

/* In the file systems, then from elsewhere. */
static int find(struct wanted *w, struct debug_file *ret)
{
	int err;

	ret->fd = -1;
	ret->path = NULL;
	ret->foreign = false;
	err = try_root(w, 0, ret);
	if (err == -ENOENT && debug_file_own_root(w->q->pid))
		err = try_root(w, w->q->pid, ret);
	return err == -ENOENT ? try_fetch(w, ret) : err;
}

static struct wanted wanted_of(const struct debug_query *q, bool (*has)(const struct elf_facts *f))
{
	return (struct wanted){ .q = q, .path = q->path ? q->path : "", .has = has, .id = q->facts->id, .id_len = q->facts->id_len };
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
	struct wanted w = { .q = q, .path = "", .has = has_any, .id = f->alt_id, .id_len = f->alt_id_len };
	const char *slash = q->path ? strrchr(q->path, '/') : NULL;
	int dir = *f->alt != '/' && slash ? (int)(slash + 1 - q->path) : 0, err, root;
	char path[PATH_MAX];

	ret->fd = -1;
	ret->path = NULL;
	if (!*f->alt || snprintf(path, sizeof(path), "%.*s%s", dir, q->path ? q->path : "", f->alt) >= (int)sizeof(path))
		return -ENOENT;
	err = find(&w, ret);
	for (int own = 0; own < 2 && err == -ENOENT; own++) {
		w.foreign = own && debug_file_own_root(q->pid);
		root = own && !w.foreign ? -1 : root_of_process(own ? q->pid : 0);
		if (root < 0)
			continue;
		err = try_path(&w, root, path, false, ret);
		close(root);
	}
	return err;
}
