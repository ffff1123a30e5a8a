/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sfbpf agent: blocked time beside the samples. What a window holds is the time that has passed in it, also that of blocks that are not
 * over. The cost falls on whoever switches: when it is above the limit, blocks are sampled more coarsely, and when that is not
 * enough, nothing is measured for a while.
 */
#ifndef SFBPF_TOOLS_AGENT_OFFCPU_H
#define SFBPF_TOOLS_AGENT_OFFCPU_H

#include "agent/config.h"
#include "agent/metrics.h"
#include "agent/window.h"
#include "tools/blocks.h"

struct agent_offcpu {
	struct session *session;
	bool on;
	bool no_memory;			/* blocks could not be read or kept; counted in the session's and window's dropped */
	struct blocks blocks;
	uint64_t state_ns[SF_OFF_STATES];	/* of the last window */
	uint64_t min_ns;		/* off-cpu-min, in use */
	uint64_t thin_ns;		/* offcpu_thin */
	uint64_t bpf_ns;		/* the programs' time at the end of the last window */
	unsigned int too_much;		/* windows in a row above the limit, as coarse as can be */
	uint64_t resume_at;		/* CLOCK_MONOTONIC; 0: not suspended */
	struct metrics_off_cpu values;
};

/* 0, or the exit code with *err filled. */
int agent_offcpu_start(struct agent_offcpu *o, struct session *s, const struct agent_config *cfg, struct collector_error *err);
void agent_offcpu_stop(struct agent_offcpu *o);
void agent_offcpu_take(struct agent_offcpu *o, const struct sf_sample *rec);	/* a record of a block */
void agent_offcpu_tick(struct agent_offcpu *o);		/* between polls */
void agent_offcpu_into(struct agent_offcpu *o, struct window *w);	/* what the window that ends now has of it; polls */
/* A window is over: over: the agent's own CPU time was above its limit. Acts, and says so. */
void agent_offcpu_limit(struct agent_offcpu *o, const struct agent_config *cfg, uint64_t wall_ns, bool over);
void agent_offcpu_see(const struct agent_offcpu *o, const struct modules *ms);
/* Another configuration: starts, stops, or starts anew. */
void agent_offcpu_follow(struct agent_offcpu *o, struct session *s, const struct agent_config *cfg);

#endif
