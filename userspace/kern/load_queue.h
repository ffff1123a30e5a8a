/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that wait for the loader, served round robin by user and process. The caller does the
 * locking.
 */
#ifndef SFBPF_KERN_LOAD_QUEUE_H
#define SFBPF_KERN_LOAD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sfbpf_shared.h"
#include "unwind/table_child.h"

/* Users that share an entry count as one; root has its own entry */
#define LOAD_OWNERS 256
#define LOAD_PIDS   1024 /* the same for processes */

/* A file that waits for a worker, or is in one. */
struct load_job {
	struct sf_need need;
	int lane;	    /* the worker that it waits for (kern/loader.c) */
	unsigned int tries; /* workers that died of it, or did not finish */
	/* A later pass over a file that has tables: what of its machine code. CODE_QUICK: none */
	enum table_code code;
	uint64_t code_at; /* as in struct table_ask */
};

struct load_queue {
	struct load_job *jobs;
	size_t n, cap;
	uint64_t served; /* files so far */
	/* By user: `served` when one of its files was last served */
	uint64_t owner_served[LOAD_OWNERS];
	uint64_t pid_served[LOAD_PIDS]; /* the same by process */
};

/* Not now; in its turn; before all others */
enum load_pick { LOAD_PASS, LOAD_READY, LOAD_AT_ONCE };
typedef enum load_pick (*load_pick_fn)(void *ctx, const struct load_job *job);

int load_queue_push(struct load_queue *q, const struct load_job *job); /* 0 or -ENOMEM */
/* Removes the next job that pick accepts from the queue. false: no such job. */
bool load_queue_next(struct load_queue *q, load_pick_fn pick, void *ctx, struct load_job *ret);
/* Moves its user and process to the end of the round. */
void load_queue_served(struct load_queue *q, const struct sf_need *need);

#endif
