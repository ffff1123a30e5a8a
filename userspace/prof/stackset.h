/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by name, as files and pictures have them: a trie of frames, and on its nodes the values of whoever ran
 * there. Two sides (before and after) share one trie, so that profiles can be compared. Everything is interned:
 * ids of strings, frames, groups, nodes and leaves are dense.
 */
#ifndef SFBPF_PROF_STACKSET_H
#define SFBPF_PROF_STACKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "base/strpool.h"

enum stack_kind {
	STACK_USER, STACK_KERNEL, STACK_INLINED, STACK_JIT,
	STACK_NOTE,		/* no code: "[incomplete:...]", and the following */
	STACK_KINDS
};

#define STACK_RUNNABLE "[runnable]"	/* off-CPU: the leaf of time in which a thread waited for a CPU */
#define STACK_WAKER_MARK "--"		/* off-CPU: behind it come the waker's comm and its stack */

enum stack_side { STACK_AFTER, STACK_BEFORE, STACK_SIDES };	/* one profile alone is AFTER */

#define STACK_ROOT 0u		/* node without a frame */

struct stackset {
	struct strpool *strings;
	struct idmap frames;	/* name << 32 | module, kind */
	struct idmap groups;	/* comm, pid (0: unknown) */
	struct idmap nodes;	/* parent node, frame; parents come before their children */
	struct idmap leaves;	/* node, group */
	uint64_t (*values)[STACK_SIDES];	/* by leaf */
	size_t values_cap;
	uint64_t totals[STACK_SIDES];
	bool no_modules;	/* set before the first frame: modules are dropped, functions are the same if their names are */
};

/* 0 or -ENOMEM, for all of these. Strings must be clean (base/text.h); names without the suffix of their kind. */
int stackset_init(struct stackset *ss);
void stackset_free(struct stackset *ss);	/* also a zeroed one */
int stackset_frame(struct stackset *ss, const char *name, size_t len, const char *module, enum stack_kind kind, uint32_t *ret);
/* n frames, root first. */
int stackset_add(struct stackset *ss, const char *comm, uint32_t pid, const uint32_t *frames, size_t n, enum stack_side side,
		 uint64_t value);

const char *stackset_frame_name(const struct stackset *ss, uint32_t frame);
const char *stackset_frame_module(const struct stackset *ss, uint32_t frame);	/* "": unknown */
enum stack_kind stackset_frame_kind(const struct stackset *ss, uint32_t frame);

/* "_[k]" of folded lines; "" for user code and notes. */
const char *stack_kind_suffix(enum stack_kind kind);
/* The kind that a folded name says it is; *len is shortened by the suffix. */
enum stack_kind stack_kind_of_name(const char *name, size_t *len);

#endif
