/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for futexes and locks of the kernel: which one, how long, and who had it.
 *
 *   block --locks_add--> wait (lock, stack, owner) --locks_look--> names of the lock and the owner
 *
 * The kernel says the address of the futex and a thread that may be its owner (struct sf_off_lock).
 * The functions on the waiter's stack tell what kind of lock it is (prof/lock_kinds.h), and with it
 * whether that thread really is the owner.
 *
 * A lock is an address in a process. A lock in memory that processes share is one in each of them.
 */
#ifndef SFBPF_PROF_LOCKS_H
#define SFBPF_PROF_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "border/sfbpf_shared.h"

#define LOCKS_MOST (1u << 18) /* waits that differ; further ones are left out */

struct lock {
	uint32_t pid;  /* 0: of the kernel */
	uint32_t kind; /* enum sf_lock_kind */
	uint64_t addr;
	char *name;  /* the variable's; NULL: it has none, or the process was gone */
	bool looked; /* its name was looked for */
};

struct lock_owner {
	uint32_t pid; /* the process that waited; 0: tid is of the initial namespace */
	uint32_t tid;
	uint32_t id;	    /* tid in the initial namespace; 0: unknown */
	char comm[SF_COMM]; /* "": the thread was gone */
};

struct lock_sums {
	uint64_t count, ns, max_ns;
};

static inline void lock_sums_add(struct lock_sums *to, const struct lock_sums *more)
{
	to->count += more->count;
	to->ns += more->ns;
	if (more->max_ns > to->max_ns)
		to->max_ns = more->max_ns;
}

struct lock_wait {
	uint32_t lock;	/* index in locks.list */
	uint32_t stack; /* index in the profile */
	uint32_t owner; /* index in locks.owners; unused with SF_OWNER_UNKNOWN */
	uint32_t how;	/* enum sf_owner */
	struct lock_sums sums;
};

struct locks { /* zeroed: empty */
	struct idmap lock_ids, owner_ids, wait_ids;
	struct lock *list;
	struct lock_owner *owners;
	struct lock_wait *waits;
	size_t list_cap, owners_cap, waits_cap;
	size_t owners_seen; /* the names of these were looked for */
	size_t first_open;  /* all locks before it were looked for */
	uint64_t left_out;  /* waits for which there was no room */
};

/* Adds blocks of `pid`. stack: index in the profile. */
void locks_add(struct locks *l, uint32_t pid, uint32_t stack, const struct sf_off_lock *lock,
	       const struct lock_sums *sums);
/*
 * Writes the name of the variable that the lock is. 0; -EAGAIN: it may have one, to be asked for
 * later; another error: it has none.
 */
typedef int (*locks_name_fn)(void *ctx, const struct lock *l, char *ret, size_t cap);
/*
 * Looks for the names of new locks and owners, for about most_ns; the rest is left to the next
 * call. Call it while the processes live.
 */
void locks_look(struct locks *l, locks_name_fn name_of, void *ctx, uint64_t most_ns);
void locks_free(struct locks *l);

#endif
