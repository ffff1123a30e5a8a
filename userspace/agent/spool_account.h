/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What became of every entry of a spool: a page of numbers in the spool's directory, written through a mapping, so that it outlives
 * a process that is killed at any instruction. Each step first notes what it is about to do and what the numbers were;
 * opening the page finishes a step that was begun. Used under the spool's lock.
 */
#ifndef SFBPF_AGENT_SPOOL_ACCOUNT_H
#define SFBPF_AGENT_SPOOL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/spool.h"

struct account_page {
	uint64_t magic;
	uint64_t next_seq;
	struct spool_count added, done[16];
	uint64_t sending;		/* entry whose request may have left; 0: none */
	struct {			/* an entry on its way out */
		uint64_t on, seq, outcome;
		struct spool_count after;	/* of done[outcome] */
	} out;
	struct {			/* an entry on its way in */
		uint64_t on, seq;
		struct spool_count after;	/* of added, if its file is there */
	} in;
};

struct account {
	struct account_page *page;
	bool mapped;
	uint64_t was_sending;		/* when it was opened */
};

int account_open(struct account *a, int dir);	/* dir -1: in memory. 0 or -errno */
void account_close(struct account *a);
/* After opening: what the directory turned out to hold. Whatever is then missing was in memory when the agent died. */
void account_resume(struct account *a, const struct spool_count *held, uint64_t damaged, uint64_t last_seq);
uint64_t account_next(struct account *a, uint64_t samples);	/* begins an entry: its number */
void account_added(struct account *a, bool ok);			/* it is there, or is not */
void account_add(struct account *a, uint64_t samples);		/* counts one that has no number */
void account_begin(struct account *a, uint64_t seq, enum spool_outcome outcome, uint64_t samples);
void account_end(struct account *a);
void account_sending(struct account *a, uint64_t seq);
bool account_was_sending(const struct account *a, uint64_t seq);
void account_get(const struct account *a, struct spool_count *added, struct spool_count done[SPOOL_OUTCOMES]);
int account_give(int dir, uid_t uid, gid_t gid);

#endif
