/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue of bodies that are not delivered yet, oldest first, in a directory that only one agent
 * uses. Thread-safe.
 *
 * Each entry is a file with a header and CRC-32 checksums. It is written under a temporary name,
 * fsync'ed and renamed, and the directory is fsync'ed. So after a crash or power failure an entry
 * is complete or absent; a damaged one is counted and removed. Bytes and age are bounded: the
 * oldest entry is dropped first and counted. If writing to the disk fails, or without a directory,
 * entries are kept in memory, which counts towards the same bound.
 *
 * The account is a page mapped from a file in the directory, so kill -9 does not lose it:
 *
 *   added = delivered + dropped for any cause + held
 *
 * A power failure may lose the last seconds of the account, which is not fsync'ed.
 */
#ifndef SFBPF_AGENT_SPOOL_H
#define SFBPF_AGENT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/body.h"

enum spool_outcome {
	SPOOL_DELIVERED,
	SPOOL_FULL,    /* dropped: the spool was full */
	SPOOL_OLD,     /* dropped: too old */
	SPOOL_REFUSED, /* dropped: refused by the server */
	SPOOL_DAMAGED, /* dropped: wrong checksum */
	/* dropped: the answer was lost, and it must not be sent twice (unsure = drop) */
	SPOOL_UNSURE,
	SPOOL_OTHER_PROTOCOL, /* dropped: encoded for a protocol that is no longer configured */
	SPOOL_CRASHED,	      /* dropped: only in memory when the agent was killed */
	SPOOL_OUTCOMES
};

extern const char *const spool_outcome_names[SPOOL_OUTCOMES];

struct spool_opts {
	const char *dir; /* NULL: in memory */
	uint64_t max_bytes, max_age_ns;
};

struct spool_count {
	uint64_t entries, samples;
};

struct spool_account {
	struct spool_count added, done[SPOOL_OUTCOMES], held;
	uint64_t bytes;	    /* held */
	uint64_t in_memory; /* held entries that are only in memory */
	uint64_t oldest_ns; /* Unix time of the start of the oldest window; 0: empty */
	uint64_t disk_errors;
};

struct spool;

/* Drops entries that are too old by now, as SPOOL_OLD. NULL with a message on failure. */
struct spool *spool_open(const struct spool_opts *opts, char *err, size_t cap);
void spool_close(struct spool *sp);
/* Changes the owner of the directory and its files. 0 or -errno */
int spool_give(struct spool *sp, uid_t uid, gid_t gid);
/*
 * Sets new bounds, which hold when an entry is next added or taken; opts->dir is ignored. Like
 * spool_wait, spool_wake and spool_account, it does not wait for the disk.
 */
void spool_limits(struct spool *sp, const struct spool_opts *opts);
/*
 * Takes over b->data, also on failure. 0; -ENOSPC: larger than the bound, dropped and counted;
 * -ENOMEM: dropped and counted.
 */
int spool_add(struct spool *sp, struct body *b);
/*
 * Takes the oldest entry to send it; it is not dropped meanwhile. *seq identifies it. *again: it
 * was being sent when an agent died, so the server may have it. 0 (the caller frees b->data), or
 * -errno; -ENOENT: empty.
 */
int spool_take(struct spool *sp, struct body *b, uint64_t *seq, bool *again);
/*
 * Records on disk that the request is about to be sent, so that after a crash the next agent knows
 * that the server may have it.
 */
void spool_sending(struct spool *sp, uint64_t seq);
/* Ends the taken entry with an outcome, or puts it back. */
void spool_done(struct spool *sp, uint64_t seq, enum spool_outcome outcome);
void spool_keep(struct spool *sp, uint64_t seq);
/* Waits for an entry or for spool_wake. */
void spool_wait(struct spool *sp);
void spool_wake(struct spool *sp);
/* The state after the last step that is complete. */
void spool_account(struct spool *sp, struct spool_account *ret);
/* Entries whose files are in the directory now, for the next start. */
uint64_t spool_kept(struct spool *sp);

#endif
