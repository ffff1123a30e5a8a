/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the off-CPU files.
 *
 *   offcpu_load.c	loading: knobs, map sizes, programs, the object for sleeping threads
 *   offcpu.c		the run: start, end, cuts, sampling
 *   offcpu_sleepers.c	stacks of threads that stay asleep
 *   offcpu_stacks.c	stacks that the kernel has sent, by hash
 *   offcpu_counts.c	reading the counts; generations
 *   offcpu_singles.c	blocks that the kernel sends one by one
 */
#ifndef SFBPF_KERN_OFFCPU_INTERNAL_H
#define SFBPF_KERN_OFFCPU_INTERNAL_H

#include <linux/types.h>

#include "base/idmap.h"
#include "kern/offcpu_bpf.h"
#include "offcpu.skel.h"
#include "remote.skel.h"

/* A stack, followed by its record. */
struct off_stack {
	/* the last one in which it was sent, or at whose end a thread held it */
	uint32_t generation;
	uint32_t zero;
};

struct off_stacks {	      /* zeroed: empty */
	struct idmap ids;     /* ids of hashes */
	struct off_stack **v; /* indexed by id; malloc'ed */
	size_t cap;
};

/*
 * Records of stacks that are needed until the next one of their thread. Threads that share a place
 * overwrite each other's records.
 */
#define TRANSIENT_PLACES 8192u
struct off_transient {
	struct sf_sample *rec; /* NULL or malloc'ed */
	size_t cap;
};

struct off_singles {
	struct sf_off_single *list;
	size_t n, cap;
	size_t seen; /* how many an earlier offcpu_singles left */
	uint64_t dropped;
};

struct off_handed_out {
	uint64_t count, ns;
};

struct offcpu {
	struct offcpu_bpf *skel;
	struct remote_bpf *remote; /* NULL: the kernel refuses it */
	struct fork_server *readers;
	struct worker_totals *totals; /* totals of its children */
	uint64_t patience_ns;	      /* what is left of it: offcpu_patience() */
	struct offcpu_opts opts;
	bool at_leave;
	struct off_stacks stacks;
	struct off_transient *transient; /* TRANSIENT_PLACES, by thread id; NULL: none yet */
	struct off_singles singles;
	struct idmap seen;	       /* keys of the counts of this generation */
	struct off_handed_out *counts; /* indexed by id in seen */
	size_t counts_cap;
	uint32_t generation;
	bool closing;	     /* the previous generation must still be read for the last time */
	bool no_generations; /* the kernel cannot tell when running programs have ended */
	uint32_t deleted;    /* entries of off_counts deleted so far */
	size_t held;	     /* number of stacks kept at the end of the last generation */
	uint64_t past;	     /* number of counts in earlier generations */
};

/* offcpu_load.c: NULL if the kernel refuses it. languages: 1 << enum sf_language */
struct remote_bpf *offcpu_load_remote(const struct offcpu_bpf *skel, uint32_t languages);
/* Takes over another version, in the place of the one before. */
void offcpu_use_remote(struct offcpu *off, struct remote_bpf *remote);

/* offcpu.c: measures CLOCK_MONOTONIC minus the clock of the run queues. */
void offcpu_calibrate(struct offcpu_bpf__bss *bss);
/*
 * Runs an iterator program. take: gets the words that the program writes; may be NULL. 0 or -errno.
 */
typedef void (*off_words_fn)(struct offcpu *off, const uint64_t *words, size_t n);
int offcpu_run_iterator(const struct bpf_program *prog, off_words_fn take, struct offcpu *off);
/* A descriptor that runs the program when it is read, or -errno. */
int offcpu_open_iterator(const struct bpf_program *prog);

/* offcpu_sleepers.c: from now on, 0.7 s may be spent waiting for memory that does not come. */
void offcpu_patience(struct offcpu *off);
/*
 * Does what off_pass says with the open blocks whose stacks can be read. off->remote exists. Tables
 * are held. 0 or -errno: not all threads were visited.
 */
int offcpu_read_sleepers(struct offcpu *off);
/*
 * Does what off_pass says with all open blocks: where stacks cannot be read, they have the kernel
 * part only.
 */
int offcpu_visit_open(struct offcpu *off);

/* offcpu_stacks.c */
void offcpu_stacks_free(struct offcpu *off);
/* Threads still hold the stacks with these hashes. */
void offcpu_stacks_held(struct offcpu *off, const uint64_t *hashes, size_t n);
/*
 * Drops the stacks that no count can refer to any more, here and in the kernel's map. -ENOMEM: none
 * was dropped.
 */
int offcpu_stacks_drop(struct offcpu *off);
/* Fills rec as a replacement for a stack without known frames. */
const struct sf_sample *offcpu_missing_stack(struct sf_sample *rec, uint64_t hash, uint32_t pid,
					     const char *comm);

#endif
