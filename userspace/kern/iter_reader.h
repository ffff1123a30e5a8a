/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a BPF iterator over the mappings or the memory of processes, in a worker. The iterator
 * waits for locks of mappings and for pages of files. A user can make either wait last for ever,
 * with a file on a file system that does not answer (FUSE).
 */
#ifndef SFBPF_KERN_ITER_READER_H
#define SFBPF_KERN_ITER_READER_H

#include "worker/worker.h"

#define ITER_RECORD_MAX 128

/*
 * Reads all records of an iterator, and passes each to take(). size: of a record, ITER_RECORD_MAX
 * at most. 0; -ETIMEDOUT: no progress for some seconds; -EINTR: stopped() returned true (NULL:
 * never); -ECHILD: the iterator could not be read, or not to its end.
 */
int iter_read(struct fork_server *server, int iter_fd, size_t size,
	      void (*take)(void *ctx, const void *record), void *ctx, bool (*stopped)(void),
	      struct worker_totals *totals);

struct iter_patience {
	uint64_t ns; /* how long the worker may be blocked in all: not running, nor queued */
	/*
	 * Called when the worker was blocked for longer, before it is killed. A worker that waits
	 * in the kernel does not end then, so the iterator's program may go on later.
	 */
	void (*over)(void *ctx);
	void *ctx;
};

/*
 * Runs an iterator to its end. Its program writes no records. *ret_ns: how long the worker was
 * blocked. 0; -ETIMEDOUT: for longer than patience->ns; -ECHILD: it could not be read to its end.
 */
int iter_run(struct fork_server *server, int iter_fd, const struct iter_patience *patience,
	     uint64_t *ret_ns, struct worker_totals *totals);

#endif
