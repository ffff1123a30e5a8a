/* SPDX-License-Identifier: BSD-2-Clause */
/* What tables.c (memory) and tables_evict.c (who leaves) share. */
#ifndef SFBPF_KERN_TABLES_INTERNAL_H
#define SFBPF_KERN_TABLES_INTERNAL_H

#include <pthread.h>

#include "base/cells.h"
#include "kern/tables.h"

#define CELL 16u			/* bytes: the unit of a location */
#define CHUNK_CELLS (SF_CHUNK / CELL)

struct holding {			/* cells of one module, or that wait for the programs that may read them */
	uint32_t loc, cells;
};

struct place {				/* of a module, by SF_MODULE_PLACE */
	struct holding *holdings;
	size_t n, cap;
	uint64_t cells;
	uint64_t last_ms;		/* when it was seen in use, or loaded */
	bool pinned, leaving, id_too;
};

struct chunk {
	uint8_t *mem;			/* NULL: there is none of that number */
	struct cells cells;
};

struct tables {
	struct tables_maps maps;
	struct sf_module *modules;
	struct place places[SF_MAX_MODULES];
	struct chunk chunks[SF_MAX_CHUNKS];
	uint32_t nchunks, max_chunks;	/* that exist; at most */
	int grace_fd;			/* chunk 0 */
	uint32_t loading;		/* id, between tables_begin and _publish or _abort; 0: none */
	uint32_t owner;			/* the one it is charged to */
	bool started;			/* tables_tend has been called */
	bool pending;			/* places[].leaving: the programs have not been waited for yet */
	uint64_t scan_ms, ids_ms;
	pthread_mutex_t hold;
	tables_gone_fn gone;
	void *gone_ctx;
	uint64_t evicted, idle, recycled, full;
};

uint64_t tables_now_ms(void);
/* Makes room for `cells` more for the owner of what is loading. false: there is none to be had. */
bool tables_evict(struct tables *t, uint64_t cells);
/* Gives a place's cells back; nobody may be able to read them. */
void tables_drop_cells(struct tables *t, struct place *p);

/* Empty chunks go back to the kernel, each after a wait for all programs. */
void tables_release_chunks(struct tables *t);

#endif
