/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process context of OpenTelemetry (OTEP 4719): a mapping named OTEL_CTX in which a process
 * says what it is called. It begins with a header that refers to a payload (agent/context.h). For
 * the worker that may read other processes (sym/path_child.h): any read may block for ever.
 */
#ifndef SFBPF_SYM_PROCESS_CONTEXT_H
#define SFBPF_SYM_PROCESS_CONTEXT_H

#include <stdint.h>

#define PROCESS_CONTEXT_MOST (64u << 10) /* bytes of a payload */

/*
 * *at: address of the header, where it was before (0: unknown) and where it is now. Returns a
 * descriptor of a copy of the payload with *ret_size bytes; -ENOENT: the process has no context. 0
 * bytes: it has one that cannot be read, because it is being changed or is not of version 2.
 */
int process_context_open(uint32_t pid, uint64_t *at, uint64_t *ret_size);
/*
 * Returns a descriptor of *ret_size bytes: the lines of /proc/PID/maps that are of files with code.
 * -ENOENT, -ENOMEM.
 */
int process_context_maps(uint32_t pid, uint64_t *ret_size);

#endif
