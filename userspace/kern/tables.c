/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/vec.h"
#include "kern/tables_internal.h"

#define MODULES_BYTES  (SF_MAX_MODULES * sizeof(struct sf_module))
#define SPARE_CHUNKS   2u  /* empty chunks that are kept for the next module */
#define RESERVE_CHUNKS 4u  /* the most that tables_reserve() creates */
#define UNPLACED_MAX   64u /* each has an open descriptor */

static void free_chunk(struct tables *t, struct chunk *c)
{
	if (!c->mem)
		return;
	if (!c->placed) {
		close(c->fd);
		t->nunplaced--;
	}
	munmap(c->mem, SF_CHUNK);
	cells_fini(&c->cells);
	*c = (struct chunk){ 0 };
	t->nchunks--;
}

/*
 * The array of maps and the mmap keep the map alive from here on. wait_for_programs needs the
 * descriptor of chunk 0.
 */
static void set_placed(struct tables *t, struct chunk *c)
{
	c->placed = true;
	t->nunplaced--;
	if (c == t->chunks)
		t->grace_fd = c->fd;
	else
		close(c->fd);
}

/*
 * Puts the new chunks into the array of maps. The kernel waits for all running programs meanwhile,
 * 5 to 15 ms for any number of chunks, so this is done once for all chunks of a module. 0 or -1.
 */
static int place_chunks(struct tables *t)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t ids[UNPLACED_MAX], n = 0, at_once, i;
	int fds[UNPLACED_MAX];

	for (uint32_t id = 0; id < SF_MAX_CHUNKS && n < t->nunplaced; id++) {
		if (!t->chunks[id].mem || t->chunks[id].placed)
			continue;
		ids[n] = id;
		fds[n++] = t->chunks[id].fd;
	}
	at_once = n;
	/* Older kernels have no batches for maps of maps. */
	if (n < 2 || bpf_map_update_batch(t->maps.chunks_fd, ids, fds, &at_once, &opts))
		at_once = 0;
	for (i = 0; i < n && (i < at_once ||
			      !bpf_map_update_elem(t->maps.chunks_fd, &ids[i], &fds[i], BPF_ANY));
	     i++)
		set_placed(t, &t->chunks[ids[i]]);
	return i < n ? -1 : 0;
}

/* Creates a chunk, which programs cannot find yet. */
static struct chunk *new_chunk(struct tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct chunk *c = t->chunks;
	void *mem = MAP_FAILED;
	int fd;

	if (t->nchunks >= t->max_chunks || (t->nunplaced == UNPLACED_MAX && place_chunks(t)))
		return NULL;
	while (c->mem)
		c++;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sfbpf_chunk", 4, SF_CHUNK, 1, &opts);
	if (fd >= 0)
		mem = mmap(NULL, SF_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED || cells_init(&c->cells, CHUNK_CELLS)) {
		if (mem != MAP_FAILED)
			munmap(mem, SF_CHUNK);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	c->mem = mem;
	c->fd = fd;
	t->nchunks++;
	t->nunplaced++;
	if (c == t->chunks)
		cells_take(&c->cells, 1); /* location 0 means "nothing" */
	return c;
}

/*
 * Adds chunks for the next modules, which then need not wait for programs. Adds none if memory is
 * short.
 */
static void add_spares(struct tables *t)
{
	for (uint32_t i = 0; i < SPARE_CHUNKS && t->nchunks < t->max_chunks / 2 &&
			     t->nunplaced < UNPLACED_MAX && new_chunk(t);
	     i++)
		;
}

/* Frees empty chunks, except a few spare ones and chunk 0, which wait_for_programs needs. */
void tables_release_chunks(struct tables *t)
{
	uint32_t spare = 0;

	for (uint32_t id = 1; id < SF_MAX_CHUNKS; id++) {
		struct chunk *c = &t->chunks[id];

		if (!c->mem || c->cells.used || ++spare <= SPARE_CHUNKS ||
		    (c->placed && bpf_map_delete_elem(t->maps.chunks_fd, &id)))
			continue;
		free_chunk(t, c);
	}
}

struct tables *tables_new(const struct tables_maps *maps, uint64_t budget, tables_lost_fn lost,
			  void *ctx)
{
	struct tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->maps = *maps;
	t->lost = lost;
	t->lost_ctx = ctx;
	t->grace_fd = -1;
	t->max_chunks = budget / SF_CHUNK > SF_MAX_CHUNKS ? SF_MAX_CHUNKS
							  : (uint32_t)(budget / SF_CHUNK);
	t->max_chunks += !t->max_chunks;
	t->modules = mmap(NULL, MODULES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, maps->modules_fd,
			  0);
	if (t->modules == MAP_FAILED || !new_chunk(t) || place_chunks(t)) {
		free_chunk(t, &t->chunks[0]);
		if (t->modules != MAP_FAILED)
			munmap(t->modules, MODULES_BYTES);
		free(t);
		return NULL;
	}
	pthread_mutex_init(&t->hold, NULL);
	for (uint32_t id = 1; id < SF_MAX_MODULES; id++) {
		t->modules[id].id = id;
		maps->free_ids[id - 1] = id;
	}
	__atomic_store_n(maps->free_tail, SF_MAX_MODULES - 1, __ATOMIC_RELEASE);
	return t;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < SF_MAX_CHUNKS; i++)
		free_chunk(t, &t->chunks[i]);
	for (uint32_t i = 0; i < t->nplaces; i++)
		free(t->places[i].holdings);
	if (t->grace_fd >= 0)
		close(t->grace_fd);
	munmap(t->modules, MODULES_BYTES);
	pthread_mutex_destroy(&t->hold);
	free(t);
}

/* ---- Cells ---- */

static struct chunk *take_cells(struct tables *t, uint32_t n, uint32_t *ret_start)
{
	struct chunk *c;

	for (uint32_t i = 0, seen = 0; seen < t->nchunks && i < SF_MAX_CHUNKS; i++) {
		c = &t->chunks[i];
		if (!c->mem)
			continue;
		seen++;
		*ret_start = cells_take(&c->cells, n);
		if (*ret_start != CELLS_NONE)
			return c;
	}
	c = new_chunk(t);
	if (c)
		*ret_start = cells_take(&c->cells, n);
	return c;
}

/*
 * Records cells as held by the module. Adjacent cells, the usual case, are merged into one holding.
 */
static int note_holding(struct place *p, uint32_t loc, uint32_t n)
{
	struct holding *last = p->n ? &p->holdings[p->n - 1] : NULL;

	if (last && last->loc + last->cells == loc &&
	    SF_LOC_CHUNK(last->loc) == SF_LOC_CHUNK(loc)) {
		last->cells += n;
	} else {
		if (vec_reserve(&p->holdings, &p->cap, p->n + 1, sizeof(*p->holdings)))
			return -ENOMEM;
		p->holdings[p->n++] = (struct holding){ loc, n };
	}
	p->cells += n;
	return 0;
}

static void *alloc_cells(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct tables *t = ctx;
	uint32_t at = SF_MODULE_PLACE(t->loading);
	struct place *p = &t->places[at];
	uint32_t n = (size + CELL - 1) / CELL, start = 0;
	struct chunk *c;

	if (!n || n >= CHUNK_CELLS)
		return NULL;
	/*
	 * Enough cells may be free but fragmented: evict until it fits or nothing can be evicted.
	 */
	while (!(c = take_cells(t, n, &start))) {
		if (!tables_evict(t, n)) {
			p->least = p->cells + n > p->least ? p->cells + n : p->least;
			return NULL;
		}
	}
	*ret_loc = (uint32_t)(c - t->chunks) << 16 | start;
	t->nplaces = at < t->nplaces ? t->nplaces : at + 1;
	if (note_holding(p, *ret_loc, n)) {
		cells_give(&c->cells, start, n);
		return NULL;
	}
	return c->mem + (size_t)start * CELL;
}

void tables_free_cells(struct tables *t, struct place *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct holding h = p->holdings[i];

		cells_give(&t->chunks[SF_LOC_CHUNK(h.loc)].cells, h.loc & 0xffff, h.cells);
	}
	free(p->holdings);
	p->holdings = NULL;
	p->n = p->cap = 0;
	p->cells = 0;
}

/* ---- Modules ---- */

bool tables_missing(const struct tables *t, uint32_t module)
{
	const struct sf_module *m = &t->modules[SF_MODULE_PLACE(module)];

	return m->id == module && m->state != SF_MOD_READY &&
	       !t->places[SF_MODULE_PLACE(module)].leaving;
}

bool tables_has(const struct tables *t, uint32_t module)
{
	return t->modules[SF_MODULE_PLACE(module)].id == module;
}

static uint64_t free_cells(const struct tables *t)
{
	uint64_t n = (uint64_t)(t->max_chunks - t->nchunks) * CHUNK_CELLS;

	for (uint32_t i = 0; i < SF_MAX_CHUNKS; i++)
		if (t->chunks[i].mem)
			n += t->chunks[i].cells.n - t->chunks[i].cells.used;
	return n;
}

void tables_reserve(struct tables *t, uint64_t bytes)
{
	uint64_t have = free_cells(t) - (uint64_t)(t->max_chunks - t->nchunks) * CHUNK_CELLS;

	bytes = bytes < RESERVE_CHUNKS * SF_CHUNK ? bytes : RESERVE_CHUNKS * SF_CHUNK;
	for (; have < bytes / CELL && t->nchunks < t->max_chunks / 2 &&
	       t->nunplaced < UNPLACED_MAX && new_chunk(t);
	     have += CHUNK_CELLS)
		;
	if (t->nunplaced)
		place_chunks(t); /* tables_publish tries again on failure */
}

/* Moves what the place holds. */
static void move_holdings(struct place *from, struct place *to)
{
	to->holdings = from->holdings;
	to->n = from->n;
	to->cap = from->cap;
	to->cells = from->cells;
	from->holdings = NULL;
	from->n = from->cap = 0;
	from->cells = 0;
}

int tables_begin(struct tables *t, uint32_t module, uint64_t expected)
{
	struct place *p = &t->places[SF_MODULE_PLACE(module)];
	uint64_t have = free_cells(t);

	p->last_ms = tables_now_ms();
	t->loading = module;
	move_holdings(p, &t->old);
	t->owner = t->modules[SF_MODULE_PLACE(module)].owner;
	expected /= CELL;
	if (expected < p->least)
		expected = p->least;
	if (have < expected && !tables_evict(t, expected - have)) {
		tables_abort(t);
		return -ENOSPC;
	}
	return 0;
}

int tables_make_room(struct tables *t, uint32_t module, uint64_t expected)
{
	int err = tables_begin(t, module, expected);

	tables_abort(t); /* nothing was written */
	return err;
}

struct pack_space tables_space(struct tables *t)
{
	return (struct pack_space){ alloc_cells, t };
}

int tables_publish(struct tables *t, uint32_t module, const struct sf_module *desc)
{
	struct sf_module *m = &t->modules[SF_MODULE_PLACE(module)];
	struct place *p = &t->places[SF_MODULE_PLACE(module)];

	if (t->nunplaced)
		add_spares(t);
	if ((t->nunplaced && place_chunks(t)) || (t->old.n && !tables_retract(t, m))) {
		tables_abort(t);
		return -ENOMEM;
	}
	tables_free_cells(t, &t->old);
	t->loading = 0;
	p->last_ms = tables_now_ms();
	m->flags = desc->flags;
	m->first_page = desc->first_page;
	m->npages = desc->npages;
	m->dir = desc->dir;
	m->rules = desc->rules;
	m->nrules = desc->nrules;
	__atomic_store_n(&m->state, SF_MOD_READY, __ATOMIC_RELEASE);
	return 0;
}

void tables_abort(struct tables *t)
{
	struct place *p = &t->places[SF_MODULE_PLACE(t->loading)];

	if (t->loading) {
		tables_free_cells(t, p);
		move_holdings(&t->old, p);
	}
	t->loading = 0;
}

void tables_set_state(struct tables *t, uint32_t module, enum sf_module_state state,
		      uint32_t retry_ms)
{
	struct sf_module *m = &t->modules[SF_MODULE_PLACE(module)];
	uint64_t now = tables_now_ms();

	t->places[SF_MODULE_PLACE(module)].last_ms = now;
	t->full += state == SF_MOD_FULL;
	m->retry_ms = (uint32_t)(now + retry_ms);
	__atomic_store_n(&m->state, (sf_u32)state, __ATOMIC_RELEASE);
}

void tables_set_owner(struct tables *t, uint32_t module, uint32_t owner)
{
	t->modules[SF_MODULE_PLACE(module)].owner = owner;
}

void tables_pin(struct tables *t, uint32_t module, const struct sf_file_key *key)
{
	t->modules[SF_MODULE_PLACE(module)].key = *key;
	t->places[SF_MODULE_PLACE(module)].pinned = true;
}

void tables_counts(const struct tables *t, struct tables_counts *ret)
{
	*ret = (struct tables_counts){
		.bytes = (uint64_t)__atomic_load_n(&t->nchunks, __ATOMIC_RELAXED) * SF_CHUNK,
		.evicted = __atomic_load_n(&t->evicted, __ATOMIC_RELAXED),
		.idle = __atomic_load_n(&t->idle, __ATOMIC_RELAXED),
		.recycled = __atomic_load_n(&t->recycled, __ATOMIC_RELAXED),
		.full = __atomic_load_n(&t->full, __ATOMIC_RELAXED),
	};
}

uint64_t tables_now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / NUM_MS;
}
