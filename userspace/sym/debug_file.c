/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/debug_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

#include "base/in_root.h"
#include "base/vec.h"

#define DEBUG_DIR "/usr/lib/debug"
#define BUILD_ID_MAX 64
#define CRC_MAX (512u << 20)		/* bytes that are read only to know whether a file is the right one */
#define UNPACKED_MAX (128u << 20)	/* of .gnu_debugdata; real ones have a few */
#define XZ_MEMORY (96u << 20)		/* of the decoder: xz -9 asks for 65 MB */

struct wanted {
	const struct elf_image *img;
	const char *path;
	bool (*has)(const struct elf_image *img);	/* what is looked for */
	bool foreign;			/* looking below the root of a process */
	uint8_t id[BUILD_ID_MAX];
	size_t id_len;
	char link[256];			/* .gnu_debuglink; "": none */
	uint32_t crc;
};

void debug_file_close(struct debug_file *d)
{
	elf_image_close(&d->img);
	if (d->fd >= 0)
		close(d->fd);
	free(d->mem);
	free(d->path);
	*d = (struct debug_file){ .fd = -1, .img = { .fd = -1 } };
}

bool debug_file_has_dwarf(const struct elf_image *img)
{
	const struct elf_shdr *s = elf_image_section(img, ".debug_info");

	if (!s)
		s = elf_image_section(img, ".zdebug_info");
	return s && s->type != SHT_NOBITS && s->size;
}

static bool has_symbols(const struct elf_image *img)
{
	return elf_image_section_of_type(img, SHT_SYMTAB) != NULL;
}

static bool has_any(const struct elf_image *img)
{
	return debug_file_has_dwarf(img) || elf_image_section(img, ".debug_str");
}

/* Section .gnu_debuglink: a file name, padding to 4 bytes, the CRC of that file. */
static void read_link(struct wanted *w)
{
	const struct elf_shdr *s = elf_image_section(w->img, ".gnu_debuglink");
	struct elf_blob blob = { 0 };
	const char *name;

	if (!s || s->size > 4096 || elf_image_section_bytes(w->img, s, &blob))
		return;
	name = bytes_str(&blob.view);
	bytes_seek(&blob.view, (blob.view.pos + 3) & ~(size_t)3);
	w->crc = bytes_u32(&blob.view);
	if (!blob.view.err && strlen(name) < sizeof(w->link) && !strchr(name, '/'))
		strcpy(w->link, name);
	elf_blob_free(&blob);
}

static bool crc_matches(int fd, off_t size, uint32_t want)
{
	static uint8_t buf[1 << 16];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;

	while (at < size && size <= CRC_MAX) {
		ssize_t n = pread(fd, buf, sizeof(buf), at);

		if (n <= 0)
			return false;
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	return at == size && crc == want;
}

/* The same code's, and with what is looked for. Takes fd. */
static int take(const struct wanted *w, int fd, off_t size, bool by_link, struct debug_file *ret)
{
	uint8_t id[BUILD_ID_MAX];
	size_t len;
	bool ours;

	if (elf_image_open_fd(&ret->img, fd, NULL)) {
		close(fd);
		return -ENOENT;
	}
	ret->fd = fd;
	len = elf_image_build_id(&ret->img, id, sizeof(id));
	if (len && w->id_len)
		ours = len == w->id_len && memcmp(id, w->id, len) == 0;
	else
		ours = by_link && crc_matches(fd, size, w->crc);
	if (ours && ret->img.machine == w->img->machine && ret->img.be == w->img->be && w->has(&ret->img))
		return 0;
	debug_file_close(ret);
	return -ENOENT;
}

static int try_path(const struct wanted *w, int root, const char *path, bool by_link, struct debug_file *ret)
{
	struct stat st;
	int fd = open_in_root(root, path, &st);

	if (fd < 0 || take(w, fd, st.st_size, by_link, ret))
		return -ENOENT;
	ret->path = strdup(path);
	ret->foreign = w->foreign;
	return 0;
}

static int try_build_id(const struct wanted *w, int root, struct debug_file *ret)
{
	char path[sizeof(DEBUG_DIR "/.build-id/") + 2 * BUILD_ID_MAX + sizeof("/.debug")];
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
	const char *slash = strrchr(w->path, '/');
	char path[PATH_MAX];
	int err = -ENOENT;

	if (!*w->link || !slash || w->path[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < 3 && err; i++)
		if (snprintf(path, sizeof(path), places[i], (int)(slash + 1 - w->path), w->path, w->link) < (int)sizeof(path))
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
	if (err)
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

/* ---- .gnu_debugdata ---- */

#ifdef HAVE_LZMA
static int unpack(struct bytes packed, void **ret, size_t *ret_len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret rc = LZMA_OK;
	uint8_t *out = NULL;
	size_t cap = 0;

	if (lzma_stream_decoder(&z, XZ_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	z.avail_in = bytes_left(&packed);
	z.next_in = bytes_take(&packed, z.avail_in);
	while (rc == LZMA_OK && z.total_out < UNPACKED_MAX) {
		if (vec_reserve(&out, &cap, (size_t)z.total_out + 65536, 1))
			break;
		z.next_out = out + z.total_out;
		z.avail_out = cap - (size_t)z.total_out;
		rc = lzma_code(&z, LZMA_FINISH);
	}
	*ret_len = (size_t)z.total_out;
	lzma_end(&z);
	if (rc != LZMA_STREAM_END) {
		free(out);
		return -ENOENT;
	}
	*ret = out;
	return 0;
}
#else
static int unpack(struct bytes packed, void **ret, size_t *ret_len)
{
	(void)packed;
	(void)ret;
	(void)ret_len;
	return -ENOENT;
}
#endif

static int open_packed(const struct elf_image *img, struct debug_file *ret)
{
	const struct elf_shdr *s = elf_image_section(img, ".gnu_debugdata");
	struct elf_blob blob = { 0 };
	int err;

	if (!s || s->size > UNPACKED_MAX || elf_image_section_bytes(img, s, &blob))
		return -ENOENT;
	err = unpack(blob.view, &ret->mem, &ret->mem_size);
	elf_blob_free(&blob);
	if (!err && elf_image_open_mem(&ret->img, ret->mem, ret->mem_size, NULL))
		err = -ENOENT;
	if (!err && (ret->img.machine != img->machine || ret->img.be != img->be || !has_symbols(&ret->img)))
		err = -ENOENT;
	if (err)
		debug_file_close(ret);
	return err;
}

static int try_fetch(const struct wanted *w, const struct debug_fetch *f, struct debug_file *ret)
{
	struct stat st;
	int fd = f->fn && w->id_len ? f->fn(f->ctx, w->id, w->id_len) : -1;

	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st)) {
		close(fd);
		return -ENOENT;
	}
	return take(w, fd, st.st_size, false, ret);
}

/* In the file systems, then from elsewhere. */
static int find(const struct debug_query *q, struct wanted *w, struct debug_file *ret)
{
	int err;

	*ret = (struct debug_file){ .fd = -1, .img = { .fd = -1 } };
	err = try_root(w, 0, ret);
	if (err && debug_file_own_root(q->pid))
		err = try_root(w, q->pid, ret);
	return err ? try_fetch(w, &q->fetch, ret) : 0;
}

int debug_file_find(const struct debug_query *q, struct debug_file *ret)
{
	struct wanted w = { .img = q->img, .path = q->path ? q->path : "", .has = has_symbols };

	w.id_len = elf_image_build_id(q->img, w.id, sizeof(w.id));
	read_link(&w);
	return find(q, &w, ret) ? open_packed(q->img, ret) : 0;
}

int debug_file_find_dwarf(const struct debug_query *q, struct debug_file *ret)
{
	struct wanted w = { .img = q->img, .path = q->path ? q->path : "", .has = debug_file_has_dwarf };

	w.id_len = elf_image_build_id(q->img, w.id, sizeof(w.id));
	read_link(&w);
	return find(q, &w, ret);
}

/* Section .gnu_debugaltlink: a path, from / or from the file's own directory, and the build-id of that file. */
int debug_file_find_alt(const struct debug_query *q, struct debug_file *ret)
{
	struct wanted w = { .img = q->img, .path = "", .has = has_any };
	const char *slash = q->path ? strrchr(q->path, '/') : NULL, *name;
	struct elf_blob blob = { 0 };
	char path[PATH_MAX];
	int err, root;

	*ret = (struct debug_file){ .fd = -1, .img = { .fd = -1 } };
	if (elf_image_section_bytes(q->img, elf_image_section(q->img, ".gnu_debugaltlink"), &blob))
		return -ENOENT;
	name = bytes_str(&blob.view);
	w.id_len = bytes_left(&blob.view);
	if (!name || w.id_len < 2 || w.id_len > sizeof(w.id) ||
	    snprintf(path, sizeof(path), "%.*s%s", *name != '/' && slash ? (int)(slash + 1 - q->path) : 0, q->path ? q->path : "", name) >=
		    (int)sizeof(path)) {
		elf_blob_free(&blob);
		return -ENOENT;
	}
	memcpy(w.id, bytes_take(&blob.view, w.id_len), w.id_len);
	elf_blob_free(&blob);
	err = find(q, &w, ret);
	for (int own = 0; own < 2 && err; own++) {
		w.foreign = own && debug_file_own_root(q->pid);
		root = own && !w.foreign ? -1 : root_of_process(own ? q->pid : 0);
		if (root < 0)
			continue;
		err = try_path(&w, root, path, false, ret);
		close(root);
	}
	return err;
}
