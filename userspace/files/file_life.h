/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of a mapped file, from its first sample until its module id goes to another file.
 * file_life.c holds the only table of transitions. The loader (kern/loader.c) reports events and
 * acts on the transitions; all other code only reads the state.
 *
 *                asked           opened           sent               published
 *          NEW -------> OPENING -------> OPEN <--------> CONVERTING ------------> PUBLISHED
 *           |           ^     |          ^  | put back       |                        |
 *   blocked |     asked |     | gone     |  |                | no room                | evicted
 *           v           |     v          |  v no room        v                        v
 *          UNREACHABLE -+     |          |  FULL <-----------+                     EVICTED
 *           ^  |        ^     |          |    |                                       |
 *           |  |        +-----+          |    | still open                            | still open
 *           |  +--- still open ----------+----+---------------------------------------+
 *           |
 *           +-- "no answer", from any state in which an opener has the file or could get it;
 *               "gone", from CONVERTING, if the file was written meanwhile
 *
 * CONVERTING ends as NO_TABLES or NOT_ELF if the file has no tables. A file that cannot be read
 * ends as FAILED. These three are final. UNREACHABLE, FULL and EVICTED: once the retry time has
 * passed, the next sample in the file makes BPF ask for it again. Any state but RETIRED becomes
 * RETIRED when the id is given to another file; frames that carry the id may still exist.
 */
#ifndef SFBPF_FILES_FILE_LIFE_H
#define SFBPF_FILES_FILE_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"

enum file_state {
	FILE_NEW,	  /* BPF asked for its tables */
	FILE_OPENING,	  /* an opener has it (kern/opener.h) */
	FILE_OPEN,	  /* waits for a table worker */
	FILE_CONVERTING,  /* a table worker has it (tables/table_worker.h) */
	FILE_PUBLISHED,	  /* BPF has its tables */
	FILE_EVICTED,	  /* its tables were taken away */
	FILE_FULL,	  /* there was no room for its tables */
	FILE_UNREACHABLE, /* it could not be opened */
	FILE_NO_TABLES,
	FILE_NOT_ELF, /* code that a JIT wrote to a mapped file */
	FILE_FAILED,  /* given up: its readers died, took too long, or could not be started */
	FILE_RETIRED, /* its id belongs to another file, or soon will */
	FILE_STATES
};

enum file_event {
	EVENT_ASKED, /* an opener was asked */
	EVENT_OPENED,
	EVENT_STILL_OPEN, /* asked for again, and its descriptor is still open */
	EVENT_SENT,	  /* a child got it */
	/* Another child is to get it: it was too large for this one, or this one died */
	EVENT_PUT_BACK,
	EVENT_PUBLISHED,
	EVENT_NO_ROOM,
	/*
	 * The process that mapped it is gone, and the next process may just be starting; or it has
	 * other bytes now, and BPF will meet those as another file.
	 */
	EVENT_GONE,
	EVENT_NO_ANSWER, /* its file system did not answer, or there was no opener */
	EVENT_BLOCKED,	 /* opening it could block like another file that has not been answered */
	EVENT_NO_TABLES,
	EVENT_NOT_ELF,
	EVENT_GIVEN_UP,
	EVENT_EVICTED,
	EVENT_ID_REUSED,
	FILE_EVENTS
};

/* Which fields of struct module are final. Each value includes those above it. */
enum file_known {
	KNOWN_ID,     /* id only */
	KNOWN_PATH,   /* and key, size, path, name */
	KNOWN_FILE,   /* and fd, mem, copied */
	KNOWN_TABLES, /* and build_id, rows, rules, bytes, bad_fdes, sframe */
};

/*
 * The state after the event, and the time after which BPF may ask again. False if the event does
 * not apply in this state.
 */
bool file_life_next(enum file_state from, enum file_event event, enum file_state *ret,
		    uint32_t *ret_retry_ms);
/* The module state that BPF sees for a file in that state. */
enum sf_module_state file_life_bpf(enum file_state state);
/* The least that is known of a file that has been in that state. */
enum file_known file_life_known(enum file_state state);

#endif
