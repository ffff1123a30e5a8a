/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers open mapped files (kern/open_worker.h), because an open may never return. One worker is
 * enough as long as files open at once. While it blocks, another one serves the next files, up to a
 * fixed number, so a blocked open does not delay other files.
 *
 * No descriptor of a file on a user's file system (FUSE) is kept: closing it, even by exiting,
 * sends a request to that file system. Such files are copied into memory, within limits.
 */
#ifndef SFBPF_KERN_OPENER_H
#define SFBPF_KERN_OPENER_H

#include <poll.h>

#include "border/sfbpf_shared.h"
#include "kern/open_worker.h"

#define OPENERS	       40
/* The next file no longer waits for the current one after this time */
#define OPENER_SOON_MS 20

struct opener {
	struct worker worker; /* busy until it has answered or ended */
	struct sf_need need;  /* the current request, if busy */
};

/*
 * Returns the BPF iterator opened_file over a process, or -errno. The descriptor is closed after
 * use.
 */
typedef int (*opener_iter_fn)(void *ctx, pid_t pid);

struct openers {
	struct opener all[OPENERS];
	opener_iter_fn iter; /* set before the first file is opened */
	void *iter_ctx;
};

enum open_may {
	OPEN_NOW,
	OPEN_WAIT, /* another file is being opened */
	/* It would wait for an opener that has not answered for a second: retry later */
	OPEN_BLOCKED,
};

void openers_init(struct openers *o, struct fork_server *server, struct worker_totals *totals);
/* No opener is expected to answer soon, so the next file can be chosen. now: CLOCK_MONOTONIC. */
bool openers_ready(const struct openers *o, uint64_t now);
/* Call if openers_ready(). now: CLOCK_MONOTONIC. */
enum open_may openers_may(const struct openers *o, const struct sf_need *need, uint64_t now);
/* copied: bytes of memory that copies of files use already. 0 or -errno: no process. */
int openers_ask(struct openers *o, const struct sf_need *need, uint64_t copied);
/*
 * Returns the next event of an opener, without waiting: as worker_look, with -EAGAIN if there is
 * none. ret->err is -EINPROGRESS if only the path is known; *fd is set if ret->err is 0.
 */
int openers_look(struct openers *o, struct sf_need *need, struct open_answer *ret, int *fd);
/* Whether reading the file depends only on the kernel and its disks. */
bool opener_is_local(const struct sf_need *need);
bool openers_busy(const struct openers *o); /* a file may still be opened soon */
/* Fills p. Returns the shorter of ms and the time until openers_look must be called */
int openers_poll(const struct openers *o, struct pollfd p[OPENERS], int ms);
void openers_end(struct openers *o);

#endif
