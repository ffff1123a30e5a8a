/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sfbpf agent: blocked time, measured along with the samples. A window contains the blocked time
 * that passed in it, including that of open blocks. The threads that switch pay the cost. Above the
 * limit, blocks are sampled more coarsely. If that is not enough, measuring is suspended for ten
 * minutes.
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
	bool no_memory; /* blocks were dropped; the session and the window count them */
	struct blocks blocks;
	uint64_t state_ns[SF_OFF_STATES]; /* times of the last window */
	uint64_t min_ns;		  /* off-cpu-min, in use */
	uint64_t thin_ns;		  /* offcpu_thin */
	uint64_t bpf_ns;		  /* the programs' time at the end of the last window */
	unsigned int too_much; /* windows in a row above the limit, at the coarsest sampling */
	uint64_t resume_at;    /* CLOCK_MONOTONIC; 0: not suspended */
	struct metrics_off_cpu values;
};

/* 0, or -1 with *err filled. */
int agent_offcpu_start(struct agent_offcpu *o, struct session *s, const struct agent_config *cfg,
		       struct collector_error *err);
void agent_offcpu_stop(struct agent_offcpu *o);
/* Takes an SF_REC_BLOCK. */
void agent_offcpu_take(struct agent_offcpu *o, const struct sf_sample *rec);
void agent_offcpu_tick(struct agent_offcpu *o); /* called between polls */
/* Adds the blocked time of the window that ends now. Polls. */
void agent_offcpu_into(struct agent_offcpu *o, struct window *w);
/* Adapts sampling to its cost when a window ends. over: the agent used too much CPU time. */
void agent_offcpu_limit(struct agent_offcpu *o, const struct agent_config *cfg, uint64_t wall_ns,
			bool over);
void agent_offcpu_mark(const struct agent_offcpu *o, const struct modules *ms);
/* Applies a new configuration: starts, stops, or restarts measuring. */
void agent_offcpu_follow(struct agent_offcpu *o, struct session *s, const struct agent_config *cfg);

#endif
