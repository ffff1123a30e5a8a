/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF side of the row tables: chunks, and the module descriptors.
 *
 * Everything is written through mmap, because bpf() calls make perf_event programs skip samples on that CPU;
 * only a new chunk (1 MiB) costs two of them. A reader never sees half a table: a module's rows are complete
 * before its descriptor is filled in, and that before its state says so.
 * Used by one thread at a time (the loader's).
 */
#ifndef SFBPF_KERN_TABLES_H
#define SFBPF_KERN_TABLES_H

#include <stdint.h>

#include "sfbpf_shared.h"
#include "unwind/pack.h"

struct tables;

/* Maps the descriptors. budget: bytes of chunks at most. NULL with errno. */
struct tables *tables_new(int chunks_fd, int modules_fd, uint64_t budget);
void tables_free(struct tables *t);

/* Where pack_file writes. */
struct pack_space tables_space(struct tables *t);
/* Makes a module's tables visible to BPF. */
void tables_publish(struct tables *t, uint32_t module, const struct sf_module *desc);
/* A module without tables: SF_MOD_NO_TABLE, SF_MOD_JIT, or SF_MOD_RETRY or _FULL with a time (CLOCK_MONOTONIC, ns). */
void tables_set_state(struct tables *t, uint32_t module, enum sf_module_state state, uint64_t retry_ns);
uint64_t tables_bytes(const struct tables *t);	/* kernel memory of the chunks */

#endif
