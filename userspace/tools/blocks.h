/* SPDX-License-Identifier: BSD-2-Clause */
/* From the kernel's counts of blocked time to a session's profile. Weights are nanoseconds. */
#ifndef SFBPF_TOOLS_BLOCKS_H
#define SFBPF_TOOLS_BLOCKS_H

#include "tools/session.h"

struct block_info {			/* of a stack of the profile */
	uint64_t max_ns;		/* longest block */
	struct sf_off_hist hist;
};

struct blocks {
	struct session *session;
	struct profile *profile;	/* where blocks go: the session's, unless the caller puts another one here */
	struct profile *wakers;		/* NULL: not asked for */
	bool no_info;			/* the next one is not wanted */
	struct block_info *info;	/* by index in the profile; what samples alone stand for has none */
	size_t ninfo, info_cap;
	struct sf_sample *buf;		/* room for the longest record */
	uint64_t ns[SF_OFF_STATES];
};

/* Makes the session's samples go here. After session_open. 0 or -ENOMEM. */
int blocks_open(struct blocks *b, struct session *s, bool wakers);
/* What the session does with a record of a block, if it has others as well. */
void blocks_take(struct blocks *b, const struct sf_sample *rec);
/* Adds what has been counted since the last call to the profile. 0 or -errno. */
int blocks_merge(struct blocks *b);
void blocks_stats(const struct blocks *b, struct run_stats *st);	/* on top of session_stats */
void blocks_close(struct blocks *b);

#endif
