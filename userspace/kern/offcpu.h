/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user-space half of bpf/offcpu.bpf.h: which of its programs run, the two edges of a run, and the maps that
 * blocks are counted in. Used by the collector only, and by one thread.
 */
#ifndef SFBPF_KERN_OFFCPU_H
#define SFBPF_KERN_OFFCPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "elf/module.h"
#include "sfbpf_shared.h"

enum offcpu_where { OFFCPU_AUTO, OFFCPU_BACK, OFFCPU_LEAVE };

struct offcpu_opts {
	uint64_t min_ns, max_ns;	/* of blocks that count */
	uint64_t period_ns;		/* once the maps are full: blocked time a sample */
	uint32_t states;		/* 1 << enum sf_off_state */
	uint32_t max_stacks;		/* entries of each map */
	bool wakers, hist, threads;
	bool chains;			/* the wakers' wakers too */
	bool kernel_threads, user_threads;
	bool want_cost;			/* collector_counters.run_ns without kernel.bpf_stats: one switch of many is timed */
	bool want_cost_back;		/* the same, but not where stacks are taken on leaving */
	enum offcpu_where where;	/* where stacks are taken; AUTO: as well as the kernel can */
};

/* Blocks that have their stack, their state and their wakers in common. Valid during the callback. */
struct offcpu_block {
	const struct sf_sample *stack;
	const struct sf_sample *waker;	/* NULL: not known */
	const struct sf_sample *before[SF_OFF_CHAIN - 1];	/* chains: who had woken the waker, and who that one; NULL: not known */
	uint8_t state;			/* enum sf_off_state */
	uint64_t count, ns, max_ns;	/* count: blocks that ended; the time is also that of open ones, as far as they were cut */
	const struct sf_off_hist *hist;	/* NULL unless asked for, and until the counts are taken out or the run is over */
};

typedef void (*offcpu_block_fn)(void *ctx, const struct offcpu_block *b);
typedef void (*offcpu_thread_fn)(void *ctx, uint32_t tid, const struct sf_off_thread *t);

struct offcpu;
struct sfbpf_bpf;

bool offcpu_kernel_can_back(void);	/* sched_exit_tp exists */
/* Between open and load: knobs, map sizes, which programs. */
void offcpu_configure(struct sfbpf_bpf *skel, const struct offcpu_opts *o, const struct num_cpus *cpus, int ncpus, bool at_leave);

/* skel is loaded, and stays the caller's. NULL: out of memory. */
struct offcpu *offcpu_new(struct sfbpf_bpf *skel, const struct offcpu_opts *o, bool at_leave);
void offcpu_free(struct offcpu *off);
int offcpu_attach(struct offcpu *off);	/* 0 or -errno */
/* Keeps a record of weight 0. */
void offcpu_keep(struct offcpu *off, const struct sf_sample *rec);
/* modules_see for all frames that it keeps. */
void offcpu_see(const struct offcpu *off, const struct modules *ms);
/* The kept stack of that hash; NULL: there is none. */
const struct sf_sample *offcpu_stack(const struct offcpu *off, uint64_t hash);
/* The record with the frames of a sample: the sample itself, a kept one, or *none, filled in to say that there are none. */
const struct sf_sample *offcpu_stack_of(const struct offcpu *off, const struct sf_sample *sample, struct sf_sample *none);
/*
 * Counts what is open and at least a second long up to now, so that offcpu_merge has the time that has passed and not
 * that of blocks that happened to end. 0 or -errno.
 */
int offcpu_cut(struct offcpu *off);
/*
 * From now on blocks shorter than that are sampled, one for each so much of a thread's blocked time; 0: all are counted.
 * Where stacks are taken on leaving, how long a block will be is not known: there one block of ns / OFFCPU_THIN_MIN is taken, of all lengths.
 */
void offcpu_thin(struct offcpu *off, uint64_t ns);
#define OFFCPU_THIN_MIN (50 * NUM_US)
#define OFFCPU_THIN_MAX NUM_S
/* The next value of it, when the programs cost too much, or little: within these, or 0. */
uint64_t offcpu_thinner(uint64_t ns);
uint64_t offcpu_denser(uint64_t ns);
/*
 * The end of the run. Counts the blocks that are open; `drain` is called when the ring holds new files,
 * and shall return once their tables are there.
 */
void offcpu_finish(struct offcpu *off, void (*drain)(void *ctx), void *ctx);
/*
 * What has been counted since the last call. 0 or -errno. If the maps are half full, a new generation of counts begins, and
 * the next call takes the old one out; the ring has to be drained in between, as it is when calls alternate with collector_poll.
 */
int offcpu_merge(struct offcpu *off, offcpu_block_fn fn, void *ctx);
/* Whether offcpu_merge should be called now, so that the maps do not fill up. */
bool offcpu_wants_merge(const struct offcpu *off);
int offcpu_threads(struct offcpu *off, offcpu_thread_fn fn, void *ctx);

struct offcpu_totals {
	uint64_t sampled_ns, lost_ns;	/* what samples stand for, since maps were full or off_thin is on; what nothing does */
	uint64_t stacks, full_at;	/* distinct (stack, state, wakers), by generation, and how many there is room for */
	uint64_t generations;		/* how often the maps were emptied */
	uint64_t threads_full;		/* blocks that offcpu_threads does not have: too many threads */
	bool at_leave, remote;		/* how stacks are taken, and whether those of sleepers can be read */
};

void offcpu_totals(const struct offcpu *off, struct offcpu_totals *ret);

#endif
