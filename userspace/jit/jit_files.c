/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/jit_files.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/share.h"
#include "base/user_account.h"
#include "base/vec.h"
#include "jit/code_table.h"
#include "jit/jit_dump.h"
#include "jit/map_ages.h"
#include "jit/perf_lines.h"

#define PIECE_MAX    (256u << 10) /* bytes of a file that are read at once */
#define FREE_AT_ONCE (JIT_FILES_MAX / 16)
/* pause before a file is read again, as a multiple of the time that reading took */
#define PAUSE	     10
/* Reading may take 1/READ_PART of the allowance. Indexing what was read takes the rest. */
#define READ_PART    3
#define SLOW_NS	     4000 /* a lookup in a normal file takes at most 1,000 */

struct jit_file {
	enum jit_kind kind;
	uint64_t dev, ino;
	uint32_t uid, owner; /* owner: whose share of the memory it takes */
	uint32_t refs;
	uint64_t used;	  /* last use, a counter */
	uint64_t next_ns; /* CLOCK_MONOTONIC; not read again before that */
	uint64_t done;	  /* bytes of the file read so far */
	bool unread;	  /* the file had lines that were not read, at the last look */
	uint64_t look_ns; /* the last look by jit_file_epoch() */
	int fd;		  /* kept for jit_file_epoch(); -1: none */
	bool cut;	  /* the rest of the file is not read */
	bool dropped;	  /* its table was dropped to free memory */
	struct code_table codes;
	struct jit_dump dump;
	struct map_ages ages;
	uint64_t lookups, lookup_ns;
};

struct jit_files {
	struct jit_file **list;
	size_t n, cap;
	uint64_t uses;
	uint8_t piece[PIECE_MAX];
};

static size_t file_bytes(const struct jit_file *f)
{
	return sizeof(*f) + code_table_bytes(&f->codes) + jit_dump_bytes(&f->dump);
}

/* Drops everything that was read of the file. */
static void forget(struct jit_file *f)
{
	code_table_free(&f->codes);
	jit_dump_free(&f->dump);
	map_ages_lost(&f->ages);
	f->done = f->lookups = f->lookup_ns = 0;
	f->cut = f->dropped = false;
}

static void free_file(struct jit_file *f)
{
	forget(f);
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

struct jit_files *jit_files_new(void)
{
	return calloc(1, sizeof(struct jit_files));
}

void jit_files_free(struct jit_files *fs)
{
	for (size_t i = 0; fs && i < fs->n; i++)
		free_file(fs->list[i]);
	if (fs)
		free(fs->list);
	free(fs);
}

size_t jit_files_bytes(const struct jit_files *fs)
{
	size_t sum = sizeof(*fs);

	for (size_t i = 0; i < fs->n; i++)
		sum += file_bytes(fs->list[i]);
	return sum;
}

/* ---- Shared files ---- */

struct jit_file *jit_file_get(struct jit_files *fs, enum jit_kind kind, uint64_t dev, uint64_t ino,
			      uint32_t uid)
{
	struct jit_file *f;

	for (size_t i = 0; i < fs->n; i++) {
		f = fs->list[i];
		if (f->kind == kind && f->ino == ino && f->dev == dev && f->uid == uid) {
			f->refs++;
			return f;
		}
	}
	f = calloc(1, sizeof(*f));
	if (!f || vec_reserve(&fs->list, &fs->cap, fs->n + 1, sizeof(struct jit_file *))) {
		free(f);
		return NULL;
	}
	*f = (struct jit_file){
		.kind = kind,
		.dev = dev,
		.ino = ino,
		.uid = uid,
		.owner = user_account(uid),
		.refs = 1,
		.fd = -1,
	};
	fs->list[fs->n++] = f;
	return f;
}

void jit_file_put(struct jit_files *fs, struct jit_file *f)
{
	if (!f || --f->refs)
		return;
	for (size_t i = 0; i < fs->n; i++)
		if (fs->list[i] == f)
			fs->list[i--] = fs->list[--fs->n];
	free_file(f);
}

void jit_file_follow(struct jit_file *f, const struct jit_file *before)
{
	if (f->ages.whole_ns)
		return; /* it was read for another process */
	f->ages = before->ages;
	map_ages_lost(&f->ages);
}

void jit_file_keep(struct jit_file *f, int fd)
{
	if (f->fd >= 0)
		close(fd);
	else
		f->fd = fd;
}

bool jit_file_due(const struct jit_file *f)
{
	return clock_ns(CLOCK_MONOTONIC) >= f->next_ns;
}

struct jit_file_wish jit_file_wish(const struct jit_file *f)
{
	if (!f)
		return (struct jit_file_wish){ .more = true };
	return (struct jit_file_wish){ f->ino, f->done, !f->cut };
}

/* ---- Memory ---- */

/* Frees memory for f from files of users above their share. */
static void make_room(struct jit_files *fs, const struct jit_file *f)
{
	const struct share_request ask = { .owner = f->owner,
					   .want = FREE_AT_ONCE,
					   .hot_since = UINT64_MAX };
	struct share_item *items = malloc(fs->n * sizeof(*items));
	long n = 0;

	for (size_t i = 0; items && i < fs->n; i++)
		items[i] = (struct share_item){
			.id = (uint32_t)i,
			.owner = fs->list[i]->owner,
			.size = file_bytes(fs->list[i]),
			.last = fs->list[i]->used,
			.fixed = fs->list[i] == f,
		};
	if (items)
		n = share_choose(items, fs->n, &ask);
	for (long i = 0; i < n; i++) {
		forget(fs->list[items[i].id]);
		fs->list[items[i].id]->dropped = true;
	}
	free(items);
}

/* The bytes that f may hold now. */
static size_t limit_of(struct jit_files *fs, const struct jit_file *f)
{
	size_t all = jit_files_bytes(fs), own = file_bytes(f);

	if (all >= JIT_FILES_MAX && own < JIT_FILE_MAX) {
		make_room(fs, f);
		all = jit_files_bytes(fs);
	}
	if (all >= JIT_FILES_MAX)
		return 0;
	return own + JIT_FILES_MAX - all < JIT_FILE_MAX ? own + JIT_FILES_MAX - all : JIT_FILE_MAX;
}

static void cut(struct jit_file *f, struct allowance *p)
{
	p->totals.cut += !f->cut;
	f->cut = true;
}

/* ---- Reading ---- */

/* Reads the next piece. false: nothing more can be read now. */
static bool read_piece(struct jit_files *fs, struct jit_file *f, int fd, uint64_t size,
		       struct allowance *p)
{
	ssize_t n = pread(fd, fs->piece, PIECE_MAX, (off_t)f->done), used;
	struct bytes piece = bytes_of(fs->piece, n > 0 ? (size_t)n : 0, false);

	if (n <= 0)
		return false;
	if (f->kind == JIT_DUMP)
		used = jit_dump_take(&f->dump, &f->codes, piece, f->done, size - f->done);
	else
		used = perf_lines_take(&f->codes, piece, map_ages_next(&f->ages));
	if (used < 0)
		cut(f, p);
	if (used > 0)
		f->done += (uint64_t)used;
	return used > 0 && f->done < size;
}

/*
 * Reads the file until its end, a limit of memory, or the time `until`. *ret_replaces: whether a
 * new piece covers memory of an older one. Returns false if the time ended the reading.
 */
static bool read_rest(struct jit_files *fs, struct jit_file *f, int fd, uint64_t size,
		      uint64_t until, bool *ret_replaces, struct allowance *p)
{
	size_t fixed, limit;
	bool was_cut, whole = true;

	do {
		limit = limit_of(fs, f);
		if (file_bytes(f) >= limit) {
			cut(f, p);
			break;
		}
		if (clock_ns(CLOCK_MONOTONIC) >= until) {
			p->totals.deferred++;
			whole = false;
			break;
		}
	} while (read_piece(fs, f, fd, size, p));
	*ret_replaces = f->kind == JIT_MAP && code_table_replaces(&f->codes);
	limit = limit_of(fs, f);
	fixed = sizeof(*f) + jit_dump_bytes(&f->dump);
	if (code_table_index(&f->codes, limit > fixed ? limit - fixed : 0, &was_cut) || was_cut)
		cut(f, p);
	return whole;
}

void jit_file_read(struct jit_files *fs, struct jit_file *f, int fd, uint64_t size,
		   uint64_t look_ns, struct allowance *p)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu, limit, spent;
	bool replaces, whole;

	if (size < f->done)
		forget(f);
	f->unread = size > f->done && !f->cut;
	if (!f->unread)
		map_ages_read(&f->ages, false, true, look_ns, start);
	if (!f->unread || start < f->next_ns)
		return;
	f->used = ++fs->uses;
	limit = allowance_have(p, f->uid);
	if (!limit) {
		p->totals.deferred++;
		f->next_ns = start + JIT_AGAIN_NS;
		return;
	}
	f->dropped = false;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	whole = read_rest(fs, f, fd, size, start + limit / READ_PART, &replaces, p);
	p->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	spent = clock_ns(CLOCK_MONOTONIC) - start;
	allowance_spend(p, f->uid, spent);
	f->next_ns = start + (PAUSE + 1) * spent;
	f->unread = !whole;
	map_ages_read(&f->ages, replaces, whole, look_ns, start + spent);
}

uint32_t jit_file_epoch(struct jit_files *fs, struct jit_file *f, uint64_t from_ns, uint64_t to_ns,
			struct allowance *p)
{
	struct stat st;

	if (f->fd < 0)
		return 0;
	if (to_ns > f->look_ns) {
		f->look_ns = clock_ns(CLOCK_MONOTONIC);
		if (!fstat(f->fd, &st) && st.st_size >= 0)
			jit_file_read(fs, f, f->fd, (uint64_t)st.st_size, f->look_ns, p);
	}
	return map_ages_epoch(&f->ages, from_ns, to_ns, f->unread);
}

/* ---- Finding ---- */

bool jit_file_span(const struct jit_file *f, uint32_t epoch, struct jit_span *ret)
{
	*ret = (struct jit_span){ 0 };
	return !f || f->kind != JIT_MAP || map_ages_span(&f->ages, epoch, &ret->from, &ret->to);
}

const char *jit_file_find(struct jit_files *fs, struct jit_file *f, uint64_t addr,
			  struct jit_span span, struct allowance *p)
{
	uint64_t start, spent;
	const char *name;
	bool slow, several;

	if (f && f->dropped)
		p->totals.deferred++;
	if (!f || !f->codes.nparts)
		return NULL;
	f->used = ++fs->uses;
	/* The owner of the file pays for slow lookups from the allowance. */
	slow = f->lookup_ns > f->lookups * SLOW_NS;
	if (slow && !allowance_have(p, f->uid)) {
		p->totals.deferred++;
		return NULL;
	}
	start = clock_ns(CLOCK_MONOTONIC);
	name = code_table_find(&f->codes, addr, span.from, f->dump.own_clock ? 0 : span.to,
			       &several);
	spent = clock_ns(CLOCK_MONOTONIC) - start;
	f->lookups++;
	f->lookup_ns += spent;
	if (slow) {
		allowance_spend(p, f->uid, spent);
		p->cpu_ns += spent;
	}
	return name && several ? JIT_REPLACED : name;
}
