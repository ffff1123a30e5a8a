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

#include "base/idmap.h"
#include "border/sfbpf_shared.h"
#include "tables/table_worker.h"

#define LOAD_PIDS 1024 /* a user's processes that share an entry count as one */

/* A file that waits for a worker, or is in one. */
struct load_job {
	struct sf_need need;
	int lane;	    /* the worker that it waits for (kern/loader.c) */
	unsigned int tries; /* workers that died of it, or did not finish */
	/* A later pass over a file that has tables: what of its machine code. CODE_QUICK: none */
	enum table_code code;
	uint64_t code_at; /* see struct table_ask */
};

struct load_queue {
	/*
	 * jobs[0, ready) are in the round. jobs[ready, n) are put off: their users had no CPU time
	 * left when they were looked at. Nobody waits for these, and no search looks at them.
	 */
	struct load_job *jobs;
	size_t ready, n, cap;
	uint64_t served;     /* files so far */
	struct idmap owners; /* user_account -> index into of_owner */
	struct load_owner {
		uint64_t served; /* the queue's `served` when one of its files was last served */
		uint64_t cpu_ns, since; /* what is left of its CPU time at `since` */
	} * of_owner;
	size_t owners_cap;
	uint64_t pid_served[LOAD_PIDS]; /* load_owner.served for processes */
};

/* Not now; in its turn; before all others; not before load_queue_readmit */
enum load_pick { LOAD_PASS, LOAD_READY, LOAD_AT_ONCE, LOAD_PUT_OFF };
typedef enum load_pick (*load_pick_fn)(void *ctx, const struct load_job *job);

int load_queue_push(struct load_queue *q, const struct load_job *job); /* 0 or -ENOMEM */
/*
 * Removes the next job that pick accepts from the round, and puts off those for which it returns
 * LOAD_PUT_OFF. false: no job is accepted.
 */
bool load_queue_next(struct load_queue *q, load_pick_fn pick, void *ctx, struct load_job *ret);
/* Takes the jobs back into the round that were put off and whose users have CPU time again. */
void load_queue_readmit(struct load_queue *q);
/* Drops the jobs that are not wanted any more, whether they are put off or not. */
void load_queue_purge(struct load_queue *q, bool (*wanted)(void *ctx, const struct load_job *job),
		      void *ctx);
/*
 * The file of need is wanted by another user. If that user is served sooner than the one for whom
 * it waits, it waits for them from now on. false: it does not, or the file does not wait.
 */
bool load_queue_hand_over(struct load_queue *q, const struct sf_need *need);
/*
 * Whether the user has CPU time left for files. All have as much as a compiler's libraries take
 * many times over, and two percent of a CPU in the long run; root's is not limited.
 */
bool load_queue_may(struct load_queue *q, uint32_t owner);
void load_queue_spend(struct load_queue *q, uint32_t owner, uint64_t cpu_ns);
/* Moves its user and process to the end of the round. */
void load_queue_served(struct load_queue *q, const struct sf_need *need);
void load_queue_free(struct load_queue *q); /* also of a zeroed struct */

#endif
