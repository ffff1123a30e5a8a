/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: the work space of the programs, in addition to the unwinder's (struct sf_scratch). */
#ifndef SFBPF_OFF_SCRATCH_BPF_H
#define SFBPF_OFF_SCRATCH_BPF_H

#include "core/maps.bpf.h"
#include "border/sfbpf_shared.h"

#define OFF_MEMO_SPAN  16384 /* bytes of user stack that the memo covers; a power of two */
#define OFF_MEMO_LINE  64    /* bytes per cache line */
#define OFF_MEMO_LINES (OFF_MEMO_SPAN / OFF_MEMO_LINE)
#define OFF_MEMO_RUNS  16 /* a power of two */

struct off_block {
	u64 blocked, waiting; /* ns; waiting: for a CPU, after the wake-up */
	u64 count;	      /* number of blocks that it represents */
	u64 start, end;	      /* times of the block itself, within the run */
};

/* A run of adjacent cache lines: the first one, counted from the line of sp, and their number. */
struct off_run {
	u8 first, lines;
};

/* The work space, in map memory like struct sf_scratch. Fields that each block needs come first. */
struct off_scratch {
	/* OFF_PENDING_*: parts whose frames are not in the record yet */
	u32 pending;
	u32 n_staged;		    /* kernel frames at frames[SF_MAX_USER], above any user part */
	u64 hash;		    /* hash of the stack */
	u64 user_hash, kernel_hash; /* hashes of its parts */
	u64 memo_key;		    /* off_memo_key() of this stack; 0: none */
	u64 memo_fp;		    /* the innermost frame pointer when memo_key was computed */
	u64 memo_hash;		    /* hash of the user part, on a hit */
	u32 memo_place;		    /* the place with this key, or OFF_MEMO_NONE */
	u32 hash_at;		    /* off_hash_block: start of the frames */
	u64 lane[2];		    /* off_hash_block: the hash so far */
	u64 wakers[SF_OFF_CHAIN];   /* hashes of the stacks that ended the block */
	struct sf_off_lock lock;    /* what the block waited for */
	u64 acc;		    /* blocked time of the thread that no sample represents yet */
	u64 switched_to;	    /* the last task that off_switch saw coming to this CPU */
	u64 due;		    /* the task whose block off_back must count; 0: none */
	struct off_block block;	    /* block of the task that comes to this CPU, or is asleep */
	u64 count;		    /* number of blocks that the current one represents */
	/* A new entry of the memo. */
	/* bitmap of the cache lines that hold words of the user part */
	u64 lines[OFF_MEMO_LINES / 64];
	u32 nruns; /* runs so far; more than OFF_MEMO_RUNS: too many */
	/* the first line of the last run, and the line after its end */
	u32 run_first, run_end;
	u32 zero;
	struct off_run run[OFF_MEMO_RUNS];
	struct sf_off_count fresh; /* a new count; too large for the BPF stack */
	struct sf_off_single single;
	/* Slots of off_last (off_enter) */
	u64 reader;		 /* session id of the iterator whose program is here; 0: none */
	u64 barred;		 /* CLOCK_MONOTONIC ns; until then the slot is not used */
	u64 since;		 /* off_task.since of the block; `block` is what counts of it */
	u32 read_tid, read_user; /* the thread and user whose memory is read, or was */
} SF_LINE;

/*
 * The key is a slot, as in the maps scratch and cache. With n possible CPUs, threads that leave or
 * come back use [0, n) (preemption is off there); wake-ups, which can interrupt those, use [n, 2n);
 * off_last_blind uses 2n, and off_last those after it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct off_scratch);
} off_scratches SEC(".maps");

#define OFF_SLOT_SELF  bpf_get_smp_processor_id()
#define OFF_SLOT_WAKER (cfg_ncpus + bpf_get_smp_processor_id())
#define OFF_SLOT_ITER  (2 * cfg_ncpus)
#define OFF_SLOT_READ  (2 * cfg_ncpus + 1)
#define OFF_READERS    4

const volatile __u32 off_readers = OFF_READERS; /* user space sizes the maps by it */

static __always_inline struct off_scratch *off_scratch_of(u32 slot)
{
	return bpf_map_lookup_elem(&off_scratches, &slot);
}

#endif
