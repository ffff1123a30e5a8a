/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that wait for the loader, and whose turn it is. No lock of its own. */
#ifndef SFBPF_KERN_LOAD_QUEUE_H
#define SFBPF_KERN_LOAD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sfbpf_shared.h"

#define LOAD_PIDS 1024		/* as LOAD_OWNERS, for processes */
#define LOAD_OWNERS 256		/* users that share an entry take turns as one; root has one of its own */

/* A file that waits, or is being read. */
struct load_job {
	struct sf_need need;
	int lane;
	unsigned int tries;	/* children that died of it, or did not get done */
	bool plain;		/* its tables cannot be kept, so its key does not matter */
};

struct load_queue {
	struct load_job *jobs;
	size_t n, cap;
	uint64_t turn, turns[LOAD_OWNERS];	/* by owner: when it had its last turn */
	uint64_t pid_turns[LOAD_PIDS];		/* the same by process */
};

enum load_pick { LOAD_PASS, LOAD_READY, LOAD_AT_ONCE };	/* not now; if it is its turn; whosever turn it is */
typedef enum load_pick (*load_pick_fn)(void *ctx, const struct load_job *job);

int load_queue_push(struct load_queue *q, const struct load_job *job);	/* 0 or -ENOMEM */
/* The next one of those that pick wants, out of the queue. false: there is none. */
bool load_queue_next(struct load_queue *q, load_pick_fn pick, void *ctx, struct load_job *ret);
/* It has its turn now. */
void load_queue_served(struct load_queue *q, const struct sf_need *need);

#endif
