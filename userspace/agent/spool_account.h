/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The counters of a spool: a page in a file of the spool's directory, written through a shared
 * mapping, so that it survives a process that is killed at any instruction. Each step first records
 * what it will do and the resulting counts. Opening the page completes an interrupted step. Used
 * under the spool's lock.
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
	uint64_t sending; /* the entry whose request may have been sent; 0: none */
	struct {	  /* an entry being removed */
		uint64_t on, seq, outcome;
		struct spool_count after; /* what done[outcome] becomes */
	} out;
	struct { /* an entry being added */
		uint64_t on, seq;
		struct spool_count after; /* what added becomes, if the file exists */
	} in;
};

struct account {
	struct account_page *page;
	bool mapped;
	uint64_t was_sending; /* value of page->sending at the time of opening */
};

int account_open(struct account *a, int dir); /* dir -1: in memory. 0 or -errno */
void account_close(struct account *a);
/*
 * Called after opening with the contents of the directory. Entries that are missing were only in
 * memory when the agent died.
 */
void account_resume(struct account *a, const struct spool_count *held, uint64_t damaged,
		    uint64_t last_seq);
/* begins to add an entry and returns its number */
uint64_t account_next(struct account *a, uint64_t samples);
void account_added(struct account *a, bool ok); /* ends adding: ok, or failed */
/* counts an entry without a number */
void account_add(struct account *a, uint64_t samples);
void account_begin(struct account *a, uint64_t seq, enum spool_outcome outcome, uint64_t samples);
void account_end(struct account *a);
void account_sending(struct account *a, uint64_t seq);
bool account_was_sending(const struct account *a, uint64_t seq);
void account_get(const struct account *a, struct spool_count *added,
		 struct spool_count done[SPOOL_OUTCOMES]);
int account_give(int dir, uid_t uid, gid_t gid);

#endif
