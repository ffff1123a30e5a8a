/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of one interval, by target. Closing a window symbolizes it and, unless processes are
 * kept apart, merges stacks that differ only in their process.
 */
#ifndef SFBPF_AGENT_WINDOW_H
#define SFBPF_AGENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/contexts.h"
#include "agent/kubelet.h"
#include "agent/target.h"
#include "base/idmap.h"
#include "border/sfbpf_shared.h"
#include "prof/profile.h"

/*
 * The contents of a group's profile: samples, or blocked time in nanoseconds as the weight of its
 * stacks.
 */
enum window_kind { WINDOW_CPU, WINDOW_OFF_CPU, WINDOW_KINDS };

struct window_group {
	uint32_t target;
	enum window_kind kind;
	struct profile *profile;
	size_t seen; /* stacks whose processes were seen by contexts_see */
};

struct window {
	struct targets *targets; /* not owned */
	uint64_t start_unix_ns, duration_ns;
	double hz;
	struct window_group *groups;
	size_t ngroups, cap;
	struct idmap traces; /* their ids, as two words */
	struct idmap links;  /* id in traces, id of the span; a stack's link is the id plus 1 */
	uint64_t samples;    /* samples in the window */
	/*
	 * Blocks that ended in the window; blocked time in it, including blocks that have not ended
	 */
	uint64_t blocks, blocked_ns;
	uint64_t excluded; /* samples that rules_apply has removed */
	size_t asked;	   /* groups whose pods window_pods has asked for */
	uint64_t dropped;  /* samples or blocks that there was no memory for */
};

/* w must be zeroed before its first use */
void window_open(struct window *w, struct targets *targets, uint64_t now_unix_ns, double hz);
void window_add(struct window *w, const struct sf_sample *s);
/*
 * Adds the blocked time of all targets from one profile. 0, or -ENOMEM: a part is missing and
 * counted in dropped.
 */
int window_add_blocks(struct window *w, const struct profile *blocks);
/*
 * Asks new processes for their contexts; with `closing`, also if some were asked a moment ago. c
 * NULL: nothing is done.
 */
void window_ask(struct window *w, struct contexts *c, bool closing);
/*
 * Asks for the names of containers that are new in the window. With `closing`, also gives their
 * targets the names that are known; before window_name, as names of processes have precedence.
 * k NULL: nothing is done.
 */
void window_pods(struct window *w, struct kubelet *k, bool closing);
/*
 * Gives processes with a context a target of their own names. Without memory for that, the targets
 * stay. c may be NULL.
 */
void window_name(struct window *w, struct contexts *c);
size_t window_bytes(const struct window *w); /* memory used */
/* 0, or -ENOMEM: stacks may then have their processes or no names, but none is lost. */
int window_close(struct window *w, uint64_t duration_ns, struct symbolizer *symbols,
		 bool keep_pids);
/*
 * All groups of a kind merged into one profile. by_target: they stay apart, and the cgroup id of a
 * stack is the index of its target plus 1. NULL: out of memory.
 */
struct profile *window_merged(const struct window *w, enum window_kind kind, bool by_target);
/* The ids of the trace (two words) and of the span, as the process wrote them. link: not 0. */
void window_link(const struct window *w, uint32_t link, uint64_t ret[SF_LINK_WORDS]);
/* The value of a stack in a group of that kind: samples or nanoseconds. */
uint64_t window_value(enum window_kind kind, const struct profile_stack *s);
void window_free(struct window *w);

#endif
