/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An entry, in the machine's own byte order:
 *
 *	struct entry_head
 *	u32 dir[npages]		0, or 1 + the index of a page, for each 64 KiB of the file
 *	u32 sizes[nbodies]	bytes of each page; several directory entries may share one
 *	struct sf_rule rules[nrules]
 *	struct module_range sframe[nsframe]
 *	pages, one after the other, as BPF has them
 *
 * `sum` is the keyed digest of all that, itself taken as 0. Pages go from the file to where BPF will read them and are checked there;
 * nobody knows of them before the caller publishes them.
 */
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

#include "base/pread_full.h"
#include "base/vec.h"
#include "unwind/eh_record.h"

#define MAGIC 0x3130626174667362ull
#define KEY_NAME "key"
#define TMP_PREFIX ".tmp-"
#define TMP_STALE_S 60
#define SFRAME_RANGES_MAX (1u << 20)

struct table_cache {
	struct table_cache_opts opts;
	int dir;
	struct digest_key key;
	struct digest_value build;	/* of the running program: another build's tables may differ */
	bool counted;
	uint64_t bytes;			/* of all entries, if counted */
};

struct entry_head {
	uint64_t magic, size;		/* of the whole entry */
	struct digest_value key, sum;
	uint32_t flags, first_page, npages, nbodies, nrules, nsframe;
	uint64_t rows, bytes, lost_rows;
};

_Static_assert(sizeof(struct entry_head) == 96, "no padding is written");

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

/* A new file that nobody else has open, to be named when it is complete. */
static FILE *new_file(const struct table_cache *c, char *name, size_t cap)
{
	uint64_t id = 0;
	FILE *f = NULL;
	int fd;

	if (getrandom(&id, sizeof(id), 0) != sizeof(id))
		return NULL;
	snprintf(name, cap, TMP_PREFIX "%016llx", (unsigned long long)id);
	fd = openat(c->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		f = fdopen(fd, "w");
	if (fd >= 0 && !f) {
		close(fd);
		unlinkat(c->dir, name, 0);
	}
	return f;
}

static bool read_key(struct table_cache *c)
{
	struct stat st;
	int fd = open_ours(c, KEY_NAME, &st);
	bool good = fd >= 0 && st.st_size == sizeof(c->key) && !pread_full(fd, &c->key, sizeof(c->key), 0);

	if (fd >= 0)
		close(fd);
	return good;
}

/* link() fails where another process was faster; then its key is ours. */
static bool make_key(struct table_cache *c)
{
	struct digest_key key;
	char tmp[64];
	FILE *f;

	if (getrandom(&key, sizeof(key), 0) != sizeof(key) || !(f = new_file(c, tmp, sizeof(tmp))))
		return false;
	fwrite(&key, sizeof(key), 1, f);
	if (!fclose(f))
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

	digest_init(&d, &c->key);
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
	c->build = digest_end(&d);
}

struct table_cache *table_cache_open(const struct table_cache_opts *opts, const char **why)
{
	struct table_cache *c = calloc(1, sizeof(*c));

	*why = strerror(ENOMEM);
	if (!c)
		return NULL;
	c->opts = *opts;
	c->opts.dir = NULL;	/* not ours to keep */
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

/* ---- The key ----------------------------------------------------------------------------------------- */

/* A field at a time: structures may have padding. */
static void add_headers(struct digest *d, const struct elf_image *img)
{
	const uint64_t file[] = { img->size, img->type, img->machine, img->be, img->nphdrs, img->nshdrs };

	digest_add(d, file, sizeof(file));
	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *p = &img->phdrs[i];
		const uint64_t ph[] = { p->type, p->flags, p->offset, p->vaddr, p->filesz, p->memsz };

		digest_add(d, ph, sizeof(ph));
	}
	for (uint32_t i = 0; i < img->nshdrs; i++) {
		const struct elf_shdr *s = &img->shdrs[i];
		const uint64_t sh[] = { s->type, s->flags, s->addr, s->offset, s->size };

		digest_add(d, sh, sizeof(sh));
		digest_add(d, s->name, strlen(s->name));
	}
}

static void add_blob(struct digest *d, bool found, const struct elf_blob *blob)
{
	const uint64_t place[] = { found, found ? blob->addr : 0, found ? blob->view.len : 0 };

	digest_add(d, place, sizeof(place));
	if (found)
		digest_add(d, blob->view.base, blob->view.len);
}

static void add_known(struct digest *d, const struct rowbuf *known)
{
	digest_add(d, &known->n, sizeof(known->n));
	for (size_t i = 0; i < known->n; i++) {
		const struct row *r = &known->rows[i];
		const uint64_t row[] = { r->start, r->end, r->cfa.kind, (uint64_t)r->cfa.off, r->ra.kind, (uint64_t)r->ra.off, r->fp.kind };

		digest_add(d, row, sizeof(row));
	}
}

bool table_cache_key(const struct table_cache *c, const struct unwind_file *f, struct table_cache_key *ret)
{
	uint64_t bytes = (f->found_sframe ? f->sframe_bytes.view.len : 0) + (f->found_eh ? f->eh_bytes.view.len : 0);
	struct eh_hdr hdr = { 0 };
	uint8_t id[20];
	struct digest d;
	size_t n, at = 0;

	if (bytes < c->opts.min_bytes)
		return false;
	n = elf_image_build_id(&f->img, id, sizeof(id));
	if (!n)
		return false;
	digest_init(&d, &c->key);
	digest_add(&d, &c->build, sizeof(c->build));
	digest_add(&d, id, n);
	add_headers(&d, &f->img);
	add_blob(&d, f->found_sframe, &f->sframe_bytes);
	add_blob(&d, f->found_eh, &f->eh_bytes);
	/* Of the header the conversion looks at the count; where it needs the table, too, the result is not kept. */
	if (f->found_eh && !f->debug_frame && !eh_hdr_read(&f->img, &hdr)) {
		digest_add(&d, &hdr.eh_frame, sizeof(hdr.eh_frame));
		digest_add(&d, &hdr.count, sizeof(hdr.count));
	}
	add_known(&d, &f->known);
	ret->digest = digest_end(&d);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(ret->name + at, sizeof(ret->name) - at, "%02x", id[i]);
	snprintf(ret->name + at, sizeof(ret->name) - at, "-%016llx", (unsigned long long)ret->digest.words[0]);
	return true;
}

/* ---- Loading ----------------------------------------------------------------------------------------- */

/* What stands between the head and the pages. */
struct middle {
	void *mem;
	size_t len;
	uint32_t *dir, *sizes;
	struct sf_rule *rules;
	struct module_range *sframe;
};

static int middle_alloc(struct middle *m, const struct entry_head *h)
{
	size_t dir = 4ul * ((size_t)h->npages + h->nbodies + ((h->npages + h->nbodies) & 1)), rules = h->nrules * sizeof(struct sf_rule);

	m->len = dir + rules + h->nsframe * sizeof(struct module_range);
	m->mem = calloc(1, m->len ? m->len : 1);
	if (!m->mem)
		return -ENOMEM;
	m->dir = m->mem;
	m->sizes = m->dir + h->npages;
	m->rules = (struct sf_rule *)((char *)m->mem + dir);
	m->sframe = (struct module_range *)((char *)m->mem + dir + rules);
	return 0;
}

/* Whether its counts are possible; then nothing that is made from them overflows. */
static bool head_sound(const struct entry_head *h, const struct table_cache_key *key, uint64_t file_size)
{
	return h->magic == MAGIC && h->size == file_size && !memcmp(&h->key, &key->digest, sizeof(h->key)) && h->npages && h->npages <= SF_DIR_MAX &&
	       h->nbodies && h->nbodies <= h->npages && h->nrules <= SF_MAX_RULES && h->nsframe <= SFRAME_RANGES_MAX;
}

static bool middle_sound(const struct middle *m, const struct entry_head *h)
{
	uint64_t size = sizeof(*h) + m->len;

	for (uint32_t i = 0; i < h->npages; i++)
		if (m->dir[i] > h->nbodies)
			return false;
	for (uint32_t i = 0; i < h->nbodies; i++) {
		if (m->sizes[i] <= SF_PAGE_ROWS || m->sizes[i] > SF_PAGE_ROWS + 4 * SF_PAGE_MAX_ROWS || m->sizes[i] % 4)
			return false;
		size += m->sizes[i];
	}
	return size == h->size;
}

#define STRIDE 32	/* rows at a time; a constant, so that the compiler makes vector code of them */

/* Unknown are the codes from the first index behind the rules up to the two that are none. */
static bool unknown_rules(const uint32_t *rows, uint32_t n, uint32_t nrules)
{
	const uint32_t first = SF_RULE_INDEXED + nrules, span = SF_RULE_END - first;
	uint32_t bad = 0;

	for (; n >= STRIDE; n -= STRIDE, rows += STRIDE)
		for (size_t k = 0; k < STRIDE; k++)
			bad |= (rows[k] >> 16) - first < span;
	for (size_t k = 0; k < n; k++)
		bad |= (rows[k] >> 16) - first < span;
	return bad;
}

/* A page as BPF may rely on it: its index stays inside, it begins at its first byte, and every rule is there. */
static bool page_sound(const void *mem, uint32_t size, uint32_t nrules)
{
	const uint16_t *index = mem;
	const uint32_t *rows = (const uint32_t *)((const char *)mem + SF_PAGE_ROWS);
	uint32_t n = (size - SF_PAGE_ROWS) / 4, bad = rows[0] & 0xffff;

	bad |= index[SF_PAGE_INDEX - 1] != n || index[0];
	for (uint32_t i = 1; i < SF_PAGE_INDEX; i++)
		bad |= index[i] < index[i - 1];
	return !bad && !unknown_rules(rows, n, nrules);
}

static int load_pages(int fd, const struct entry_head *h, struct middle *m, const struct pack_space *space, struct digest *sum, uint32_t *locs)
{
	uint64_t off = sizeof(*h) + m->len;

	for (uint32_t i = 0; i < h->nbodies; i++) {
		void *mem = space->alloc(space->ctx, m->sizes[i], &locs[i]);
		int err;

		if (!mem)
			return -ENOSPC;
		err = pread_full(fd, mem, m->sizes[i], off);
		if (err)
			return err;
		digest_add(sum, mem, m->sizes[i]);
		if (!page_sound(mem, m->sizes[i], h->nrules))
			return -EBADMSG;
		off += m->sizes[i];
	}
	return 0;
}

/* Directory and rules to where BPF reads them, and the ranges to the caller. */
static int load_rest(const struct entry_head *h, struct middle *m, const uint32_t *locs, const struct pack_space *space, struct pack_result *ret)
{
	uint32_t *dir = space->alloc(space->ctx, 4 * h->npages, &ret->tables.dir);
	void *rules;

	if (!dir)
		return -ENOSPC;
	for (uint32_t i = 0; i < h->npages; i++)
		dir[i] = m->dir[i] ? locs[m->dir[i] - 1] : 0;
	if (h->nrules) {
		rules = space->alloc(space->ctx, (uint32_t)(h->nrules * sizeof(*m->rules)), &ret->tables.rules);
		if (!rules)
			return -ENOSPC;
		memcpy(rules, m->rules, h->nrules * sizeof(*m->rules));
	}
	if (h->nsframe) {
		ret->sframe = malloc(h->nsframe * sizeof(*ret->sframe));
		if (!ret->sframe)
			return -ENOMEM;
		memcpy(ret->sframe, m->sframe, h->nsframe * sizeof(*ret->sframe));
		ret->nsframe = h->nsframe;
	}
	ret->tables.flags = h->flags;
	ret->tables.first_page = h->first_page;
	ret->tables.npages = h->npages;
	ret->tables.nrules = h->nrules;
	ret->rows = h->rows;
	ret->rules = h->nrules;
	ret->bytes = h->bytes;
	ret->lost_rows = h->lost_rows;
	return 0;
}

static int load(const struct table_cache *c, int fd, uint64_t size, const struct table_cache_key *key, const struct pack_space *space,
		struct pack_result *ret)
{
	struct entry_head h, bare;
	struct digest_value is;
	struct middle m = { 0 };
	uint32_t *locs = NULL;
	struct digest sum;
	int err;

	if (pread_full(fd, &h, sizeof(h), 0) || !head_sound(&h, key, size))
		return -EBADMSG;
	err = middle_alloc(&m, &h);
	if (!err)
		err = sizeof(h) + m.len > size || pread_full(fd, m.mem, m.len, sizeof(h)) || !middle_sound(&m, &h) ? -EBADMSG : 0;
	if (!err) {
		bare = h;
		bare.sum = (struct digest_value){ { 0, 0 } };
		digest_init(&sum, &c->key);
		digest_add(&sum, &bare, sizeof(bare));
		digest_add(&sum, m.mem, m.len);
		locs = malloc(h.nbodies * sizeof(*locs));
		err = locs ? load_pages(fd, &h, &m, space, &sum, locs) : -ENOMEM;
	}
	if (!err) {
		is = digest_end(&sum);
		err = memcmp(&is, &h.sum, sizeof(is)) ? -EBADMSG : load_rest(&h, &m, locs, space, ret);
	}
	free(locs);
	free(m.mem);
	return err == -EIO ? -EBADMSG : err;
}

int table_cache_load(struct table_cache *c, const struct table_cache_key *key, const struct pack_space *space, struct pack_result *ret)
{
	struct stat st;
	int fd = open_ours(c, key->name, &st), err;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return -ENOENT;
	err = load(c, fd, (uint64_t)st.st_size, key, space, ret);
	if (err == -EBADMSG)
		unlinkat(c->dir, key->name, 0);
	else if (!err)
		futimens(fd, NULL);	/* used now: the last to go */
	close(fd);
	return err;
}

/* ---- Storing ----------------------------------------------------------------------------------------- */

static void *pieces_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct table_pieces *p = ctx;
	void *mem = p->inner->alloc(p->inner->ctx, size, ret_loc);

	/* Without memory for the record there is a hole in it, and nothing will be stored. */
	if (mem && !vec_reserve(&p->pieces, &p->cap, p->n + 1, sizeof(*p->pieces)))
		p->pieces[p->n++] = (struct table_piece){ mem, size, *ret_loc };
	return mem;
}

struct pack_space table_pieces_space(struct table_pieces *p)
{
	return (struct pack_space){ pieces_alloc, p };
}

void table_pieces_free(struct table_pieces *p)
{
	free(p->pieces);
	*p = (struct table_pieces){ 0 };
}

static int by_loc(const void *a, const void *b)
{
	const struct table_piece *x = a, *y = b;

	return x->loc < y->loc ? -1 : x->loc > y->loc;
}

static const struct table_piece *piece_at(const struct table_pieces *p, uint32_t loc)
{
	const struct table_piece want = { .loc = loc };

	return p->n ? bsearch(&want, p->pieces, p->n, sizeof(want), by_loc) : NULL;
}

/* What to write. */
struct plan {
	struct entry_head head;
	struct middle middle;
	const struct table_piece **pages;	/* head.nbodies of them */
	uint32_t *dir;				/* 0, or 1 + index into pages */
};

static void plan_free(struct plan *p)
{
	free(p->pages);
	free(p->dir);
	free(p->middle.mem);
}

/* Finds the pages that the directory names, each once. -EINVAL: a piece was not recorded. */
static int plan_pages(struct plan *p, const struct table_pieces *pieces, uint32_t dir_loc)
{
	const struct table_piece *dir = piece_at(pieces, dir_loc);
	uint32_t *number = calloc(pieces->n ? pieces->n : 1, sizeof(*number));	/* of a piece among the pages, + 1 */
	int err = !number ? -ENOMEM : dir ? 0 : -EINVAL;

	for (uint32_t i = 0; i < p->head.npages && !err; i++) {
		uint32_t loc = ((const uint32_t *)dir->mem)[i];
		const struct table_piece *page = loc ? piece_at(pieces, loc) : NULL;

		if (loc && !page)
			err = -EINVAL;
		if (!page)
			continue;
		if (!number[page - pieces->pieces]) {
			p->pages[p->head.nbodies++] = page;
			number[page - pieces->pieces] = p->head.nbodies;
		}
		p->dir[i] = number[page - pieces->pieces];
	}
	free(number);
	return err;
}

static int plan_middle(struct plan *p, const struct table_pieces *pieces, const struct pack_result *packed)
{
	const struct table_piece *rules = p->head.nrules ? piece_at(pieces, packed->tables.rules) : NULL;
	struct entry_head *h = &p->head;
	struct middle *m = &p->middle;
	int err = h->nrules && !rules ? -EINVAL : middle_alloc(m, h);

	if (err)
		return err;
	h->size = sizeof(*h) + m->len;
	memcpy(m->dir, p->dir, 4ul * h->npages);
	for (uint32_t i = 0; i < h->nbodies; i++) {
		m->sizes[i] = p->pages[i]->size;
		h->size += m->sizes[i];
	}
	if (h->nrules)
		memcpy(m->rules, rules->mem, h->nrules * sizeof(*m->rules));
	if (h->nsframe)
		memcpy(m->sframe, packed->sframe, h->nsframe * sizeof(*m->sframe));
	return 0;
}

static int plan_make(struct plan *p, const struct table_cache_key *key, const struct pack_result *packed, const struct table_pieces *pieces)
{
	int err;

	*p = (struct plan){ .head = { .magic = MAGIC, .key = key->digest, .flags = packed->tables.flags, .first_page = packed->tables.first_page,
				      .npages = packed->tables.npages, .nrules = packed->tables.nrules, .nsframe = packed->nsframe,
				      .rows = packed->rows, .bytes = packed->bytes, .lost_rows = packed->lost_rows } };
	p->pages = calloc(p->head.npages, sizeof(*p->pages));
	p->dir = calloc(p->head.npages, sizeof(*p->dir));
	err = p->pages && p->dir ? plan_pages(p, pieces, packed->tables.dir) : -ENOMEM;
	return err ? err : plan_middle(p, pieces, packed);
}

static int write_plan(const struct table_cache *c, struct plan *p, FILE *f)
{
	struct digest sum;

	digest_init(&sum, &c->key);
	digest_add(&sum, &p->head, sizeof(p->head));
	digest_add(&sum, p->middle.mem, p->middle.len);
	for (uint32_t i = 0; i < p->head.nbodies; i++)
		digest_add(&sum, p->pages[i]->mem, p->pages[i]->size);
	p->head.sum = digest_end(&sum);
	fwrite(&p->head, sizeof(p->head), 1, f);
	fwrite(p->middle.mem, p->middle.len, 1, f);
	for (uint32_t i = 0; i < p->head.nbodies; i++)
		fwrite(p->pages[i]->mem, p->pages[i]->size, 1, f);
	return fflush(f) || ferror(f) ? -EIO : 0;
}

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

int table_cache_store(struct table_cache *c, const struct table_cache_key *key, const struct unwind_file *f,
		      const struct pack_result *packed, struct table_pieces *pieces)
{
	struct plan plan;
	char tmp[64];
	FILE *out;
	int err;

	if (f->eh.by_hdr || packed->nsframe > SFRAME_RANGES_MAX || packed->bytes > c->opts.max_bytes / 4)
		return -EOPNOTSUPP;
	if (pieces->n)
		qsort(pieces->pieces, pieces->n, sizeof(*pieces->pieces), by_loc);
	err = plan_make(&plan, key, packed, pieces);
	if (!err) {
		make_room(c, plan.head.size);
		out = new_file(c, tmp, sizeof(tmp));
		err = out ? write_plan(c, &plan, out) : -EIO;
		if (out && fclose(out))
			err = -EIO;
		if (!err && renameat(c->dir, tmp, c->dir, key->name))
			err = -errno;
		if (out && err)
			unlinkat(c->dir, tmp, 0);
		c->bytes += err ? 0 : plan.head.size;
	}
	plan_free(&plan);
	return err;
}
