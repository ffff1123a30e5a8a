/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/jit_dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/in_root.h"
#include "base/vec.h"

/* "JiTD"; a file in the other byte order comes from another machine */
#define MAGIC	       0x4a695444u
#define HEADER_MIN     40
#define RECORD_HEAD    16
#define ARCH_TIMESTAMP 1 /* header flag: times are CPU timestamps, not comparable with ours */
/*
 * V8, LLVM's listener and others write a record before its code runs. HotSpot queues it for another
 * thread, which tells perf's agent while the code may run already.
 */
#define LATE_NS	       (100 * NUM_MS)

enum record { CODE_LOAD = 0, CODE_MOVE = 1 };

/* ---- Records ---- */

static int note_piece(struct jit_dump *d, uint64_t index, uint32_t at)
{
	uint32_t id;

	if (idmap_get(&d->by_index, index, d->key, &id) ||
	    vec_reserve(&d->piece, &d->piece_cap, d->by_index.n, sizeof(*d->piece)))
		return -ENOMEM;
	d->piece[id] = at;
	return 0;
}

static int add_load(struct jit_dump *d, struct code_table *t, struct bytes *b, uint64_t time)
{
	struct code c = { .time = time };
	size_t before = t->n;
	const char *name;
	uint64_t index;
	int err;

	bytes_skip(b, 4 + 4 + 8); /* pid, tid, vma */
	c.start = bytes_u64(b);
	c.size = bytes_u64(b);
	index = bytes_u64(b);
	name = bytes_str(b);
	if (b->err || !*name)
		return 0;
	err = code_table_add(t, c, name, strlen(name));
	return err || t->n == before ? err : note_piece(d, index, (uint32_t)before);
}

static int add_move(const struct jit_dump *d, struct code_table *t, struct bytes *b, uint64_t time)
{
	struct code c = { .time = time };
	uint64_t index;
	uint32_t id;

	bytes_skip(b, 4 + 4 + 8 + 8); /* pid, tid, vma, old address */
	c.start = bytes_u64(b);
	c.size = bytes_u64(b);
	index = bytes_u64(b);
	if (b->err || !idmap_find(&d->by_index, index, d->key, &id))
		return 0;
	c.name = t->codes[d->piece[id]].name;
	return code_table_add_named(t, c);
}

static ssize_t take_records(struct jit_dump *d, struct code_table *t, struct bytes window,
			    uint64_t left)
{
	uint64_t used = 0;

	while (used < window.len) {
		struct bytes b = bytes_sub(&window, used, window.len - used);
		uint32_t id = bytes_u32(&b), size = bytes_u32(&b);
		uint64_t time = bytes_u64(&b);
		int err = 0;

		if (b.err || size < RECORD_HEAD || size > left - used)
			break;
		/*
		 * A record may extend past the window, because it contains the code. Only its name
		 * is needed, which comes early.
		 */
		if (size > window.len - used && window.len - used < CODE_NAME_MAX + 256 && used)
			break;
		b.len = size < b.len ? size : b.len;
		if (id == CODE_LOAD)
			err = add_load(d, t, &b, time);
		else if (id == CODE_MOVE)
			err = add_move(d, t, &b, time);
		if (err)
			return err;
		used += size;
	}
	return (ssize_t)used;
}

static ssize_t take_header(struct jit_dump *d, struct code_table *t, struct bytes b)
{
	uint32_t magic = bytes_u32(&b), version = bytes_u32(&b), size = bytes_u32(&b);
	uint64_t flags;

	bytes_skip(&b, 4 + 4 + 4 + 8); /* machine, padding, pid, time */
	flags = bytes_u64(&b);
	if (b.err || magic != MAGIC || !version || size < HEADER_MIN)
		return -ENOEXEC;
	d->own_clock = flags & ARCH_TIMESTAMP;
	t->late = LATE_NS;
	if (getrandom(&d->key, sizeof(d->key), GRND_NONBLOCK) != sizeof(d->key))
		d->key = clock_ns(CLOCK_MONOTONIC);
	return size;
}

ssize_t jit_dump_take(struct jit_dump *d, struct code_table *t, struct bytes window, uint64_t at,
		      uint64_t left)
{
	window.be = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	return at ? take_records(d, t, window, left) : take_header(d, t, window);
}

size_t jit_dump_bytes(const struct jit_dump *d)
{
	return d->by_index.n * (sizeof(*d->by_index.keys) + sizeof(*d->piece)) +
	       slots_bytes(&d->by_index.slots);
}

void jit_dump_free(struct jit_dump *d)
{
	idmap_free(&d->by_index);
	free(d->piece);
	*d = (struct jit_dump){ 0 };
}
