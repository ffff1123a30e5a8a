/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples in, distinct stacks with counts out. Two samples are the same stack if comm, pid, cgroup, all frame words, stop
 * reason, flags, (off-CPU) state and waker and, if they are kept, tid and CPU are equal. Frames stay words here: names and sources
 * are asked for when a report is made, because the files may be loaded only after their first sample.
 */
#ifndef SFBPF_PROF_PROFILE_H
#define SFBPF_PROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/module.h"
#include "sfbpf_shared.h"
#include "sym/symbolizer.h"

struct profile;

struct profile_stack {			/* a view; valid until the next profile_add, _merge or _reset */
	const uint64_t *frames;		/* n_user words, leaf first; then n_kernel addresses, leaf first */
	const char *comm;		/* as the kernel gave it: foreign bytes; NUL-terminated */
	uint64_t count, weight;		/* samples; sum of their weights */
	uint64_t cgroup_id;
	uint32_t pid, tid;		/* tid: 0 unless profile_by_thread */
	uint16_t n_user, n_kernel;
	uint8_t stop, flags;		/* enum sf_stop, SF_SAMPLE_* */
	uint8_t state;			/* off-CPU: enum sf_off_state */
	uint32_t waker;			/* off-CPU: a stack of the profile of wakers, plus 1, also in that one itself; 0: not known */
	uint32_t cpu1;			/* CPU plus 1; 0: not kept */
};

struct profile *profile_new(void);	/* NULL: out of memory */
void profile_free(struct profile *p);
void profile_by_thread(struct profile *p);	/* threads of a process are told apart; before the first sample */
void profile_reset(struct profile *p);	/* empty, memory kept */

/*
 * The record's length must have been checked (n_user + n_kernel words follow it).
 * 0; -EINVAL: counts or stop reason out of range; -ENOMEM: not counted.
 */
int profile_add(struct profile *p, const struct sf_sample *rec);

/* What a record stands for when it is not one sample. */
struct profile_times {
	uint64_t count, weight;
	uint32_t waker, cpu1;		/* as in struct profile_stack */
	uint8_t state;
};

/* The same; *ret_index (may be NULL) is the stack's. */
int profile_add_times(struct profile *p, const struct sf_sample *rec, const struct profile_times *t, size_t *ret_index);
/* Whether that would be added to a stack that is there. */
bool profile_has(const struct profile *p, const struct sf_sample *rec, const struct profile_times *t, size_t *ret_index);
/* Adds all of src to dst: a live view keeps a ring of one-second profiles and merges the last N. 0 or -ENOMEM. */
int profile_merge(struct profile *dst, const struct profile *src);
/*
 * The same, but what ran where does not matter: stacks that differ in pid and cgroup only become one, with 0 for both. Those
 * with JIT code keep their pid, which their names depend on.
 */
int profile_merge_code(struct profile *dst, const struct profile *src);
/* One stack of it. */
int profile_merge_one(struct profile *dst, const struct profile *src, size_t i);

void profile_see(const struct profile *p, const struct modules *ms);	/* modules_see for all frames it holds */

size_t profile_count(const struct profile *p);		/* distinct stacks */
uint64_t profile_samples(const struct profile *p);
size_t profile_bytes(const struct profile *p);
void profile_stack(const struct profile *p, size_t i, struct profile_stack *ret);
/*
 * The stack's symbol ids, parallel to its frames. Kept with the stack once all of them are final, so p
 * belongs to one symbolizer. Valid like a profile_stack. NULL: out of memory.
 */
const uint32_t *profile_symbols(struct profile *p, size_t i, struct symbolizer *sz);
/* All of them at once: before a profile is merged into others, which then need not ask again. 0 or -ENOMEM. */
int profile_resolve(struct profile *p, struct symbolizer *sz);

/* A frame as it is shown. Those inlined at a place are frames of their own, which come before (leaf first) its function. */
struct profile_frame {
	uint64_t word;			/* frame word, or the kernel's address */
	uint32_t symbol;
	bool kernel, inlined;
};

struct profile_frames {			/* zeroed: empty; list is the caller's to free */
	struct profile_frame *list;
	size_t n, cap;
};

/* Stack i, leaf first: the kernel part, then the user part, if they are wanted. 0 or -ENOMEM. */
int profile_frames(struct profile *p, size_t i, struct symbolizer *sz, bool user, bool kernel, struct profile_frames *ret);
/* Wants inlined frames and lines (symbolizer_want_debug) of all frames. 0 or -ENOMEM. */
int profile_want_debug(const struct profile *p, struct symbolizer *sz);

/* What --stats says about stacks and frames. Adds up: user_total = sum of stops; frames = the sum of the four sources. */
struct profile_account {
	uint64_t samples;		/* received */
	uint64_t samples_without_user;	/* kernel threads */
	uint64_t user_total;		/* samples of tasks that have a user part */
	uint64_t stops[SF_STOP_MAX];	/* [SF_STOP_COMPLETE] is `complete`, the rest incomplete by reason */
	uint64_t frames, sframe, eh_frame, fp, jit;	/* user frames, each times its stack's count */
};

enum frame_source { FRAME_SFRAME, FRAME_EH_FRAME, FRAME_FP, FRAME_JIT };

void profile_account(const struct profile *p, const struct modules *ms, struct profile_account *ret);
/*
 * Which method a frame counts under. With a row: the row's source. In JIT code: jit. Else fp if the frame
 * pointer found it, or the method that found it, which is the source of the frame below it.
 */
enum frame_source profile_frame_source(const struct modules *ms, uint64_t frame, enum frame_source below);

const char *profile_stop_name(uint8_t stop);	/* "read_fault"; "?" out of range */
const char *profile_stop_help(uint8_t stop);
const char *profile_lost_name(unsigned int cause);
const char *profile_lost_help(unsigned int cause);

#endif
