/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a BPF iterator over the mappings of all processes, in a child. The kernel waits for the
 * lock of each process's mappings, and a user can keep that lock held as long as they like, by
 * mapping a file on a file system that does not answer (FUSE).
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

#endif
