/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns BPF's request for a new file into published tables, in a separate thread, so that the
 * consumer of the ring never waits. A worker opens the file through /proc/PID/map_files
 * (kern/opener.h). This is the mapped inode itself, even if it was renamed or deleted, and in any
 * mount namespace. Another worker reads and converts it (tables/table_worker.h); slow files have a
 * separate worker. The loader's thread publishes the tables. For the steps and failures see
 * files/file_life.h.
 */
#ifndef SFBPF_KERN_LOADER_H
#define SFBPF_KERN_LOADER_H

#include <stdbool.h>

#include "border/sfbpf_shared.h"
#include "files/module.h"
#include "kern/tables.h"
#include "worker/fork_server.h"
#include "worker/totals.h"

struct loader;

struct loader_totals {
	/* files with tables; files without; files that could not be opened */
	uint64_t loaded, no_table, gone;
	uint64_t rows, rules, bytes; /* sums over loaded files, each counted once */
	uint64_t build_ns;	     /* time of all conversions */
	uint64_t thread_ns;	     /* CPU time of the loader's thread */
	struct worker_totals workers;
};

struct loader_servers { /* make the workers for foreign files */
	/* the server of workers that read files: table_worker_run, elf_worker_main */
	struct fork_server *parsers;
	struct fork_server *openers; /* the server of workers that open files: open_worker_main */
};

/* Call while there is one thread. 0 or -errno; call loader_servers_stop in either case. */
int loader_servers_start(struct loader_servers *s);
void loader_servers_stop(struct loader_servers *s);

/* NULL with errno set. All arguments must outlive the loader. copies_fd: the BPF map `copies`. */
struct loader *loader_new(struct modules *modules, struct tables *tables, int copies_fd,
			  const struct loader_servers *servers);
/*
 * Call these before loader_start, in this order. loader_load_by: the time (CLOCK_MONOTONIC) after
 * which the others do not wait any more. loader_request: queues a file; 0 or -ENOMEM.
 * loader_settle: waits for all tables, or until stopped() returns true. It does not wait for files
 * whose users have no CPU time left; the loader's thread loads what is missing. Files that come
 * after it may get rows from all of their machine code at once (loader_want_code).
 */
void loader_load_by(struct loader *l, uint64_t until_ns);
int loader_request(struct loader *l, const struct sf_need *need);
void loader_settle(struct loader *l, bool (*stopped)(void));
/* Loads the 64-bit vDSO, from this process's image. module: its id. */
void loader_load_vdso(struct loader *l, uint32_t module, const struct sf_file_key *key);
/*
 * Drops the tables of files that no process has mapped or used for idle_ms. list: writes up to cap
 * ids of unmapped files, and returns their number. After an error (-errno) it is not called again.
 * Call before loader_start.
 */
typedef long (*loader_unmapped_fn)(void *ctx, uint32_t *ids, size_t cap);
void loader_drop_unmapped(struct loader *l, uint64_t idle_ms, loader_unmapped_fn list, void *ctx);
/* What proves that an opened file is the requested one. Call before any file is loaded. */
void loader_prove_files(struct loader *l, int (*iter)(void *ctx, pid_t pid), void *ctx);
int loader_start(struct loader *l); /* 0 or -errno */
/* Passes the need to the thread. -ENOMEM: it is dropped. */
int loader_push(struct loader *l, const struct sf_need *need);
/*
 * A stack ended without a row at a file offset: replaces the tables by ones with rows from more
 * machine code, if there is more. First of the function there; if later samples still find no row,
 * of all functions. The consumer's thread.
 */
void loader_want_code(struct loader *l, uint32_t module, uint64_t offset);
/* Passes the request to compare memory with a file (kern/copied.h) to the thread. */
void loader_compare(struct loader *l, const struct sf_copy_need *need);
/* The languages of runtimes with tables: 1 << enum sf_language. Any thread. */
uint32_t loader_languages(const struct loader *l);
/* Some files still wait for their tables, and their users have CPU time left. */
bool loader_busy(struct loader *l);
void loader_totals(struct loader *l, struct loader_totals *ret);
void loader_free(struct loader *l); /* stops the thread; queued files are dropped */

#endif
