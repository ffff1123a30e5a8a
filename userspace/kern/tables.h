/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF side of the row tables: chunks of cells, the places of modules, and who has to leave when either is full.
 *
 * Everything is written through mmap, because bpf() calls make perf_event programs skip samples on that CPU. A reader
 * never sees half a table: a module's rows are complete before its descriptor is filled in, and that before its state says so.
 *
 * Taking tables away (tables_evict.c) goes the other way round: the state first; then tables_epoch changes, so that no
 * program that starts from now on remembers them; then all programs that run are waited for (the kernel promises that of an
 * update of a map of maps); only then are cells and places used again. A place's next id is another one, so
 * frames, remembered rules and requests that still carry the old id can be told apart for ever.
 *
 * Used by one thread at a time (the loader's), except where noted.
 */
#ifndef SFBPF_KERN_TABLES_H
#define SFBPF_KERN_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "sfbpf_shared.h"
#include "unwind/pack.h"

struct tables;

struct tables_maps {
	int chunks_fd, modules_fd, files_fd;
	uint32_t *free_ids, *free_head, *free_tail, *epoch;	/* the BPF program's globals */
};

/* What became of a module: its tables were taken away, or also its id (for ever). In the loader's thread. */
typedef void (*tables_gone_fn)(void *ctx, uint32_t module, bool id_too);

/* Any thread may ask for these. */
struct tables_counts {
	uint64_t bytes;		/* kernel memory of the chunks */
	uint64_t evicted;	/* tables taken away for others */
	uint64_t idle;		/* of files that nobody maps any more */
	uint64_t recycled;	/* module ids taken away */
	uint64_t full;		/* files that had to wait because nothing could be taken away */
	uint64_t turns;		/* of these, those that then got the place of others that were in use */
};

/* Maps the descriptors and makes all ids free. budget: bytes of chunks at most. NULL with errno. */
struct tables *tables_new(const struct tables_maps *maps, uint64_t budget, tables_gone_fn gone, void *ctx);
void tables_free(struct tables *t);

/* The id is its place's, and it has no tables yet: what a request must be to be obeyed. */
bool tables_wanted(const struct tables *t, uint32_t module);
/*
 * One module's tables: begin, write (pack_file with tables_space), then publish or abort. expected: bytes, if they were made
 * before. -ENOSPC: there is no room for so much, and none to be had.
 */
int tables_begin(struct tables *t, uint32_t module, uint64_t expected);
/* The same for a module whose tables somebody else makes first: makes room if there is none, so that they are not made in vain. */
int tables_make_room(struct tables *t, uint32_t module, uint64_t expected);
/*
 * Memory for so many bytes, but 4 MB at most, that programs find already, so that publishing need not wait for them. For when nobody waits, as tables
 * are being made. Less where memory is short.
 */
void tables_stock(struct tables *t, uint64_t bytes);
struct pack_space tables_space(struct tables *t);
void tables_publish(struct tables *t, uint32_t module, const struct sf_module *desc);
void tables_abort(struct tables *t);
/* A module without tables: SF_MOD_NO_TABLE, SF_MOD_JIT, or SF_MOD_RETRY or _FULL with a time (CLOCK_MONOTONIC, ns). */
void tables_set_state(struct tables *t, uint32_t module, enum sf_module_state state, uint64_t retry_ns);
/* A file that user space knows first, and that stays: no request could bring it back. */
void tables_pin(struct tables *t, uint32_t module, const struct sf_file_key *key);

/*
 * Looks after recency and free ids; to be called after every load and at least as often as it says: ms from now. Before
 * the first call nothing is taken away.
 */
int tables_tend(struct tables *t);
/* Modules whose file nobody maps any more: their tables and ids go if they were not used for idle_ms. */
void tables_unmapped(struct tables *t, const uint32_t *modules, size_t n, uint64_t idle_ms);
/* While BPF programs run that cannot be waited for (iterators that sleep), nothing is taken away. Any thread. */
void tables_hold(struct tables *t);
void tables_release(struct tables *t);

void tables_counts(const struct tables *t, struct tables_counts *ret);

#endif
