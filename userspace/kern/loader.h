/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From "BPF met a new file" to its published tables, on a thread of its own, so that conversion never
 * holds up the ring's consumer. The file is opened through /proc/PID/map_files: that is the very inode, whatever
 * happened to its name, and in whichever mount namespace; by a child (kern/opener.h). It is read and converted in another one
 * (unwind/table_child.h): one for most files, one more for those that take long. This thread publishes.
 */
#ifndef SFBPF_KERN_LOADER_H
#define SFBPF_KERN_LOADER_H

#include <stdbool.h>

#include "base/fork_server.h"
#include "elf/module.h"
#include "kern/tables.h"
#include "sfbpf_shared.h"
#include "unwind/table_cache.h"

struct loader;

struct loader_parser_totals {
	uint64_t died, late;	/* children: that ended before they were told to; that took too long for a file */
	uint64_t failed;	/* files without tables because of that, for good or for a minute */
	uint64_t cpu_ns;	/* of all children, also those that open */
};

struct loader_totals {
	uint64_t loaded, no_table, gone, bad_fdes;
	uint64_t cached;	/* of those loaded: from disk */
	uint64_t reloaded;	/* conversions of files whose tables had been taken away: not in the sums below, but for build_ns */
	uint64_t rows, rules, bytes, build_ns;
	struct loader_parser_totals parser;
};

struct loader_servers {		/* what makes the processes that do what may not come back */
	struct fork_server *parsers;	/* read files: table_child_main, elf_child_main */
	struct fork_server *openers;	/* open them: open_child_main */
};

/* 0 or -errno; to be stopped in any case. While there is one thread. */
int loader_servers_start(struct loader_servers *s);
void loader_servers_stop(struct loader_servers *s);

/* NULL with errno. All must outlive the loader; cache may be NULL. */
struct loader *loader_new(struct modules *modules, struct tables *tables, struct table_cache *cache, const struct loader_servers *servers);
/* Before loader_start, a file after the other; then loader_settle waits for their tables. 0 or -ENOMEM. */
int loader_load_now(struct loader *l, const struct sf_need *need);
void loader_settle(struct loader *l);
/* The 64-bit vDSO, from our own image. module: the id that its key shall have. */
void loader_load_vdso(struct loader *l, uint32_t module, const struct sf_file_key *key);
/*
 * From time to time the tables of files that nobody has mapped or used for idle_ms are dropped. list: the ids of those that
 * nobody maps at the moment, cap at most; the number of them, or -errno: then it is not asked again. Before loader_start.
 */
typedef long (*loader_unmapped_fn)(void *ctx, uint32_t *ids, size_t cap);
void loader_drop_unmapped(struct loader *l, uint64_t idle_ms, loader_unmapped_fn list, void *ctx);
int loader_start(struct loader *l);	/* 0 or -errno */
/* Hands over to the thread. -ENOMEM: the need is dropped, the file asked for again later. */
int loader_push(struct loader *l, const struct sf_need *need);
bool loader_busy(struct loader *l);	/* files wait for conversion, or are being converted */
void loader_totals(struct loader *l, struct loader_totals *ret);
void loader_free(struct loader *l);	/* stops the thread; what is queued is dropped */

#endif
