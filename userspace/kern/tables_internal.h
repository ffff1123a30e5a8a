/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by tables.c (memory) and tables_evict.c (eviction). */
#ifndef SFBPF_KERN_TABLES_INTERNAL_H
#define SFBPF_KERN_TABLES_INTERNAL_H

#include <pthread.h>

#include "base/cells.h"
#include "kern/tables.h"

#define CELL	    16u /* bytes: the unit of a location */
#define CHUNK_CELLS (SF_CHUNK / CELL)

struct holding { /* adjacent cells of one module */
	uint32_t loc, cells;
};

struct place { /* the place of a module, by SF_MODULE_PLACE */
	struct holding *holdings;
	size_t n, cap;
	uint64_t cells;
	uint64_t last_ms; /* time of the last use or load */
	uint64_t uses;	  /* number of lookups, decaying */
	/* Lower bound of the cells it needs: an attempt with fewer failed */
	uint64_t least;
	bool pinned; /* never evicted */
	/*
	 * leaving: being evicted, but running programs may still read its tables. id_too: its id as
	 * well
	 */
	bool leaving, id_too;
};

struct chunk {
	uint8_t *mem; /* NULL: this number is free */
	struct cells cells;
	bool placed; /* programs can find it */
	int fd;	     /* descriptor of its map, until placed */
};

struct tables {
	struct tables_maps maps;
	struct sf_module *modules;
	struct place places[SF_MAX_MODULES];
	uint32_t nplaces; /* the places from there on have never held cells */
	struct chunk chunks[SF_MAX_CHUNKS];
	uint32_t nchunks, max_chunks; /* existing; maximum */
	uint32_t nunplaced;	      /* existing, but not placed */
	int grace_fd;		      /* map of chunk 0, for wait_for_programs */
	/* module id, between tables_begin and _publish or _abort; 0: none */
	uint32_t loading;
	uint32_t owner; /* the user that it is charged to */
	/* Holdings of the tables that tables_publish replaces */
	struct place old;
	bool started; /* tables_maintain has been called */
	bool pending; /* some places are leaving */
	uint64_t scan_ms, ids_ms;
	pthread_mutex_t hold; /* also protects off_cache */
	struct tables_cache off_cache;
	tables_lost_fn lost;
	void *lost_ctx;
	uint64_t evicted, idle, recycled, full;
};

uint64_t tables_now_ms(void);
/*
 * Evicts tables until there may be room for `cells` more, on behalf of t->owner. false: nothing
 * could be evicted.
 */
bool tables_evict(struct tables *t, uint64_t cells);
/*
 * Takes the module's tables away from programs, as others replace them. false: they stay. Programs
 * do not find any until the state is SF_MOD_READY again.
 */
bool tables_retract(struct tables *t, struct sf_module *m);
/* Frees the cells of a place. No program may be able to read them. */
void tables_free_cells(struct tables *t, struct place *p);

/* Frees empty chunks. The kernel waits for all programs for each of them. */
void tables_release_chunks(struct tables *t);

#endif
