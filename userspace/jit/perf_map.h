/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of code that a process generated, from the file that it writes for profilers:
 * /tmp/perf-PID.map, as written by node --perf-basic-prof, JVM agents and CPython's -X perf. Lines
 * are "START SIZE NAME", in hexadecimal. Where they overlap, the later one counts.
 *
 * The file is the one that the process itself would open: below its own root, with its PID in its
 * own namespace. It must be a regular file owned by the process's user. It is read again when it
 * has grown, within limits (jit_files.h). A process that was seen while it ran can still be named
 * after its end.
 *
 * If a process has a dump (jit_dump.h), that is used first. Code may be replaced between sample and
 * report, and stacks have no time. So JIT frames carry an epoch: with a dump, the second of the
 * sample; else what the map had at the time (map_ages.h).
 */
#ifndef SFBPF_JIT_PERF_MAP_H
#define SFBPF_JIT_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "jit/jit_files.h"

#define PERF_MAP_MAX_PROCESSES 256 /* a further one drops one of the user with the most */

struct path_opener;
struct perf_maps;

struct perf_maps *perf_maps_new(void); /* NULL: out of memory */
void perf_maps_free(struct perf_maps *pm);
/* Opens the files; it must outlive pm. Without an opener no file is read. */
void perf_maps_set_opener(struct perf_maps *pm, struct path_opener *opener);

#define JIT_EPOCH_NS NUM_S
#define JIT_EPOCHS   4096u /* the last epoch has no end */

/*
 * Opens what is needed to read the files of the process later. Cheap if the process is known.
 * [from_ns, to_ns]: when the sample was taken, CLOCK_MONOTONIC. Returns the epoch to ask with; 0:
 * the files of the process cannot be read.
 */
uint32_t perf_maps_see(struct perf_maps *pm, uint32_t pid, uint64_t from_ns, uint64_t to_ns);
/*
 * The name of the function at addr, as in the file (foreign bytes), valid until the next call;
 * JIT_REPLACED if the epoch has several.
 * NULL: none. epoch 0: now.
 */
const char *perf_maps_find(struct perf_maps *pm, uint32_t pid, uint64_t addr, uint32_t epoch);
size_t perf_maps_bytes(const struct perf_maps *pm);

#endif
