/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/table_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/full_io.h"
#include "base/vec.h"

#define KEY_NAME "key"
#define TMP_PREFIX ".tmp-"
#define TMP_STALE_S 60

struct table_cache {
	struct table_cache_opts opts;
	int dir;
	struct table_keying keying;
	bool counted;
	uint64_t bytes;			/* of all entries, if counted */
};

/* ---- The directory ----------------------------------------------------------------------------------- */

static bool ours_alone(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & 077);
}

static int open_dir(const char *path, const char **why)
{
	struct stat st;
	int fd;

	if (mkdir(path, 0700) && errno != EEXIST) {
		*why = strerror(errno);
		return -1;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		*why = errno == ELOOP || errno == ENOTDIR ? "it is no directory" : strerror(errno);
		return -1;
	}
	if (fstat(fd, &st) || !ours_alone(&st)) {
		*why = "it belongs to somebody else, or others may enter it";
		close(fd);
		return -1;
	}
	return fd;
}

/* A file of ours in the directory, for reading. -1: none, or none to be trusted. */
static int open_ours(const struct table_cache *c, const char *name, struct stat *st)
{
	int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && (fstat(fd, st) || !S_ISREG(st->st_mode) || !ours_alone(st))) {
		close(fd);
		errno = EPERM;
		fd = -1;
	}
	return fd;
}

/* A new file that nobody else has open, to be named when it is complete. -1: none. */
static int new_file(const struct table_cache *c, char *name, size_t cap)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return -1;
	snprintf(name, cap, TMP_PREFIX "%016llx", (unsigned long long)id);
	return openat(c->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static bool read_key(struct table_cache *c)
{
	struct stat st;
	int fd = open_ours(c, KEY_NAME, &st);
	bool good = fd >= 0 && st.st_size == sizeof(c->keying.key) && !pread_full(fd, &c->keying.key, sizeof(c->keying.key), 0);

	if (fd >= 0)
		close(fd);
	return good;
}

/* link() fails where another process was faster; then its key is ours. */
static bool make_key(struct table_cache *c)
{
	struct digest_key key;
	bool written;
	char tmp[64];
	int fd;

	if (getrandom(&key, sizeof(key), 0) != sizeof(key) || (fd = new_file(c, tmp, sizeof(tmp))) < 0)
		return false;
	written = write(fd, &key, sizeof(key)) == sizeof(key);
	if (!close(fd) && written)
		linkat(c->dir, tmp, c->dir, KEY_NAME, 0);
	unlinkat(c->dir, tmp, 0);
	return read_key(c);
}

/* What this program is: its build-id, else what the file system says of its file. */
static void own_build(struct table_cache *c)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_image img;
	uint8_t id[20];
	struct digest d;
	struct stat st;
	size_t n = 0;

	digest_init(&d, &c->keying.key);
	if (fd >= 0 && !elf_image_open_fd(&img, fd, NULL)) {
		n = elf_image_build_id(&img, id, sizeof(id));
		elf_image_close(&img);
	}
	digest_add(&d, id, n);
	if (!n && fd >= 0 && !fstat(fd, &st)) {
		const uint64_t stamp[] = { st.st_dev, st.st_ino, (uint64_t)st.st_size, (uint64_t)st.st_ctim.tv_sec, (uint64_t)st.st_ctim.tv_nsec };

		digest_add(&d, stamp, sizeof(stamp));
	}
	if (fd >= 0)
		close(fd);
	c->keying.build = digest_end(&d);
}

struct table_cache *table_cache_open(const struct table_cache_opts *opts, const char **why)
{
	struct table_cache *c = calloc(1, sizeof(*c));

	*why = strerror(ENOMEM);
	if (!c)
		return NULL;
	c->opts = *opts;
	c->opts.dir = NULL;	/* not ours to keep */
	c->keying.min_bytes = opts->min_bytes;
	c->dir = open_dir(opts->dir, why);
	if (c->dir < 0) {
		free(c);
		return NULL;
	}
	if (!read_key(c)) {
		unlinkat(c->dir, KEY_NAME, 0);	/* damaged: what it signed is lost */
		if (!make_key(c)) {
			*why = "its key cannot be written";
			table_cache_close(c);
			return NULL;
		}
	}
	own_build(c);
	return c;
}

void table_cache_close(struct table_cache *c)
{
	if (!c)
		return;
	close(c->dir);
	free(c);
}

const struct table_keying *table_cache_keying(const struct table_cache *c)
{
	return &c->keying;
}

int table_cache_load(struct table_cache *c, const struct table_key *key, const struct pack_space *space, struct pack_result *ret)
{
	const struct table_entry_mark mark = { key->digest, &c->keying.key };
	char name[TABLE_KEY_NAME];
	struct stat st;
	int fd, err;

	memset(ret, 0, sizeof(*ret));
	table_key_name(key, name);
	fd = open_ours(c, name, &st);
	if (fd < 0)
		return -ENOENT;
	err = table_entry_read(fd, (uint64_t)st.st_size, &mark, space, ret);
	if (err == -EBADMSG)
		unlinkat(c->dir, name, 0);
	else if (!err)
		futimens(fd, NULL);	/* used now: the last to go */
	close(fd);
	return err;
}

/* ---- Storing ----------------------------------------------------------------------------------------- */

struct old_entry {
	char name[96];
	uint64_t bytes;
	struct timespec used;
};

static int by_age(const void *a, const void *b)
{
	const struct timespec *x = &((const struct old_entry *)a)->used, *y = &((const struct old_entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* All entries, and c->bytes. What a process that died left half written is removed. */
static size_t list_entries(struct table_cache *c, struct old_entry **ret)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	size_t n = 0, cap = 0;
	struct dirent *d;
	struct stat st;

	*ret = NULL;
	c->bytes = 0;
	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir))) {
		if (fstatat(c->dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) || !strcmp(d->d_name, KEY_NAME) ||
		    strlen(d->d_name) >= sizeof((*ret)->name))
			continue;
		if (!strncmp(d->d_name, TMP_PREFIX, strlen(TMP_PREFIX))) {
			if (st.st_mtim.tv_sec + TMP_STALE_S < time(NULL))
				unlinkat(c->dir, d->d_name, 0);
			continue;
		}
		if (vec_reserve(ret, &cap, n + 1, sizeof(**ret)))
			break;
		(*ret)[n].bytes = (uint64_t)st.st_size;
		(*ret)[n].used = st.st_mtim;
		strcpy((*ret)[n].name, d->d_name);
		c->bytes += (*ret)[n++].bytes;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Counted once and kept up to date; where that says "too much" it is counted again, as other processes write, too. */
static void make_room(struct table_cache *c, uint64_t more)
{
	struct old_entry *entries;
	size_t n;

	if (c->counted && c->bytes + more <= c->opts.max_bytes)
		return;
	n = list_entries(c, &entries);
	c->counted = true;
	if (n && c->bytes + more > c->opts.max_bytes)
		qsort(entries, n, sizeof(*entries), by_age);
	for (size_t i = 0; i < n && c->bytes + more > c->opts.max_bytes; i++)
		if (!unlinkat(c->dir, entries[i].name, 0))
			c->bytes -= entries[i].bytes;
	free(entries);
}

int table_cache_store(struct table_cache *c, const struct table_key *key, const struct pack_result *packed, struct table_pieces *pieces)
{
	const struct table_entry_mark mark = { key->digest, &c->keying.key };
	char tmp[64], name[TABLE_KEY_NAME];
	uint64_t bytes = 0;
	int fd, err;

	if (packed->bytes > c->opts.max_bytes / 4)
		return -EOPNOTSUPP;
	make_room(c, packed->bytes);
	fd = new_file(c, tmp, sizeof(tmp));
	if (fd < 0)
		return -EIO;
	table_key_name(key, name);
	err = table_entry_write(fd, &mark, packed, pieces, &bytes);
	if (close(fd) && !err)
		err = -EIO;
	if (!err && renameat(c->dir, tmp, c->dir, name))
		err = -errno;
	if (err)
		unlinkat(c->dir, tmp, 0);
	else
		c->bytes += bytes;
	return err;
}
