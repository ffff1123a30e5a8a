/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The samples of some seconds, by target. A window is filled while it is open; closing it asks for names and merges stacks that
 * differ only in process, unless processes are to be kept apart.
 */
#ifndef SFBPF_AGENT_WINDOW_H
#define SFBPF_AGENT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/target.h"
#include "prof/profile.h"
#include "sfbpf_shared.h"

/* What a group's profile holds: samples, or blocked time in nanoseconds, which is its stacks' weight. */
enum window_kind { WINDOW_CPU, WINDOW_OFF_CPU, WINDOW_KINDS };

struct window_group {
	uint32_t target;
	enum window_kind kind;
	struct profile *profile;
};

struct window {
	struct targets *targets;	/* not owned */
	uint64_t start_unix_ns, duration_ns;
	double hz;
	struct window_group *groups;
	size_t ngroups, cap;
	uint64_t samples;		/* in it */
	uint64_t blocks, blocked_ns;	/* in it: blocks that ended, and time, also of those that did not */
	uint64_t dropped;		/* no memory for them */
};

/* zeroed before its first use */
void window_open(struct window *w, struct targets *targets, uint64_t now_unix_ns, double hz);
void window_add(struct window *w, const struct sf_sample *s);
/* Blocked time, all targets' in one profile. 0 or -ENOMEM: then a part is missing, and counted in dropped. */
int window_add_blocks(struct window *w, const struct profile *blocks);
size_t window_bytes(const struct window *w);	/* of memory */
/* 0 or -ENOMEM: then stacks are in it twice or without names, but none is lost. */
int window_close(struct window *w, uint64_t duration_ns, struct symbolizer *symbols, bool keep_pids);
/* All groups of a kind as one. NULL: out of memory. */
struct profile *window_merged(const struct window *w, enum window_kind kind);
/* What a stack counts in a group of that kind: samples or nanoseconds. */
uint64_t window_value(enum window_kind kind, const struct profile_stack *s);
void window_free(struct window *w);

#endif
