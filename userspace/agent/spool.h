/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bodies between their making and their delivery: a queue, oldest first, in a directory that only one agent uses. Thread-safe.
 *
 * One file an entry, written beside its place, fsync'ed, renamed, and the directory fsync'ed; a header with a CRC-32 of all of it.
 * So after a crash or a power cut an entry is there as a whole or not at all; a damaged one is counted and removed. Bytes and age
 * are bounded: the oldest entry goes first, and is counted. Where the disk takes no more, entries are kept in memory, within the
 * same number of bytes; without a directory all are.
 *
 * The account is a page mapped from the directory, so kill -9 does not lose it:
 *	added = delivered + dropped of all causes + entries that are there.
 * (A power cut may lose the account's last seconds: it is not fsync'ed.)
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
	SPOOL_FULL,		/* dropped: the bound in bytes */
	SPOOL_OLD,		/* dropped: the bound in age */
	SPOOL_REFUSED,		/* dropped: the server said that it is wrong */
	SPOOL_DAMAGED,		/* dropped: checksum */
	SPOOL_UNSURE,		/* dropped: its answer got lost, and it shall not be sent twice (unsure = drop) */
	SPOOL_OTHER_PROTOCOL,	/* dropped: made for a protocol that is not configured any more */
	SPOOL_CRASHED,		/* dropped: was only in memory when the agent was killed */
	SPOOL_OUTCOMES
};

extern const char *const spool_outcome_names[SPOOL_OUTCOMES];

struct spool_opts {
	const char *dir;	/* NULL: in memory */
	uint64_t max_bytes, max_age_ns;
};

struct spool_count {
	uint64_t entries, samples;
};

struct spool_account {
	struct spool_count added, done[SPOOL_OUTCOMES], held;
	uint64_t bytes;			/* held */
	uint64_t in_memory;		/* entries of those held */
	uint64_t oldest_ns;		/* Unix, the window's start; 0: empty */
	uint64_t disk_errors;
};

struct spool;

/* NULL with a text of what is wrong. Counts as OLD what is too old by now. */
struct spool *spool_open(const struct spool_opts *opts, char *err, size_t cap);
void spool_close(struct spool *sp);
int spool_give(struct spool *sp, uid_t uid, gid_t gid);	/* the directory and what is in it. 0 or -errno */
void spool_limits(struct spool *sp, const struct spool_opts *opts);	/* new bounds; dir is not looked at */
/* Takes over b->data, also when it fails. 0; -ENOSPC: dropped (it alone is larger than the bound), counted; -ENOMEM. */
int spool_add(struct spool *sp, struct body *b);
/*
 * The oldest entry, to be sent: it is not dropped meanwhile. *seq names it; *again: it was being sent when an agent died, so the
 * server may have it. 0 (free b->data), -ENOENT: empty.
 */
int spool_take(struct spool *sp, struct body *b, uint64_t *seq, bool *again);
/* Notes on disk that the request is about to leave, so that after a crash it is known that the server may have got it. */
void spool_sending(struct spool *sp, uint64_t seq);
/* The taken entry is through; or stays, to be taken again. */
void spool_done(struct spool *sp, uint64_t seq, enum spool_outcome outcome);
void spool_keep(struct spool *sp, uint64_t seq);
/* Waits until there is an entry, or timeout_ms, or spool_wake. */
void spool_wait(struct spool *sp, int timeout_ms);
void spool_wake(struct spool *sp);
void spool_account(struct spool *sp, struct spool_account *ret);

#endif
