/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of processes, which are those of their main threads. A record carries the name of its
 * own thread only. The name of another thread's process comes from /proc/PID/comm, once for each
 * pair of process and thread name: a reused pid rarely has the same thread name.
 */
#ifndef SFBPF_PROF_PROCESS_NAMES_H
#define SFBPF_PROF_PROCESS_NAMES_H

#include <stdint.h>

#include "border/sfbpf_shared.h"

struct process_names;

struct process_names *process_names_new(void); /* NULL: out of memory */
void process_names_free(struct process_names *pn);
/*
 * The name of a record's process: foreign bytes, NUL-terminated, valid until the next call. The
 * record's own comm if the process has ended.
 */
const char *process_names_get(struct process_names *pn, const struct sf_sample *rec);

#endif
