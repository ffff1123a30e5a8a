/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A BPF iterator over all processes' mappings, read by another process: the kernel waits for each one's mappings, and whoever maps a file of a file system
 * that does not answer (FUSE) keeps his locked for as long as he likes.
 */
#ifndef SFBPF_KERN_ITER_READER_H
#define SFBPF_KERN_ITER_READER_H

#include <stddef.h>

#include "base/fork_server.h"

#define ITER_RECORD_MAX 128

/* size: of its records, ITER_RECORD_MAX at most. 0; -ETIMEDOUT: it got no further for some seconds; -ECHILD: it could not be read, or not to its end. */
int iter_read(struct fork_server *server, int iter_fd, size_t size, void (*take)(void *ctx, const void *record), void *ctx);

#endif
