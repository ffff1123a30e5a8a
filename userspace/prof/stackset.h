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

/* The label that has a container's name, in the agent's windows and in pprof of `record` */
#define STACK_LABEL_CONTAINER "container.name"

#define STACK_CHOICE_LABELS 16
#define STACK_LABEL_BYTES   256 /* bytes of a value, with its NUL */

enum stack_by { STACK_BY_THREAD, STACK_BY_PROCESS, STACK_BY_HOST, STACK_BY_LABEL };

#define LABEL_SERVICE "service.name"

/*
 * What readers take from files, and the names that stacks begin with. Labels ("service.name") are
 * those of the agent's windows.
 */
struct stack_choice {
	const char *comm; /* NULL: threads of all names */
	struct {
		const char *name, *value;
	} labels[STACK_CHOICE_LABELS]; /* a stack must have them all */
	size_t n;
	/*
	 * STACK_BY_PROCESS: only JSON has its name; the thread's comes next if it is another one.
	 * STACK_BY_HOST, STACK_BY_LABEL: its value, then the thread's name.
	 */
	enum stack_by by;
	const char *by_label; /* STACK_BY_LABEL: name of the label */
	bool lines;	      /* names have lines if the file has them */
	/* STACK_BY_HOST: that of the file, if it says none itself; NULL: unknown */
	const char *host;
	/* Set by readers: which of labels any stack of the file had; bit n: by_label */
	uint32_t found;
};

/* What the labels of one stack said so far; zeroed before the first one. */
struct stack_labels {
	uint32_t match;
	char by[STACK_LABEL_BYTES]; /* the value of by_label */
};

#define STACK_TEXT_MAX 4096 /* size of a name with its suffix and NUL */
#define STACK_ROOT     0u   /* node without a frame */

#define STACK_RENAMES 32

/* Other names for functions and threads while they are added. */
struct stack_renames {
	struct {
		const char *from, *to; /* names; the first one is a glob */
	} list[STACK_RENAMES];
	size_t n;
	uint32_t *known; /* new name + 1, by string; 0: not looked up yet */
	size_t cap;
};

/*
 * One file, of which readers take the places of frames instead of all names. A frame there has
 * STACK_PLACE as its module and the offset in the file, in hexadecimal, as its name. A frame in
 * another build of the file has STACK_OTHER_BUILD as its module and the build-id as its name. The
 * module of any other frame says where it is.
 */
struct stack_file {
	const char *name;  /* last component of its path */
	char build_id[80]; /* hexadecimal */
};

#define STACK_PLACE	  "place"
#define STACK_OTHER_BUILD "other build"
#define STACK_NO_ADDRESS  "no address"
#define STACK_ELSEWHERE	  "elsewhere"

struct stackset {
	struct strpool *strings;
	struct idmap frames; /* name << 32 | module, kind */
	struct idmap groups; /* comm, pid (0: unknown) */
	struct idmap nodes;  /* parent node, frame; parents come before their children */
	struct idmap leaves; /* node, group */
	uint32_t *latest;    /* indexed by node: the child that the last stack took; 0: none */
	size_t latest_cap;
	/*
	 * Frames of added stacks for which `nodes` was searched (some 50 ns each, the others 2 ns)
	 */
	uint64_t lookups;
	uint64_t (*values)[STACK_SIDES]; /* indexed by leaf */
	size_t values_cap;
	uint64_t totals[STACK_SIDES];
	uint32_t added; /* the leaf of the last stackset_add */
	/*
	 * Set before the first frame is added: ignores modules, so that functions of one name are
	 * equal
	 */
	bool no_modules;
	/* Set before the first frame is added, too. NULL: names of all frames */
	const struct stack_file *file;
	struct stack_choice choice;
	struct stack_renames *renames; /* NULL: none */
	/* Where stackset_add keeps values instead of adding them up; NULL: not kept */
	struct stack_log *log;
};

struct stack_log {
	struct stack_logged {
		uint32_t leaf;
		uint64_t value;
	} * list;
	size_t n, cap;
};

/*
 * These return 0 or -ENOMEM. Strings must be clean (base/text.h), and names without the suffix of
 * their kind.
 */
int stackset_init(struct stackset *ss);
void stackset_free(struct stackset *ss); /* ss may be zeroed */
int stackset_frame(struct stackset *ss, const char *name, size_t len, const char *module,
		   enum stack_kind kind, uint32_t *ret);
/* stackset_frame in two steps: the name is interned in ss->strings, the module here. */
int stackset_module(struct stackset *ss, const char *module, uint32_t *ret);
int stackset_frame_of(struct stackset *ss, uint32_t name, uint32_t module, enum stack_kind kind,
		      uint32_t *ret);
/*
 * A frame as ss->file wants it. name, build_id: of the file that the frame is in; "": none is
 * known. 0 or -ENOMEM.
 */
int stackset_place(struct stackset *ss, const char *name, const char *build_id, uint64_t offset,
		   uint32_t *ret);
int stackset_no_place(struct stackset *ss, enum stack_kind kind, const char *why, uint32_t *ret);
/* Whether the frame is a place in ss->file, and the offset there. */
bool stackset_is_place(const struct stackset *ss, uint32_t frame, uint64_t *ret_offset);
/* The node of a stack of n frames, root first. */
int stackset_path(struct stackset *ss, const uint32_t *frames, size_t n, uint32_t *ret_node);
/*
 * Adds a stack of n frames, root first. -EOVERFLOW: the values of that side would add up to more
 * than 2^64 - 1.
 */
int stackset_add(struct stackset *ss, const char *comm, uint32_t pid, const uint32_t *frames,
		 size_t n, enum stack_side side, uint64_t value);

/* Replaces the names that stacks begin with. to: by string. 0 or -ENOMEM. */
int stackset_rename_groups(struct stackset *ss, const uint32_t *to);
size_t stackset_bytes(const struct stackset *ss); /* bytes of memory */
/*
 * Adds the leaves of src with these values, in place of its own, to dst; those of 0 are left out.
 */
int stackset_copy(struct stackset *dst, const struct stackset *src,
		  const uint64_t (*values)[STACK_SIDES]);

/* Whether the choice needs the value of a label of that name. For readers. */
bool stack_choice_wants(const struct stack_choice *c, const char *name, size_t len);
void stack_choice_label(struct stack_choice *c, struct stack_labels *l, const char *name,
			const char *value);
bool stack_choice_takes(const struct stack_choice *c, const struct stack_labels *l,
			const char *comm);
/*
 * The name that a stack begins with: its thread's, or else what the choice says. host: that of the
 * file. Not NULL.
 */
const char *stack_choice_root(const struct stack_choice *c, const struct stack_labels *l,
			      const char *comm, const char *host, char buf[STACK_LABEL_BYTES]);

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
