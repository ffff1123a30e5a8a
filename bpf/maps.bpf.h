/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Every map, every knob, and the per-CPU scratch: who writes, who reads, who sizes. */
#ifndef SFBPF_MAPS_BPF_H
#define SFBPF_MAPS_BPF_H

#include "row_step.h"
#include "sfbpf_shared.h"

/* Raw ones have the same arguments, and need no BTF. */
#ifdef SF_PLAIN
#define TRACEPOINT "raw_tp/"
#else
#define TRACEPOINT "tp_btf/"
#endif

#define SF_WINDOW 4096
#define SF_WINDOW_FIRST 1024
#define SF_HASH_BLOCK 16
#define SF_VMAS 8	/* mappings remembered of one address space */
#define SF_SPACES 4	/* address spaces remembered; a power of two */
#define SF_SLOTS (SF_VMAS * SF_SPACES)
#define SF_LOG 256	/* words noted of one stack; a power of two */

#define SF_LINE __attribute__((aligned(64)))	/* mmapable maps begin at a page */

struct sf_vma {
	u64 start, len;		/* virtual address, bytes */
	u64 delta;		/* file offset = address + delta */
	u64 word;		/* the module's bits of the frame word */
	u32 state;		/* enum sf_module_state; SF_MOD_JIT for memory without a file */
	u32 zero;
	u32 first_page, npages, dir, rules, nrules, flags;	/* struct sf_tables */
};

/* By what a mapping is known again after others have changed (vma_same). */
struct sf_vma_seen {
	u64 vma;		/* struct vm_area_struct; 0: it cannot be */
	u32 lock_seq;		/* its vm_lock_seq */
	u32 zero;
};

/*
 * An address space whose mappings are remembered from sample to sample. Exact: ctx_id names one mm_struct for ever,
 * and mm_lock_seq changes with every write lock of its mappings. When it has, or if there is none, each mapping
 * has to be found good first. tables_epoch changes when tables are taken away: all are forgotten.
 */
struct sf_space {
	u64 ctx_id;
	u32 seq;
	u32 next;		/* whose place is taken when all have one, modulo SF_VMAS; grows whenever one that was remembered is forgotten */
	u32 passing;		/* a file in it still waits for its tables: the next sample checks them */
	u32 epoch;		/* tables_epoch when they were looked up */
};

/*
 * The work space of one program on one CPU. It is map memory, not BPF stack: scalars that live in maps
 * are unknown to the verifier, so the loop callbacks converge at once (on the stack they never do).
 * What every sample needs comes first and is packed into cache lines: between two samples others have used the caches.
 */
struct sf_scratch {
	struct sf_regs regs;
	u64 mm;			/* struct mm_struct of the task */
	u64 win_base;
	u32 win_len;		/* bytes of the window that are valid, from win_base */
	u32 win_want;		/* bytes to read next time */
	u32 busy;
	u32 n;			/* user frames so far */
	u32 stop;		/* enum sf_stop, once the loop is over */
	u32 cause;		/* first reason to walk by frame pointer; SF_STOP_COMPLETE: none yet */
	u32 space;		/* which of spaces[] this sample uses */
	u32 vma_last;		/* slot of vmas[] that the last frame was in */
	u32 pid;
	u32 reads, hits;	/* window reads and cache hits of this sample */
	u32 vma_put;		/* vma_find: the slot for a new mapping; SF_SLOTS: the next one in turn */
	/* Off-CPU: what each block needs, in the same page. */
	u32 off_lazy SF_LINE;	/* OFF_LAZY_* */
	u32 zero3;
	u64 off_hash;		/* off-CPU: of the stack */
	u64 user_hash, kernel_hash;	/* of its parts */
	u64 again_key;		/* what the user part depends on, beside memory; 0: not known */
	u64 scan_stack;		/* the kernel stack that is looked through */
	u32 scan_n, scan_at;	/* how many frames it has, and how many of their RAs were found */
	u32 scan_kept, scan_third;	/* words that count; where the third frame's RA is, in words from sp */
	u32 scan_last, scan_last_at;	/* the last of them: its lower half, where it is */
	u32 again_kernel, again_user;	/* what is known of the stack: index into off_kernels; into the thread's places */
	u32 hash_at, off_state;	/* enum sf_off_state of the block */
	u64 again_fp;		/* the innermost frame pointer, which belongs to again_key */
	u64 again_hash;		/* of the user part that is known again */
	u64 again_kind;		/* what else the block has in common with others; 0: it cannot be added up */
	u64 off_key;		/* of the count that it went to; 0: none that more may go to */
	u64 off_wakers[SF_OFF_CHAIN];	/* and of the stacks of who ended its block */
	u64 off_acc;		/* blocked time of the thread that no sample stands for yet */
	u64 off_next;		/* struct task_struct that sched_switch was last seen to switch to */
	u64 off_task;		/* struct task_struct that is being switched to, and whose block counts; 0: none */
	u64 off_blocked, off_waiting, off_stands_for;	/* what counts of it: struct off_block */
	u32 n_beside, zero;	/* kernel frames at frames[SF_MAX_USER] */
	u64 off_times;		/* how many blocks it stands for */
	struct sf_space spaces[SF_SPACES] SF_LINE;
	struct sf_vma_seen seen[SF_SLOTS];
	struct sf_vma vmas[SF_SLOTS] SF_LINE;	/* SF_VMAS for each space */
	struct sf_sample sample SF_LINE;
	u64 frames[SF_MAX_USER + SF_MAX_KERNEL];	/* directly behind sample: one record */
	u64 pad[SF_HASH_BLOCK];	/* frames are hashed by whole blocks */
	u8 window[SF_WINDOW + 8] SF_LINE;
	struct sf_rule rule;	/* an indexed row's; too large for the BPF stack, below off-CPU programs' */
	u64 log_base, log_end, log_far, log_hash;	/* see note_word */
	u64 log_fp;		/* where the frame pointer was read: LOG_FP_* or an address */
	u32 log_n, log_fp_first;
	u64 again_lines[4];	/* bits: lines of the user stack with words that it depends on */
	u32 again_runs, again_first, again_end, zero2;	/* see again_add_line */
	u8 again_run[16][2];
	u16 log[SF_LOG];
	u64 node[32];		/* kernels without bpf_rdonly_cast: copy of a maple tree node */
	struct sf_off_count off_fresh;	/* a new count, which is too large for the BPF stack */
	u64 lane[2];		/* the hash while it is made */
} SF_LINE;

_Static_assert(__builtin_offsetof(struct sf_scratch, frames) ==
	       __builtin_offsetof(struct sf_scratch, sample) + sizeof(struct sf_sample), "frames follow the sample");

/*
 * By slot: programs that may interrupt one another on a CPU each have their own. User space sizes it: on-CPU samples
 * [0, n) of n possible CPUs, exec [n, 2n), and with off-CPU leaving or coming back [2n, 3n), waking [3n, 4n), the iterator 4n.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_scratch);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_cpu_stats);
} cpu_stats SEC(".maps");

/* Return address -> rule, by the scratch's slot; direct-mapped and exact (see unwind.bpf.h). */
#define SF_CACHE_BITS 12
struct sf_cache {
	u64 entry[1 << SF_CACHE_BITS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_cache);
} cache SEC(".maps");

/* A state of unwinding, and how the step to it was made. */
struct sf_state {
	u64 pc, sp, fp;
	u64 word;		/* its frame */
	u64 low;		/* what lies at sp - span: FP, or pc if the step left FP alone; pc always lies at sp - 8 */
	u32 span;		/* SF_TRAIL_BREAK and more: not by a packed row */
	u32 slot;		/* of FP, as in the packed row; 0: left alone */
};

#define SF_TRAIL 1024		/* states of one stack; a power of two */
#define SF_TRAIL_TOP 64		/* where a trail begins: the next stack may be longer by so many */
#define SF_TRAIL_END (SF_TRAIL - 1)
#define SF_TRAIL_BREAK 0x10000	/* in no window */
#define SF_FRESH 64		/* a power of two */

/* See trail.bpf.h. By the scratch's slot. */
struct sf_trail {
	u64 ctx_id;		/* as in sf_space */
	u32 epoch, gone;	/* its next, which grows whenever something that was remembered is forgotten */
	u32 top, end;		/* at[top] is the innermost state, at[end - 1] the outermost that is known */
	u32 next;		/* where the present stack may meet it */
	u32 kept;		/* at[top] to at[kept - 1] are the present stack's */
	u32 nfresh, slot;	/* slot of the last step */
	struct sf_state fresh[SF_FRESH];	/* the present stack's that follow */
	struct sf_state at[SF_TRAIL];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_trail);
} trails SEC(".maps");

/* File -> module id. BPF inserts on first sight, user space removes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_MAX_MODULES);
	__type(key, struct sf_file_key);
	__type(value, u32);
} files SEC(".maps");

/*
 * By a module id's place. BPF fills in key and owner on first sight and counts `used`; user space writes the rest through mmap,
 * gives the place its next id, and takes tables away (see userspace/kern/tables.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SF_MAX_MODULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_module);
} modules SEC(".maps");

/*
 * By user: until when its requests for tables have used up what it is granted (see need_allowed). Users that share an entry
 * share the grant; root has one of its own.
 */
#define SF_GRANTS 256
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SF_GRANTS);
	__type(key, u32);
	__type(value, u64);
} grants SEC(".maps");

struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, SF_CHUNK);
};

/* The row tables. User space creates a chunk, fills it through mmap, and only then are there locations in it; removes empty ones. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SF_MAX_CHUNKS);
	__uint(key_size, 4);
	__array(values, struct chunk_map);
} chunks SEC(".maps");

/* Samples and needs to user space. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

/* Filters: sets of process and thread ids. Written by user space before attach (and by fork/exit with follow_forks). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u8);
} tids SEC(".maps");

/* Knobs, fixed at load: what is off is removed by the verifier. */
const volatile bool cfg_user = true, cfg_kernel = true;
const volatile bool cfg_by_pid = false, cfg_by_tid = false, cfg_by_uid = false, cfg_by_comm = false, cfg_by_cgroup = false;
const volatile __u32 cfg_only_pid = 0, cfg_only_tid = 0;	/* the one that is in pids, in tids; 0: there may be others */
const volatile bool cfg_note_words = false;	/* note_word */
const volatile bool cfg_want_cgroup = false, cfg_want_time = false;	/* 15 and 40 ns a sample */
/*
 * Samples are so far apart that others have used the caches meanwhile: then small code costs less than few instructions, and misses
 * that do not wait for one another cost less than few misses.
 */
const volatile bool cfg_cold = false;
const volatile bool cfg_trail = false;	/* trail.bpf.h */
const volatile bool cfg_want_cost = false;	/* sf_cpu_stats.run_ns */
const volatile __u32 cfg_uid = 0;
const volatile __u64 cfg_cgroup = 0;
const volatile int cfg_cgroup_level = 0;
const volatile char cfg_comm[64] = "";
const volatile __u32 cfg_comm_len = 0;
const volatile __u32 cfg_ncpus = 1;
const volatile __u32 cfg_page_shift = 12;
const volatile __u32 cfg_thread_size = 16384;	/* kernels without BTF: bytes of a kernel stack */
const volatile __u64 cfg_wake_bytes = 1 << 18;	/* wake the consumer when the ring holds this much */

/* Module ids that are free: a ring, filled by user space, emptied by BPF on first sight of a file. 0 is nobody's id. */
#define TABLES_STATE SEC(".data.tables")	/* a map of its own, as objects share it together with the tables */
__u32 free_ids[SF_MAX_MODULES] TABLES_STATE = {};
__u32 free_head TABLES_STATE = 0, free_tail TABLES_STATE = 0;	/* BPF takes at head, user space adds at tail; modulo 2^32 */
__u32 tables_epoch TABLES_STATE = 0;	/* user space: changed after tables were taken away, so that nobody remembers them */
__u32 remote_tid = 0;		/* remote.bpf.c: the task whose memory is read */

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;	/* 6.2 */
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

#endif
