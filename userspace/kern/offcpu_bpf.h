/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user-space part of bpf/offcpu.bpf.c: its programs, the start and the end of a run, and the
 * maps with the counts of blocks. Used by one thread. collector_offcpu.c loads it.
 */
#ifndef SFBPF_KERN_OFFCPU_BPF_H
#define SFBPF_KERN_OFFCPU_BPF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "border/sfbpf_shared.h"
#include "files/module.h"

enum offcpu_where { OFFCPU_AUTO, OFFCPU_BACK, OFFCPU_LEAVE };

struct offcpu_opts {
	uint64_t min_ns, max_ns; /* shortest and longest block that counts */
	uint64_t period_ns;	 /* once the maps are full: blocked time per sample */
	uint32_t states;	 /* 1 << enum sf_off_state */
	uint32_t max_stacks;	 /* entries of each map */
	bool wakers, hist, threads;
	bool running; /* offcpu_threads has the threads' running time */
	bool chains;  /* the wakers' wakers too */
	bool locks;   /* offcpu_block.lock */
	bool kernel_threads, user_threads;
	/*
	 * offcpu_singles: blocks of single_min_ns or more one by one, with their wakers; needs
	 * wakers, and counts do not have them.
	 */
	bool singles;
	uint64_t single_min_ns;
	/* collector_counters.run_ns without kernel.bpf_stats: one switch in many is timed. */
	bool want_cost;
	bool want_cost_back; /* want_cost, but not if stacks are taken on leaving */
	/* Where stacks are taken. AUTO: BACK if the kernel supports it, else LEAVE. */
	enum offcpu_where where;
};

/* Blocks with the same stack, state, wakers and lock. Valid during the callback. */
struct offcpu_block {
	const struct sf_sample *stack;
	const struct sf_sample *waker; /* NULL: unknown */
	/* The waker's waker, and the waker of that; needs chains. NULL: unknown. */
	const struct sf_sample *before[SF_OFF_CHAIN - 1];
	struct sf_off_lock lock;
	uint8_t state; /* enum sf_off_state */
	/* count: closed blocks. ns: their time, and that of open blocks up to their last cut. */
	uint64_t count, ns, max_ns;
	/* NULL unless opts.hist, and until the generation or the run is over. */
	const struct sf_off_hist *hist;
};

/* One block. Valid during the callback. */
struct offcpu_single {
	const struct sf_off_single *rec;
	const struct sf_sample *stack;
	const struct sf_sample *waker; /* NULL: unknown */
};

typedef void (*offcpu_single_fn)(void *ctx, const struct offcpu_single *one);
typedef void (*offcpu_block_fn)(void *ctx, const struct offcpu_block *b);
typedef void (*offcpu_thread_fn)(void *ctx, uint32_t tid, const struct sf_off_thread *t);

struct fork_server;
struct irq_code;
struct offcpu;
struct offcpu_bpf;
struct worker_totals;

/* NULL with errno set. rdonly_cast: the kernel has bpf_rdonly_cast. */
struct offcpu_bpf *offcpu_open(bool rdonly_cast);
/*
 * Sets off-CPU knobs, map sizes and programs. Call between open and load, after the knobs of on-CPU
 * samples were copied.
 */
void offcpu_configure(struct offcpu_bpf *skel, const struct offcpu_opts *o, int ncpus,
		      bool at_leave, const struct irq_code *irq);

/*
 * skel is loaded, and remains owned by the caller, as are the server of the processes that read
 * stacks of sleepers, and their totals. NULL: out of memory.
 */
struct offcpu *offcpu_new(struct offcpu_bpf *skel, const struct offcpu_opts *o, bool at_leave,
			  struct fork_server *readers, struct worker_totals *totals);
void offcpu_free(struct offcpu *off);
int offcpu_attach(struct offcpu *off); /* 0 or -errno */
/* Stores an SF_REC_STACK. */
void offcpu_keep(struct offcpu *off, const struct sf_sample *rec);
void offcpu_keep_single(struct offcpu *off, const struct sf_off_single *rec);
/* Calls modules_mark for all frames of stored stacks. */
void offcpu_mark(const struct offcpu *off, const struct modules *ms);
/* The stored stack with this hash; NULL: none. */
const struct sf_sample *offcpu_stack(const struct offcpu *off, uint64_t hash);
/*
 * The record with the frames of an SF_REC_BLOCK: itself, a stored stack, or *none, which has no
 * frames.
 */
const struct sf_sample *offcpu_stack_of(const struct offcpu *off, const struct sf_sample *sample,
					struct sf_sample *none);
/*
 * Cuts the blocks that have been open for a second or more: counts them up to now, so that
 * offcpu_merge includes the time of open blocks. 0 or -errno.
 */
int offcpu_cut(struct offcpu *off);
/*
 * Samples blocks shorter than ns from now on, one per ns of a thread's blocked time. 0: all are
 * counted. If stacks are taken on leaving, the length of a block is not known yet: one block in ns
 * / OFFCPU_THIN_MIN is counted, whatever its length.
 */
void offcpu_thin(struct offcpu *off, uint64_t ns);
#define OFFCPU_THIN_MIN (50 * NUM_US)
#define OFFCPU_THIN_MAX NUM_S
/* The next value if the programs cost too much, or little: within these bounds, or 0. */
uint64_t offcpu_thinner(uint64_t ns);
uint64_t offcpu_denser(uint64_t ns);
/*
 * Ends the run: closes and counts the open blocks. `drain` empties the ring, which may hold
 * requests for files, and returns after these files have their tables.
 */
void offcpu_finish(struct offcpu *off, void (*drain)(void *ctx), void *ctx);
/*
 * Passes on the counts since the last call. 0 or -errno. If the maps are half full, a new
 * generation of counts begins, and the next call deletes the old one. The ring must be drained in
 * between, which is the case if calls alternate with collector_poll.
 */
int offcpu_merge(struct offcpu *off, offcpu_block_fn fn, void *ctx);
/* Whether to call offcpu_merge now, so that the maps do not fill up. */
bool offcpu_wants_merge(const struct offcpu *off);
int offcpu_threads(struct offcpu *off, offcpu_thread_fn fn, void *ctx);

/*
 * Passes on the blocks that have come since the last call. Blocks whose stacks have not come yet
 * stay until the next call. Call it after each collector_poll, before offcpu_merge; last: after the
 * end of the run.
 */
void offcpu_singles(struct offcpu *off, bool last, offcpu_single_fn fn, void *ctx);

struct offcpu_totals {
	uint64_t sampled_ns; /* ns that samples represent: maps were full, or off_thin */
	uint64_t lost_ns;    /* ns of lost samples */
	/* distinct (stack, state, wakers, lock); capacity of the maps */
	uint64_t stacks, full_at;
	uint64_t generations;		/* number of times that the maps were emptied */
	uint64_t threads_full;		/* blocks missing in offcpu_threads: too many threads */
	uint64_t singles, singles_lost; /* long enough: passed on, not passed on */
	bool at_leave, remote; /* stacks are taken on leaving; stacks of sleepers can be read */
};

void offcpu_totals(const struct offcpu *off, struct offcpu_totals *ret);

#endif
