/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code that a process made itself, from the file that it writes for profilers: /tmp/perf-PID.map, as node
 * --perf-basic-prof, JVM agents and CPython's -X perf have it. Lines "START SIZE NAME", hexadecimal; where they
 * overlap, the later one holds.
 *
 * The file is the one that the process itself would open: below its own root, with its PID in its own namespace.
 * It must be a regular file of the process's user. It is read again when it has grown. A process that was seen
 * while it ran is still named after its end.
 *
 * A process with a dump (jit_dump.h) is named from that first. Code may have been replaced between sample and report, and stacks
 * have no time; so JIT frames of such processes carry the second they were sampled in, the epoch.
 */
#ifndef SFBPF_SYM_PERF_MAP_H
#define SFBPF_SYM_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"

#define PERF_MAP_MAX_FILE (128u << 20)	/* bytes read of one file */
#define PERF_MAP_MAX_PROCESSES 256	/* then the one not asked for longest is forgotten */

struct path_opener;
struct perf_maps;

struct perf_maps *perf_maps_new(void);	/* NULL: out of memory */
void perf_maps_free(struct perf_maps *pm);
/* Who opens the files; it must outlive them. Without, there are none. */
void perf_maps_set_opener(struct perf_maps *pm, struct path_opener *opener);

#define JIT_EPOCH_NS NUM_S
#define JIT_EPOCHS 4096u	/* the last one never ends */

/*
 * Takes hold of what is needed to read its files later. Cheap if the process is known. time_ns: of the sample, CLOCK_MONOTONIC.
 * Returns the epoch to ask with; 0: the process has no dump.
 */
uint32_t perf_maps_see(struct perf_maps *pm, uint32_t pid, uint64_t time_ns);
/* The function at addr, as written in the file (foreign bytes), valid until the next call; NULL: none. epoch 0: now. */
const char *perf_maps_find(struct perf_maps *pm, uint32_t pid, uint64_t addr, uint32_t epoch);
size_t perf_maps_bytes(const struct perf_maps *pm);

#endif
