/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process context of OpenTelemetry (OTEP 4719): a mapping named OTEL_CTX in which a process
 * says what it is called. It begins with a header that refers to a payload (agent/context.h). For
 * the worker that may read other processes (paths/path_worker.h): any read may block for ever.
 */
#ifndef SFBPF_PATHS_PROCESS_CONTEXT_H
#define SFBPF_PATHS_PROCESS_CONTEXT_H

#include <inttypes.h>
#include <stdint.h>

#define PROCESS_CONTEXT_MOST (64u << 10) /* bytes of a payload */

/*
 * *at: address of the header, where it was before (0: unknown) and where it is now. Returns a
 * descriptor of a copy of the payload with *ret_size bytes; -ENOENT: the process has no context. 0
 * bytes: it has one that cannot be read, because it is being changed or is not of version 2.
 */
int process_context_open(uint32_t pid, uint64_t *at, uint64_t *ret_size);
/* Which file is mapped, as the kernel says of the mapping itself: not of a path. */
struct mapped_id {
	uint64_t dev, ino, ctime_ns;
};

/* A line of the list of mappings, without its newline: start, end, offset, and the file's id. */
#define PROCESS_CONTEXT_MAP  "%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64
#define PROCESS_CONTEXT_SCAN "%" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64

/*
 * Returns a descriptor of *ret_size bytes: a line for each mapping of a regular file with code.
 * -ENOENT, -ENOMEM.
 */
int process_context_maps(uint32_t pid, uint64_t *ret_size);
/* Opens the regular file that is mapped there. Returns a descriptor and its id; or -errno. */
int process_context_mapped(uint32_t pid, uint64_t start, uint64_t end, struct mapped_id *ret);

#endif
