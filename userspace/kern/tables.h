/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The row tables that BPF searches: chunks of memory, divided into cells; the places of modules;
 * and the eviction of tables when either runs short.
 *
 * Everything is written through mmap, because bpf(2) calls make perf_event programs skip samples on
 * that CPU. A program never sees a partial table: rows are written first, then the module's
 * descriptor, and then, with release order, its state.
 *
 * Eviction (tables_evict.c) is the reverse. The state changes first. Then tables_epoch changes, so
 * that programs that start later drop what they cached of the tables. Then the kernel waits for all
 * running programs, as it guarantees for an update of a map of maps. Only then are cells and places
 * reused. A reused place gets a new id, so frames, cached rules and requests with the old id are
 * never mistaken for the new file's.
 *
 * Used by one thread at a time (the loader's), except where noted.
 */
#ifndef SFBPF_KERN_TABLES_H
#define SFBPF_KERN_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "files/file_life.h"
#include "tables/pack.h"

struct tables;

/* The map in which programs cache the rules of return addresses; n: its entries, 0: no map */
struct tables_cache {
	int fd;
	uint32_t n;
};

struct tables_maps {
	int chunks_fd, modules_fd, files_fd;
	struct tables_cache cache;
	uint32_t *free_ids, *free_head, *free_tail, *epoch; /* globals of the BPF programs */
};

/* Reports EVENT_EVICTED or EVENT_ID_REUSED of a module. Runs in the loader's thread. */
typedef void (*tables_lost_fn)(void *ctx, uint32_t module, enum file_event event);

struct tables_counts {
	uint64_t bytes;	   /* kernel memory of the chunks */
	uint64_t evicted;  /* tables evicted to make room */
	uint64_t idle;	   /* tables of unmapped files dropped */
	uint64_t recycled; /* module ids whose place was reused */
	/* Number of times that a file found no room and nothing could be evicted */
	uint64_t full;
};

/*
 * Maps the descriptors and makes all ids available. budget: most bytes of chunks. NULL with errno
 * set.
 */
struct tables *tables_new(const struct tables_maps *maps, uint64_t budget, tables_lost_fn lost,
			  void *ctx);
void tables_free(struct tables *t);

/* Whether the id is valid and has no tables, so that a request for it must be served. */
bool tables_missing(const struct tables *t, uint32_t module);
bool tables_has(const struct tables *t, uint32_t module); /* whether the id is valid */
/*
 * Makes one module's tables: begin, write (pack_file with tables_space), then publish or abort. A
 * module may have tables already: publish replaces them, and programs do not find any while they
 * are replaced (some milliseconds).
 * expected: bytes, if known from an earlier attempt. -ENOSPC: there is no room, and nothing can be
 * evicted.
 */
int tables_begin(struct tables *t, uint32_t module, uint64_t expected);
/* Makes room for them before the conversion. Returns as tables_begin. */
int tables_make_room(struct tables *t, uint32_t module, uint64_t expected);
/*
 * Creates chunks for `bytes`, 4 MB at most, and makes them visible to programs, so that publishing
 * need not wait for programs. Call while tables are being converted. Creates fewer if memory is
 * short.
 */
void tables_reserve(struct tables *t, uint64_t bytes);
struct pack_space tables_space(struct tables *t);
/* 0, or -ENOMEM: the kernel has no memory, and the tables were aborted. */
int tables_publish(struct tables *t, uint32_t module, const struct sf_module *desc);
void tables_abort(struct tables *t);
/*
 * Sets the state of a module without tables, for BPF. retry_ms: the time after which BPF repeats
 * the request in SF_MOD_RETRY and SF_MOD_FULL.
 */
void tables_set_state(struct tables *t, uint32_t module, enum sf_module_state state,
		      uint32_t retry_ms);
/* The user to whom the tables are charged. */
void tables_set_owner(struct tables *t, uint32_t module, uint32_t owner);
/*
 * Sets the key of a file that has no inode (the vDSO), and keeps its tables, as no request could
 * bring them back.
 */
void tables_pin(struct tables *t, uint32_t module, const struct sf_file_key *key);

/*
 * Tracks the use of modules and free ids. Call after every load, and again after the returned time,
 * ms. Nothing is evicted before the first call.
 */
int tables_maintain(struct tables *t);
/*
 * Drops tables and ids of these modules, whose files are unmapped, if they were not used for
 * idle_ms.
 */
void tables_unmapped(struct tables *t, const uint32_t *modules, size_t n, uint64_t idle_ms);
/* BPF looks up the file of each mapping again. */
void tables_forget_mappings(struct tables *t);
/* Sets the cache of the off-CPU programs. { -1, 0 }: it is about to be closed. Any thread. */
void tables_off_cache(struct tables *t, struct tables_cache cache);
/*
 * Nothing is evicted between these calls: for BPF programs that eviction cannot wait for (iterators
 * that sleep). Any thread.
 */
void tables_hold(struct tables *t);
void tables_release(struct tables *t);

/* Any thread. */
void tables_counts(const struct tables *t, struct tables_counts *ret);

#endif
