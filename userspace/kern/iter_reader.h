/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a BPF iterator over the mappings or the memory of all processes, in a child. The kernel
 * waits for the lock of each process's mappings, and for pages of files. A user can keep both
 * waiting as long as they like, with a file on a file system that does not answer (FUSE).
 */
#ifndef SFBPF_KERN_ITER_READER_H
#define SFBPF_KERN_ITER_READER_H

#include "worker/worker.h"

#define ITER_RECORD_MAX 128

/*
 * size: of a record, ITER_RECORD_MAX at most. 0; -ETIMEDOUT: no progress for some seconds; -EINTR:
 * stopped() returned true (NULL: never); -ECHILD: the iterator could not be read, or not to its
 * end.
 */
int iter_read(struct fork_server *server, int iter_fd, size_t size,
	      void (*take)(void *ctx, const void *record), void *ctx, bool (*stopped)(void),
	      struct worker_totals *totals);

struct iter_patience {
	uint64_t ns; /* how long the child may be blocked in all: not running, nor queued */
	/*
	 * Called when it was blocked for longer, before it is killed. Its program may go on at any
	 * time after that: while the child waits in the kernel, it does not end.
	 */
	void (*over)(void *ctx);
	void *ctx;
};

/*
 * Reads an iterator whose program writes no records to its end. *ret_ns: how long the child was
 * blocked. 0; -ETIMEDOUT: too long; -ECHILD: as above.
 */
int iter_run(struct fork_server *server, int iter_fd, const struct iter_patience *patience,
	     uint64_t *ret_ns, struct worker_totals *totals);

#endif
