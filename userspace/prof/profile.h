/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples in, distinct stacks with counts out. Two samples have the same stack if comm, pid,
 * cgroup, all frame words, stop reason, flags, group, state and waker (off-CPU) and, if they are
 * kept, tid and CPU are equal. Frames are kept as words: they are symbolized when a report is made,
 * because a file may be loaded only after its first sample.
 */
#ifndef SFBPF_PROF_PROFILE_H
#define SFBPF_PROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "files/module.h"
#include "prof/thread_names.h"
#include "sym/symbolizer.h"

struct profile;

/* A view of a stack, valid until the next profile_add, _merge or _reset */
struct profile_stack {
	/* n_user words, leaf first; then n_kernel addresses, leaf first */
	const uint64_t *frames;
	const char *comm;	/* a name from the kernel: foreign bytes; NUL-terminated */
	const char *process;	/* the process's name, likewise; comm if it is unknown */
	uint64_t count, weight; /* samples; sum of their weights */
	uint64_t cgroup_id;
	uint32_t pid, tid; /* tid: 0 unless profile_by_thread */
	uint16_t n_user, n_kernel;
	uint8_t stop, flags; /* enum sf_stop, SF_SAMPLE_* */
	uint8_t state;	     /* off-CPU: enum sf_off_state */
	uint8_t lang_stop;   /* enum sf_stop of frames of a language */
	uint8_t group;	     /* the number of its event; calls: enum calls_group */
	/*
	 * off-CPU: index of a stack in the profile of wakers, plus 1; 0: unknown. Stacks in that
	 * profile refer to the same profile.
	 */
	uint32_t waker;
	uint32_t cpu1; /* CPU plus 1; 0: not kept */
	uint32_t link; /* the caller's number of a span (struct profile_times); 0: none */
};

struct profile *profile_new(void); /* NULL: out of memory */
void profile_free(struct profile *p);
/* Keeps the threads of a process apart; call it before the first sample */
void profile_by_thread(struct profile *p);
void profile_reset(struct profile *p); /* empties p but keeps its memory */

/*
 * The record's length must have been checked (n_user + n_kernel words follow it).
 * 0; -EINVAL: counts or stop reason out of range; -ENOMEM: not counted.
 */
int profile_add(struct profile *p, const struct sf_sample *rec);

/* The counts of a record that is not one sample. */
struct profile_times {
	uint64_t count, weight;
	uint32_t waker, cpu1, link; /* see struct profile_stack */
	uint8_t state, group;
};

/* profile_add with other counts; *ret_index (may be NULL) is the index of the stack. */
int profile_add_times(struct profile *p, const struct sf_sample *rec, const struct profile_times *t,
		      size_t *ret_index);
/* Whether profile_add_times would add the record to an existing stack. */
bool profile_has(const struct profile *p, const struct sf_sample *rec,
		 const struct profile_times *t, size_t *ret_index);
/* Replaces the weight of stack i. */
void profile_set_weight(struct profile *p, size_t i, uint64_t weight);
/* Sets the name of a process, for profile_stack. 0 or -ENOMEM. */
int profile_name_process(struct profile *p, uint32_t pid, const char *name);
/* SF_COMM bytes; NULL: unknown. Valid until the next name is set. */
const char *profile_process_name(const struct profile *p, uint32_t pid);
/*
 * Adds all of src to dst. A live view keeps a ring of one-second profiles and merges the last N. 0
 * or -ENOMEM.
 */
int profile_merge(struct profile *dst, const struct profile *src);
/*
 * Merges stacks that differ only in process, thread and cgroup, with 0 for all three. Stacks with
 * JIT code keep their pid, which their names depend on.
 */
void profile_forget_processes(struct profile *p);
/* profile_merge, but all stacks get this cgroup id. */
int profile_merge_cgroup(struct profile *dst, const struct profile *src, uint64_t cgroup_id);
/* Adds stack i of src only. */
int profile_merge_one(struct profile *dst, const struct profile *src, size_t i);
/* Adds stack i of src with other counts, state and group, as one of any thread of its process. */
int profile_merge_part(struct profile *dst, const struct profile *src, size_t i,
		       const struct profile_times *t);

/* Adds the names of all threads, but not those that are the name of their process. 0 or -ENOMEM. */
int profile_thread_names(const struct profile *p, struct thread_names *ret);
/* Gives threads their common names. Call it after the last sample. */
void profile_common_names(struct profile *p, const struct thread_names *t);

/* Calls modules_mark for all user frames */
void profile_mark(const struct profile *p, const struct modules *ms);

size_t profile_count(const struct profile *p); /* distinct stacks */
uint64_t profile_samples(const struct profile *p);
size_t profile_bytes(const struct profile *p);
void profile_stack(const struct profile *p, size_t i, struct profile_stack *ret);
/*
 * The symbol ids of a stack, parallel to its frames. They are stored with the stack once all are
 * final, so p may be used with one symbolizer only. Valid as long as a profile_stack. NULL: out of
 * memory.
 */
const uint32_t *profile_symbols(struct profile *p, size_t i, struct symbolizer *sz);
/* Sets the symbol ids of a stack, one for each of its frames. 0 or -ENOMEM. */
int profile_set_symbols(struct profile *p, size_t i, const uint32_t *ids);
/*
 * Symbolizes all stacks. Done before p is merged into others, which then need not do it again. 0 or
 * -ENOMEM.
 */
int profile_resolve(struct profile *p, struct symbolizer *sz);
/* profile_resolve, and no name changes later, final or not */
int profile_settle(struct profile *p, struct symbolizer *sz);

/*
 * A frame as it is shown. Functions inlined at its address are frames too; they come before the
 * function that contains them (leaf first).
 */
struct profile_frame {
	uint64_t word; /* frame word, or kernel address */
	uint32_t symbol;
	bool kernel, inlined;
};

struct profile_frames { /* zeroed: empty; the caller frees list */
	struct profile_frame *list;
	size_t n, cap;
};

/*
 * The frames of stack i, leaf first: the kernel part, then the user part, as selected. 0 or
 * -ENOMEM.
 */
int profile_frames(struct profile *p, size_t i, struct symbolizer *sz, bool user, bool kernel,
		   struct profile_frames *ret);
/* Requests inlined frames and lines (symbolizer_want_debug) for all frames. 0 or -ENOMEM. */
int profile_want_debug(const struct profile *p, struct symbolizer *sz);

/*
 * The counts of stacks and frames for --stats. They add up: user_total = sum of stops; frames = sum
 * of all sources.
 */
struct profile_account {
	uint64_t samples;	       /* received */
	uint64_t samples_without_user; /* kernel threads, and inside execve() */
	uint64_t user_total;	       /* samples of tasks that have a user part */
	/* [SF_STOP_COMPLETE] is `complete`, the rest incomplete by reason */
	uint64_t stops[SF_STOP_MAX];
	/* User frames, each multiplied by the count of its stack */
	uint64_t frames, sframe, eh_frame, code, fp, jit;
	/* Indexed by enum sf_language. complete: all frames of the language were found */
	struct profile_language {
		uint64_t stacks, frames, unnamed;
		uint64_t stops[SF_STOP_MAX]; /* see the stops above */
	} languages[SF_LANG_MAX];
};

/* FRAME_LANG: plus enum sf_language */
enum frame_source { FRAME_SFRAME, FRAME_EH_FRAME, FRAME_CODE, FRAME_FP, FRAME_JIT, FRAME_LANG };

#define FRAME_SOURCES (FRAME_LANG + SF_LANG_MAX)

void profile_account(const struct profile *p, const struct modules *ms,
		     struct profile_account *ret);
/*
 * The unwind method that a frame counts under. With a row: the source of the row. In JIT code: jit.
 * Otherwise fp if the frame pointer found the frame, else the method that found it, which is the
 * source of the frame below it.
 */
enum frame_source profile_frame_source(const struct modules *ms, uint64_t frame,
				       enum frame_source below);

/* Whether the stack has its outermost frame. */
static inline bool profile_at_root(uint8_t stop)
{
	return stop == SF_STOP_COMPLETE || stop == SF_STOP_BRIDGED;
}

const char *profile_stop_name(uint8_t stop); /* "read_fault"; "?": out of range */
const char *profile_stop_help(uint8_t stop);
const char *profile_lost_name(unsigned int cause);
const char *profile_lost_help(unsigned int cause);

#endif
