/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory of a process is a copy of a file's code, at the addresses that the file's own
 * mapping would have (bpf/core/copied.bpf.h). A worker compares both (files/text_copy.h).
 *
 * One worker, one question at a time: such memory is rare. Reading it may wait for ever, as a
 * process may handle its own page faults. The worker is then ended, and the memory is taken as no
 * copy.
 */
#ifndef SFBPF_KERN_COPIED_H
#define SFBPF_KERN_COPIED_H

#include "border/sfbpf_shared.h"
#include "worker/worker.h"

/*
 * The most requests that wait, and the most of one user's: for each one whose memory is never
 * read to its end, all later requests wait 5 s.
 */
#define COPIED_QUEUE   64u
#define COPIED_OF_USER 8u

struct copied {
	struct worker worker;
	int map_fd; /* the BPF map `copies` */
	struct copied_request {
		struct sf_copy_need need;
		uint32_t account; /* base/user_account.h */
	} queue[COPIED_QUEUE];
	uint32_t first, n;
};

/* server: makes processes that may read the memory of others (open_worker_rights). */
void copied_init(struct copied *c, int map_fd, struct fork_server *server,
		 struct worker_totals *totals);
/*
 * Queues a request of the user with that account. One that there is no room for is forgotten: BPF
 * asks again when it next meets the memory.
 */
void copied_push(struct copied *c, const struct sf_copy_need *need, uint32_t account);
/*
 * Takes the worker's answer and asks the next question. file: a descriptor of a module's file, or
 * below 0. Returns whether anything happened. One thread.
 */
bool copied_step(struct copied *c, int (*file)(void *ctx, uint32_t module), void *ctx);
void copied_end(struct copied *c);

#endif
