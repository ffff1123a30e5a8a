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
	uint64_t since_ms;		/* when it was loaded */
	uint64_t uses;			/* how often it was looked up of late */
	uint64_t waits_ms;		/* when it was first refused for want of room; 0: it does not wait */
	uint64_t least;			/* cells: it has more than that */
	bool pinned, leaving, id_too;
};

/* Turns, where what is in use does not fit: kern/tables_turn.c. */
#define TURN_OWNERS 256			/* users that share an entry take turns as one; root has one of its own */
struct turns {
	uint64_t owners[TURN_OWNERS];	/* when each had its last one */
	uint32_t next;			/* module: the one who is next; 0: nobody is known to be */
	uint64_t next_ms;		/* since when */
	uint32_t having;		/* the one whose turn it is, until it is loaded */
	uint64_t having_ms;		/* since when */
	uint64_t pause_ms;		/* until then nobody has one */
	uint64_t count;
};

struct chunk {
	uint8_t *mem;			/* NULL: there is none of that number */
	struct cells cells;
	bool placed;			/* programs can find it */
	int fd;				/* of its map, until then */
};

struct tables {
	struct tables_maps maps;
	struct sf_module *modules;
	struct place places[SF_MAX_MODULES];
	struct chunk chunks[SF_MAX_CHUNKS];
	uint32_t nchunks, max_chunks;	/* that exist; at most */
	uint32_t nunplaced;		/* of those that exist */
	int grace_fd;			/* chunk 0 */
	uint32_t loading;		/* id, between tables_begin and _publish or _abort; 0: none */
	uint32_t owner;			/* the one it is charged to */
	bool started;			/* tables_tend has been called */
	bool pending;			/* places[].leaving: the programs have not been waited for yet */
	uint64_t scan_ms, ids_ms;
	struct turns turns;
	pthread_mutex_t hold;
	tables_gone_fn gone;
	void *gone_ctx;
	uint64_t evicted, idle, recycled, full;
};

uint64_t tables_now_ms(void);
/* Makes room for `cells` more for the owner of what is loading. false: there is none to be had. */
bool tables_evict(struct tables *t, uint64_t cells);
/* The module was refused for want of room. */
void tables_wait(struct tables *t, uint32_t module);
/* Whether the one that is loading may take what others use. If it does, its turn begins; it ends when it is known what became of it. */
bool tables_turn(struct tables *t, uint64_t now);
void tables_turn_begin(struct tables *t, uint64_t now);
void tables_turn_end(struct tables *t, uint32_t module);	/* if it is that one's */
/* It came so recently that nobody's turn shall take it. */
bool tables_fresh(const struct place *p, uint64_t now);
/* Gives a place's cells back; nobody may be able to read them. */
void tables_drop_cells(struct tables *t, struct place *p);

/* Empty chunks go back to the kernel, each after a wait for all programs. */
void tables_release_chunks(struct tables *t);

#endif
