/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mapped files are opened by other processes (kern/open_child.h), as that may take for ever. One is enough for files that are
 * opened at once; each that waits has another one take its place, up to a bounded number, so it holds up nobody else.
 *
 * A descriptor of a file in a user's own file system (FUSE) is not kept either: closing it asks that file system, and so does the end of a process.
 * Of such files there are copies in memory, within limits.
 */
#ifndef SFBPF_KERN_OPENER_H
#define SFBPF_KERN_OPENER_H

#include <poll.h>

#include "kern/open_child.h"
#include "sfbpf_shared.h"

#define OPENERS 12
#define OPENER_SOON_MS 20	/* in that time a file is opened, or the next one does not wait for it any longer */

struct opener {
	struct fork_child child;
	struct sf_need need;		/* what it was asked for, if busy */
	bool busy, killed;		/* killed: and not yet gone */
	uint64_t since_ns;
};

struct openers {
	struct fork_server *server;
	struct opener all[OPENERS];
	uint64_t late, died;
	uint64_t spent_ns;		/* CPU time of those that have ended */
};

enum open_may {
	OPEN_NOW,
	OPEN_WAIT,		/* another one is being opened */
	OPEN_NEVER,		/* what it would wait for has not answered for a second: ask again later */
};

enum open_event {
	OPEN_NOTHING,
	OPEN_PATH,		/* its path is known */
	OPEN_DONE,
	OPEN_DIED,
	OPEN_LATE,		/* it took too long, and is given up */
};

void openers_init(struct openers *o, struct fork_server *server);
/* Nothing was asked that may still be answered at once; else there is no point in looking for the next file. now: CLOCK_MONOTONIC. */
bool openers_ready(const struct openers *o, uint64_t now);
enum open_may openers_may(const struct openers *o, const struct sf_need *need, uint64_t now);	/* if they are ready */
/* copied: bytes of memory that the copies of files take already. */
int openers_ask(struct openers *o, const struct sf_need *need, uint64_t copied);	/* 0 or -errno: there is no process */
/* What has become of one of them; does not wait. *fd: with OPEN_DONE and !ret->err. */
enum open_event openers_look(struct openers *o, struct sf_need *need, struct open_answer *ret, int *fd);
/* To read it is to wait for nobody but the kernel and its disks. */
bool opener_is_local(const struct sf_need *need);
bool openers_busy(const struct openers *o);	/* with files that may still be opened soon */
int openers_poll(const struct openers *o, struct pollfd p[OPENERS], int ms);	/* ms, or how long they can be left alone */
uint64_t openers_cpu_ns(const struct openers *o);
void openers_end(struct openers *o);

#endif
