/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/jit_dump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/in_root.h"
#include "base/vec.h"

#define MAGIC 0x4a695444u	/* "JiTD"; read in the other byte order it is another machine's */
#define HEADER_MIN 40
#define RECORD_HEAD 16
#define ARCH_TIMESTAMP 1	/* header flags: times are the CPU's, and not comparable */
#define NAME_MAX_BYTES 4096
#define WINDOW (256u << 10)
#define WALK_BACK 4096		/* codes looked at for one address */

enum record { CODE_LOAD = 0, CODE_MOVE = 1 };

struct code {
	uint64_t start, size, time;
	uint64_t reach;		/* the furthest end of this and all before it */
	uint32_t name;		/* offset in names */
	uint32_t order;		/* in the file */
};

struct move {
	uint64_t from, to, size, time;
};

struct jit_dump {
	ino_t ino;
	dev_t dev;
	uint64_t done;		/* bytes of the file that were read; 0: not even its header */
	bool own_clock;		/* times mean nothing to us */
	struct code *codes;	/* by start */
	size_t n, cap;
	char *names;
	size_t names_len, names_cap;
	struct move *moves;	/* of what was read just now */
	size_t nmoves, moves_cap;
};

struct jit_dump *jit_dump_new(void)
{
	return calloc(1, sizeof(struct jit_dump));
}

static void forget(struct jit_dump *d)
{
	free(d->codes);
	free(d->names);
	free(d->moves);
	*d = (struct jit_dump){ 0 };
}

void jit_dump_free(struct jit_dump *d)
{
	if (d)
		forget(d);
	free(d);
}

/* ---- Where it is ---- */

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
		if (at && (size_t)(line + n - at) >= len && !strcmp(line + n - len, want) && rights && rights < at && memchr(rights, 'x', 5))
			ret = strdup(at);
	}
	if (f)
		fclose(f);
	free(line);
	if (!ret && asprintf(&ret, "/tmp/jit-%u.dump", ns_pid) < 0)
		ret = NULL;
	return ret;
}

/* ---- Reading ---- */

static int add_code(struct jit_dump *d, struct code c)
{
	if (!c.size || c.size > UINT64_MAX - c.start)
		return 0;
	if (d->n >= JIT_DUMP_MAX_CODES || vec_reserve(&d->codes, &d->cap, d->n + 1, sizeof(*d->codes)))
		return -ENOMEM;
	c.order = (uint32_t)d->n;
	d->codes[d->n++] = c;
	return 0;
}

static int add_load(struct jit_dump *d, struct bytes *b, uint64_t time)
{
	struct code c = { .time = time };
	const char *name;
	size_t len;

	bytes_skip(b, 4 + 4 + 8);	/* pid, tid, vma */
	c.start = bytes_u64(b);
	c.size = bytes_u64(b);
	bytes_skip(b, 8);		/* index */
	name = bytes_str(b);
	if (b->err || !*name)
		return 0;
	len = strnlen(name, NAME_MAX_BYTES);
	if (len + 1 > JIT_DUMP_MAX_NAMES - d->names_len || vec_reserve(&d->names, &d->names_cap, d->names_len + len + 1, 1))
		return -ENOMEM;
	c.name = (uint32_t)d->names_len;
	memcpy(d->names + d->names_len, name, len);
	d->names[d->names_len + len] = 0;
	d->names_len += len + 1;
	return add_code(d, c);
}

static int add_move(struct jit_dump *d, struct bytes *b, uint64_t time)
{
	struct move m = { .time = time };

	bytes_skip(b, 4 + 4 + 8);	/* pid, tid, vma */
	m.from = bytes_u64(b);
	m.to = bytes_u64(b);
	m.size = bytes_u64(b);
	if (b->err)
		return 0;
	if (d->nmoves >= JIT_DUMP_MAX_CODES || vec_reserve(&d->moves, &d->moves_cap, d->nmoves + 1, sizeof(*d->moves)))
		return -ENOMEM;
	d->moves[d->nmoves++] = m;
	return 0;
}

/* Whole records from the window's start. Returns how far to go on; 0: half a record, or damage. */
static uint64_t take_records(struct jit_dump *d, struct bytes window, uint64_t left)
{
	uint64_t used = 0;

	while (used < window.len) {
		struct bytes b = bytes_sub(&window, used, window.len - used);
		uint32_t id = bytes_u32(&b), size = bytes_u32(&b);
		uint64_t time = bytes_u64(&b);
		int err = 0;

		if (b.err || size < RECORD_HEAD || size > left - used)
			break;
		/* Of a record that goes on behind the window (it has the code in it) names are wanted, and those come early. */
		if (size > window.len - used && window.len - used < NAME_MAX_BYTES + 256 && used)
			break;
		if (id == CODE_LOAD)
			err = add_load(d, &b, time);
		else if (id == CODE_MOVE)
			err = add_move(d, &b, time);
		if (err)
			return 0;
		used += size;
	}
	return used;
}

static int read_header(struct jit_dump *d, struct bytes b)
{
	uint32_t magic = bytes_u32(&b), version = bytes_u32(&b), size = bytes_u32(&b);
	uint64_t flags;

	bytes_skip(&b, 4 + 4 + 4 + 8);	/* machine, padding, pid, time */
	flags = bytes_u64(&b);
	if (b.err || magic != MAGIC || !version || size < HEADER_MIN)
		return -ENOEXEC;
	d->own_clock = flags & ARCH_TIMESTAMP;
	d->done = size;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort_codes(struct jit_dump *d)
{
	uint64_t reach = 0;

	if (d->n)
		qsort(d->codes, d->n, sizeof(*d->codes), by_start);
	for (size_t i = 0; i < d->n; i++) {
		uint64_t end = d->codes[i].start + d->codes[i].size;

		if (end > reach)
			reach = end;
		d->codes[i].reach = reach;
	}
}

/* ---- Finding ---- */

/* Codes below the result start at or below addr. */
static size_t above(const struct jit_dump *d, uint64_t addr)
{
	size_t lo = 0, hi = d->n;	/* codes before lo start at or below addr, those from hi on above it */

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->codes[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The newest code at addr that is older than `before`; order counts among equal times. */
static const struct code *newest(const struct jit_dump *d, uint64_t addr, const struct code *before)
{
	const struct code *best = NULL;
	size_t i = above(d, addr);

	for (unsigned int steps = 0; i-- > 0 && steps < WALK_BACK && d->codes[i].reach > addr; steps++) {
		const struct code *c = &d->codes[i];

		if (addr - c->start >= c->size || (before && (c->time > before->time || (c->time == before->time && c->order >= before->order))))
			continue;
		if (!best || c->time > best->time || (c->time == best->time && c->order > best->order))
			best = c;
	}
	return best;
}

const char *jit_dump_find(struct jit_dump *d, uint64_t addr, uint64_t from_ns, uint64_t to_ns)
{
	const struct code *c = newest(d, addr, NULL), *best = c;
	uint64_t end = to_ns, most = 0;

	for (unsigned int steps = 0; c && to_ns && !d->own_clock && steps < WALK_BACK; steps++, c = newest(d, addr, c)) {
		uint64_t since = c->time > from_ns ? c->time : from_ns, lasted = end > since ? end - since : 0;

		if (lasted > most) {
			most = lasted;
			best = c;
		}
		if (c->time <= from_ns)
			break;
		if (c->time < end)
			end = c->time;
		if (!most)
			best = c;	/* all of it came later: the oldest is the nearest */
	}
	return best ? d->names + best->name : NULL;
}

static void apply_moves(struct jit_dump *d)
{
	size_t known = d->n;

	for (size_t i = 0; i < d->nmoves; i++) {
		const struct code when = { .time = d->moves[i].time, .order = UINT32_MAX }, *c = newest(d, d->moves[i].from, &when);

		if (c && add_code(d, (struct code){ .start = d->moves[i].to, .size = d->moves[i].size, .time = when.time, .name = c->name }))
			break;
		/* Code may be moved again: rarely enough to sort each time it matters. */
		if (d->n - known >= 1024 || i + 1 == d->nmoves) {
			sort_codes(d);
			known = d->n;
		}
	}
	d->nmoves = 0;
}

void jit_dump_place(const struct jit_dump *d, uint64_t *ret_ino, uint64_t *ret_done)
{
	*ret_ino = d->ino;
	*ret_done = d->done;
}

int jit_dump_read(struct jit_dump *d, int fd, const struct stat *st)
{
	uint64_t size = st->st_size > 0 ? (uint64_t)st->st_size : 0;
	uint8_t *buf;
	int err = 0;

	if (d->done && (st->st_ino != d->ino || st->st_dev != d->dev || size < d->done))
		forget(d);
	d->ino = st->st_ino;
	d->dev = st->st_dev;
	if (size <= d->done)
		return 0;
	buf = malloc(WINDOW);
	if (!buf)
		return -ENOMEM;
	while (d->done < size && !err) {
		ssize_t n = pread(fd, buf, WINDOW, (off_t)d->done);
		struct bytes window = bytes_of(buf, n > 0 ? (size_t)n : 0, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
		uint64_t used;

		if (n <= 0) {
			err = -EIO;
		} else if (!d->done) {
			err = read_header(d, window);
		} else {
			used = take_records(d, window, size - d->done);
			if (!used)
				break;
			d->done += used;
		}
	}
	free(buf);
	sort_codes(d);
	apply_moves(d);
	return err;
}

size_t jit_dump_bytes(const struct jit_dump *d)
{
	return sizeof(*d) + d->cap * sizeof(*d->codes) + d->names_cap + d->moves_cap * sizeof(*d->moves);
}
