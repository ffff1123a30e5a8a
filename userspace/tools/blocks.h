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
	struct profile *wakers;		/* NULL: not asked for */
	struct block_info *info;	/* by index in the profile; what samples alone stand for has none */
	size_t ninfo, info_cap;
	struct sf_sample *buf;		/* room for the longest record */
	uint64_t ns[SF_OFF_STATES];
};

/* Makes the session's samples go here. After session_open. 0 or -ENOMEM. */
int blocks_open(struct blocks *b, struct session *s, bool wakers);
/* Adds what has been counted since the last call to the session's profile. 0 or -errno. */
int blocks_merge(struct blocks *b);
void blocks_stats(const struct blocks *b, struct run_stats *st);	/* on top of session_stats */
void blocks_close(struct blocks *b);

#endif
