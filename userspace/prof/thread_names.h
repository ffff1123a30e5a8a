/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One name for many threads: where THREADS_ALIKE threads of a process have names that differ in
 * numbers only (pool-3-thread-17), they get a common one (pool-N-thread-N).
 */
#ifndef SFBPF_PROF_THREAD_NAMES_H
#define SFBPF_PROF_THREAD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "base/vec.h"

#define THREADS_ALIKE	3
#define THREAD_NAME_MAX 64 /* bytes with NUL; longer names stay as they are */

struct thread_names {	     /* zeroed: empty */
	struct idmap names;  /* process, hash of a name */
	struct idmap common; /* process, hash of the common name */
	uint32_t *counts;    /* names with it, by id in `common` */
	size_t cap;
};

/* A thread's name, not that of its process; any number of times. 0 or -ENOMEM. */
int thread_names_add(struct thread_names *t, uint32_t pid, const char *name);
/* The common name of the thread, in ret; false: it keeps its own. */
bool thread_names_common(const struct thread_names *t, uint32_t pid, const char *name,
			 char ret[THREAD_NAME_MAX]);
void thread_names_free(struct thread_names *t);

#endif
