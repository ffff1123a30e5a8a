/* SPDX-License-Identifier: BSD-2-Clause */
#include "kern/tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OPEN_CHUNKS 4	/* chunks with room left that are tried before a new one is made */

struct chunk {
	uint8_t *mem;
	uint32_t id, used;
};

struct tables {
	int chunks_fd;
	struct sf_module *modules;
	uint8_t *mem[SF_MAX_CHUNKS];
	uint32_t nchunks, max_chunks;
	struct chunk open[OPEN_CHUNKS];	/* most recent first */
};

#define MODULES_BYTES (SF_MAX_MODULES * sizeof(struct sf_module))

struct tables *tables_new(int chunks_fd, int modules_fd, uint64_t budget)
{
	struct tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->chunks_fd = chunks_fd;
	t->max_chunks = budget / SF_CHUNK > SF_MAX_CHUNKS ? SF_MAX_CHUNKS : (uint32_t)(budget / SF_CHUNK);
	t->modules = mmap(NULL, MODULES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, modules_fd, 0);
	if (t->modules == MAP_FAILED) {
		free(t);
		return NULL;
	}
	return t;
}

void tables_free(struct tables *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nchunks; i++)
		munmap(t->mem[i], SF_CHUNK);
	munmap(t->modules, MODULES_BYTES);
	free(t);
}

/* The map's own descriptor is not needed once the outer map and the mapping hold it. */
static uint8_t *new_chunk(struct tables *t)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	uint8_t *mem;
	int fd, err;

	if (t->nchunks >= t->max_chunks)
		return NULL;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "sfbpf_chunk", 4, SF_CHUNK, 1, &opts);
	if (fd < 0)
		return NULL;
	mem = mmap(NULL, SF_CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED) {
		close(fd);
		return NULL;
	}
	err = bpf_map_update_elem(t->chunks_fd, &t->nchunks, &fd, BPF_ANY);
	close(fd);
	if (err) {
		munmap(mem, SF_CHUNK);
		return NULL;
	}
	memmove(&t->open[1], &t->open[0], sizeof(t->open) - sizeof(t->open[0]));
	/* Location 0 means "nothing": the first chunk's first 16 bytes stay unused. */
	t->open[0] = (struct chunk){ mem, t->nchunks, t->nchunks ? 0 : 16 };
	t->mem[t->nchunks++] = mem;
	return mem;
}

static void *tables_alloc(void *ctx, uint32_t size, uint32_t *ret_loc)
{
	struct tables *t = ctx;
	struct chunk *c;
	void *mem;
	int i;

	size = (size + 15) & ~15u;
	if (size > SF_CHUNK - 16)
		return NULL;
	for (i = 0; i < OPEN_CHUNKS; i++)
		if (t->open[i].mem && SF_CHUNK - t->open[i].used >= size)
			break;
	if (i == OPEN_CHUNKS) {
		if (!new_chunk(t))
			return NULL;
		i = 0;
	}
	c = &t->open[i];
	mem = c->mem + c->used;
	*ret_loc = c->id << 16 | c->used >> 4;
	c->used += size;
	return mem;
}

struct pack_space tables_space(struct tables *t)
{
	return (struct pack_space){ tables_alloc, t };
}

void tables_publish(struct tables *t, uint32_t module, const struct sf_module *desc)
{
	struct sf_module *m = &t->modules[module % SF_MAX_MODULES];

	m->flags = desc->flags;
	m->first_page = desc->first_page;
	m->npages = desc->npages;
	m->dir = desc->dir;
	m->rules = desc->rules;
	m->nrules = desc->nrules;
	__atomic_store_n(&m->state, SF_MOD_READY, __ATOMIC_RELEASE);
}

void tables_set_state(struct tables *t, uint32_t module, enum sf_module_state state, uint64_t retry_ns)
{
	struct sf_module *m = &t->modules[module % SF_MAX_MODULES];

	m->retry_ns = retry_ns;
	__atomic_store_n(&m->state, (sf_u32)state, __ATOMIC_RELEASE);
}

uint64_t tables_bytes(const struct tables *t)
{
	return (uint64_t)t->nchunks * SF_CHUNK;
}
