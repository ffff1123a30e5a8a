/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that reads foreign ELF files and makes their tables, and its protocol with the
 * loader: one SOCK_SEQPACKET message per request or answer. The process has no capabilities, no
 * other descriptors, bounded memory, and only the system calls that worker/jail.c allows. A
 * hostile file can kill it, or cause wrong tables for itself and for files that are read later.
 *
 * For each file, struct table_ask is sent with the file's descriptor. The answer is TABLE_LARGE, or
 * TABLE_DONE with an entry (tables/table_entry.h) in the memfd.
 */
#ifndef SFBPF_TABLES_TABLE_WORKER_H
#define SFBPF_TABLES_TABLE_WORKER_H

#include <stdint.h>

#include "tables/pack.h"
#include "worker/jail.h"
#include "worker/worker.h"

enum table_message { TABLE_LARGE = 1, TABLE_DONE };

/* Which machine code without tables is analysed. */
enum table_code {
	CODE_QUICK, /* the first pass, for which samples wait: little of it */
	/* The function at an address, by its symbol, and what it calls; all, if it has none */
	CODE_FUNCTION,
	CODE_ALL,
};

struct table_ask {
	/*
	 * A file with more bytes of tables is answered with TABLE_LARGE and not read; 0: no limit
	 */
	uint64_t max_bytes;
	uint32_t code; /* enum table_code */
	uint32_t zero;
	uint64_t code_at; /* CODE_FUNCTION: a file offset in it */
};

struct table_answer {
	uint32_t message;
	/*
	 * TABLE_DONE: 0 or as pack_file and unwind_file_find; -ENODATA also for another machine's
	 * file
	 */
	int32_t err;
	uint64_t bytes;	    /* size of the entry */
	uint64_t malformed; /* damaged parts of the file that were left out */
	uint64_t code_left; /* bool: CODE_ALL would look at more machine code */
	uint64_t code_soon; /* bool: all stacks need that, so it should not wait for a sample */
	uint64_t cpu_ns;
	uint64_t digest; /* see struct module; made after all else was read */
	uint8_t build_id[20];
	uint32_t build_id_len;
};

/* The main function of such a process. output limits the entry; keep is set here. */
_Noreturn void table_worker_run(int sock, int mem, struct jail_reader limits);
/* Keeps memory from file to file, as the child does. For measurements in another process. */
void table_worker_keep_memory(void);

/* ---- The loader's side ---- */

/* worker_look for this worker, which is not busy after an error. */
int table_worker_look(struct worker *w, struct table_answer *ret);
/*
 * Reads the tables after TABLE_DONE. most: limit of the entry's bytes. As table_entry_read; after
 * -EBADMSG the child is ended too.
 */
int table_worker_read(struct worker *w, const struct table_answer *a, uint64_t most,
		      const struct pack_space *space, struct pack_result *ret);

#endif
