/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks by name, as in files and flame graphs: a trie of frames. A leaf is a node with a group
 * (comm, pid) and has values. Two sides (before and after) share the trie, so that profiles can be
 * compared. Everything is interned: ids of strings, frames, groups, nodes and leaves are dense.
 */
#ifndef SFBPF_PROF_STACKSET_H
#define SFBPF_PROF_STACKSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/idmap.h"
#include "base/strpool.h"

enum stack_kind {
	STACK_USER,
	STACK_KERNEL,
	STACK_INLINED,
	STACK_JIT,
	STACK_NOTE, /* not code: "[incomplete:...]", and the following */
	STACK_KINDS
};

/* off-CPU: the leaf of time spent waiting for a CPU */
#define STACK_RUNNABLE	 "[runnable]"
#define STACK_WAKER_MARK "--" /* off-CPU: the waker's comm and stack follow it */

enum stack_side { STACK_AFTER, STACK_BEFORE, STACK_SIDES }; /* a single profile is AFTER */

#define STACK_TEXT_MAX 4096 /* size of a name with its suffix and NUL */
#define STACK_ROOT     0u   /* node without a frame */

struct stackset {
	struct strpool *strings;
	struct idmap frames; /* name << 32 | module, kind */
	struct idmap groups; /* comm, pid (0: unknown) */
	struct idmap nodes;  /* parent node, frame; parents come before their children */
	struct idmap leaves; /* node, group */
	uint32_t *latest;    /* by node: the child that the last stack took; 0: none */
	size_t latest_cap;
	/*
	 * Frames of added stacks for which `nodes` was searched (some 50 ns each, the others 2 ns)
	 */
	uint64_t lookups;
	uint64_t (*values)[STACK_SIDES]; /* by leaf */
	size_t values_cap;
	uint64_t totals[STACK_SIDES];
	/*
	 * Set before the first frame is added: ignores modules, so that functions of one name are
	 * equal
	 */
	bool no_modules;
	const char *only_comm; /* readers leave out threads of other names; NULL: none */
	/*
	 * For readers: stacks begin with the process's name, then the thread's if it is another
	 * one. Only JSON has both.
	 */
	bool by_process;
};

/* Whether readers add stacks of threads of this name. */
static inline bool stackset_takes(const struct stackset *ss, const char *comm)
{
	return !ss->only_comm || !strcmp(comm, ss->only_comm);
}

/*
 * These return 0 or -ENOMEM. Strings must be clean (base/text.h), and names without the suffix of
 * their kind.
 */
int stackset_init(struct stackset *ss);
void stackset_free(struct stackset *ss); /* ss may be zeroed */
int stackset_frame(struct stackset *ss, const char *name, size_t len, const char *module,
		   enum stack_kind kind, uint32_t *ret);
/* The same in two steps: the name is interned in ss->strings, the module here. */
int stackset_module(struct stackset *ss, const char *module, uint32_t *ret);
int stackset_frame_of(struct stackset *ss, uint32_t name, uint32_t module, enum stack_kind kind,
		      uint32_t *ret);
/* The node of a stack of n frames, root first. */
int stackset_path(struct stackset *ss, const uint32_t *frames, size_t n, uint32_t *ret_node);
/*
 * Adds a stack of n frames, root first. -EOVERFLOW: the values of that side would add up to more
 * than 2^64 - 1.
 */
int stackset_add(struct stackset *ss, const char *comm, uint32_t pid, const uint32_t *frames,
		 size_t n, enum stack_side side, uint64_t value);

const char *stackset_frame_name(const struct stackset *ss, uint32_t frame);
const char *stackset_frame_module(const struct stackset *ss, uint32_t frame); /* "": unknown */
enum stack_kind stackset_frame_kind(const struct stackset *ss, uint32_t frame);

/* The suffix in folded lines, like "_[k]"; "" for user code and notes. */
const char *stack_kind_suffix(enum stack_kind kind);
/*
 * The kind according to the suffix of a folded name. *len is reduced by the length of the suffix.
 */
enum stack_kind stack_kind_of_name(const char *name, size_t *len);

#endif
