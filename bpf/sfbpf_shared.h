/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The border between the kernel and user space: the only header that both sides include.
 * Fixed-width types only, explicit padding, every layout asserted.
 */
#ifndef SFBPF_SHARED_H
#define SFBPF_SHARED_H

#ifdef __bpf__
typedef __u64 sf_u64; typedef __u32 sf_u32; typedef __u16 sf_u16; typedef __u8 sf_u8; typedef __s32 sf_s32;
#else
#include <stdint.h>
typedef uint64_t sf_u64; typedef uint32_t sf_u32; typedef uint16_t sf_u16; typedef uint8_t sf_u8; typedef int32_t sf_s32;
#endif

#define SF_MAX_USER 1024	/* user frames a stack */
#define SF_MAX_KERNEL 127	/* kernel frames a stack (kernel.perf_event_max_stack's default) */
#define SF_COMM 16		/* TASK_COMM_LEN */

/* ---- Stops and losses ------------------------------------------------------------------------------- */

enum sf_stop {
#define STOP(id, name, help) SF_STOP_##id,
#include "stop_reasons.def"
#undef STOP
	SF_STOP_MAX
};

enum sf_lost {
#define LOST(id, name, help) SF_LOST_##id,
#include "lost.def"
#undef LOST
	SF_LOST_MAX
};

/* ---- Frames ------------------------------------------------------------------------------------------
 * A user frame is one word. Position-independent where a file is known, so that equal stacks of several
 * processes are equal words.
 *
 *   63..61 kind   60 found by frame pointer   59 return address   58..34 module id   33..0 file offset
 *   63..61 kind   60 found by frame pointer   59 return address   58..0 virtual address   (JIT, RAW)
 *
 * JIT words in user space: 58..47 the second in which they were sampled (0: it does not matter), 46..0 address.
 *
 * Offsets and addresses are those to look up: for a return address (bit 59) that is the address minus 1.
 *
 * A module id is a place in the table of modules and, above it, how often that place has been given away: an id names
 * one file for the whole run, also after its tables and its place have gone to another one.
 */
#define SF_FRAME_KIND_SHIFT 61
#define SF_FRAME_ROW 0ull	/* in a file; one of its rows covers the pc */
#define SF_FRAME_NOROW 1ull	/* in a file; no row covers the pc, or the tables are not there yet */
#define SF_FRAME_JIT 2ull	/* in executable memory without a file */
#define SF_FRAME_RAW 3ull	/* in no executable mapping */
#define SF_FRAME_BY_FP (1ull << 60)
#define SF_FRAME_RA (1ull << 59)
#define SF_FRAME_MODULE_SHIFT 34
#define SF_FRAME_MODULE_MASK 0x1ffffffull
#define SF_FRAME_OFFSET_MASK ((1ull << SF_FRAME_MODULE_SHIFT) - 1)
#define SF_FRAME_ADDR_MASK ((1ull << 59) - 1)

#define SF_FRAME_KIND(f) ((sf_u32)((f) >> SF_FRAME_KIND_SHIFT))
#define SF_FRAME_MODULE(f) ((sf_u32)((f) >> SF_FRAME_MODULE_SHIFT & SF_FRAME_MODULE_MASK))
#define SF_FRAME_OFFSET(f) ((f) & SF_FRAME_OFFSET_MASK)
#define SF_FRAME_ADDR(f) ((f) & SF_FRAME_ADDR_MASK)

#define SF_FRAME_EPOCH_SHIFT 47
#define SF_FRAME_JIT_ADDR(f) ((f) & ((1ull << SF_FRAME_EPOCH_SHIFT) - 1))
#define SF_FRAME_JIT_EPOCH(f) ((sf_u32)(SF_FRAME_ADDR(f) >> SF_FRAME_EPOCH_SHIFT))
#define SF_FRAME_IN_EPOCH(f, epoch) ((f) | (sf_u64)(epoch) << SF_FRAME_EPOCH_SHIFT)

/* ---- Ring buffer records ------------------------------------------------------------------------------ */

enum sf_record_type { SF_REC_SAMPLE = 1, SF_REC_NEED = 2, SF_REC_STACK = 3 };

#define SF_SAMPLE_USER 1	/* the task has a user part (not a kernel thread); n_user may still be 0 */
#define SF_SAMPLE_IN_KERNEL 2	/* taken while in kernel mode */
#define SF_SAMPLE_UNKEPT 4	/* off-CPU: a stack that is needed until its thread has another one, and no longer */
#define SF_SAMPLE_BY_HASH 8	/* off-CPU: a sample whose frames came before; their hash is in time_ns */

struct sf_sample {
	sf_u32 type;		/* SF_REC_SAMPLE; SF_REC_STACK: off-CPU, see below */
	sf_u32 cpu;
	sf_u64 time_ns;		/* CLOCK_MONOTONIC; 0 unless asked for */
	sf_u32 pid, tid;	/* the kernel's tgid and pid, initial namespace */
	sf_u64 cgroup_id;	/* cgroup v2 id */
	sf_u64 weight;		/* samples: 1; off-CPU: nanoseconds */
	sf_u16 n_user, n_kernel;
	sf_u8 stop;		/* enum sf_stop, of the user part */
	sf_u8 flags;		/* SF_SAMPLE_* */
	sf_u8 state;		/* off-CPU: enum sf_off_state; else 0 */
	sf_u8 zero;
	char comm[SF_COMM];
	sf_u64 frames[];	/* n_user frame words, leaf first; then n_kernel kernel addresses, leaf first */
};

/* Which file: the inode that is mapped, never a path. mtime makes a file rewritten in place another one. */
struct sf_file_key {
	sf_u64 ino;
	sf_u32 dev;		/* the kernel's dev_t: major << 20 | minor */
	sf_u32 gen;		/* i_generation */
	sf_u64 mtime_ns;	/* i_mtime, nanoseconds since the epoch */
};

#define SF_KEY_VDSO 0xfffffffffffffff0ull	/* ino of the 64-bit vDSO's key; the rest 0 */

struct sf_need {
	sf_u32 type;		/* SF_REC_NEED */
	sf_u32 module;		/* the id that frames of this file carry from now on */
	sf_u32 pid;		/* a process that maps it */
	sf_u32 owner;		/* its user: who the tables are charged to */
	sf_u64 vm_start, vm_end;	/* a mapping of it, for /proc/PID/map_files */
	sf_u64 size;		/* i_size */
	struct sf_file_key key;
	char fs[8];		/* what its file system calls itself: "ext4", "fuse"; the first bytes */
	sf_u32 fs_level;	/* mounted in a user namespace: how deep that one is; 0: by root */
	sf_u32 zero;
};

/* ---- Off-CPU -------------------------------------------------------------------------------------------
 * Blocks are counted in the kernel, by what they have in common: struct sf_off_count. A stack's frames
 * cross the ring as SF_REC_STACK with its hash in time_ns and weight 0, once in each generation. With no room for
 * another stack the record is a sample: weight is nanoseconds, and SF_OFF_CHAIN hashes of wakers follow the frames.
 *
 * Generations keep the maps from filling up: user space begins a new one, waits until no program counts for the old
 * one any more, and then takes the old one's entries out.
 */
#define SF_OFF_CHAIN 3	/* wakers: who ended the block, who ended that one's last block, ... */

/* Why a thread is off the CPU; ps's letters. SF_OFF_R: it could run, but another one does. */
enum sf_off_state { SF_OFF_S, SF_OFF_D, SF_OFF_R, SF_OFF_T, SF_OFF_TRACED, SF_OFF_I, SF_OFF_P, SF_OFF_STATES };
#define SF_OFF_LETTERS "SDRTtIP"

#define SF_AGAIN_SETS 32		/* of kernel stacks that are known again, of each CPU; a power of two */

/* No hash: */
#define SF_STACK_UNKNOWN 1ull	/* off the CPU since before the run, back on a kernel that shows no stacks of others */

/* By a hash of (stack, state, wakers, generation). */
struct sf_off_count {
	sf_u64 sum_ns, count, max_ns;
	sf_u64 stack, wakers[SF_OFF_CHAIN];	/* hashes; a waker 0: not known, nor those behind it */
	sf_u32 pid, generation;
	sf_u16 state;		/* enum sf_off_state */
	sf_u16 sent;		/* the stack's frames are in the ring */
	sf_u32 zero;
	char comm[SF_COMM];
};

#define SF_OFF_HIST 32
struct sf_off_hist {		/* the same key; slot 0: less than 1 us, n: 2^(n-1) us and more */
	sf_u32 slot[SF_OFF_HIST];
};

struct sf_off_thread {		/* by thread id */
	sf_u64 ns[SF_OFF_STATES];
	sf_u64 count, max_ns;
	sf_u32 pid, zero;
	char comm[SF_COMM];
};

/* ---- Tables ----------------------------------------------------------------------------------------------
 * Rows live in chunks: one-element mmapable arrays of SF_CHUNK bytes in an array of maps, written by user
 * space through mmap, read by BPF as plain memory. A location is chunk << 16 | offset / 16; location 0
 * means "nothing" (the first 16 bytes of chunk 0 are never used).
 *
 *   module (by id) -> directory: one location for each 64 KiB of file offsets
 *                  -> page: u16 index[257], 2 bytes of padding, u32 rows[index[256]]
 *
 * A row is low 16 bits of its first byte's file offset | rule << 16. It holds up to the next row; the first
 * row of a page has offset 0, so a search never leaves its page. index[b] is the number of rows below
 * b * 256 (a lower bound), hence the row that covers `low` is among index[low >> 8] - 1 .. index[(low >> 8) + 1] - 1.
 */
#define SF_CHUNK_SHIFT 20
#define SF_CHUNK (1u << SF_CHUNK_SHIFT)
#define SF_MAX_CHUNKS 1024
#define SF_LOC_CHUNK(loc) ((loc) >> 16)
#define SF_LOC_OFFSET(loc) (((loc) & 0xffffu) << 4)
#define SF_PAGE_SHIFT 16
#define SF_PAGE_INDEX 257
#define SF_PAGE_ROWS (SF_PAGE_INDEX * 2 + 2)	/* byte offset of the rows in a page */
#define SF_PAGE_MAX_ROWS 65535
#define SF_MODULE_BITS 14
#define SF_MAX_MODULES (1u << SF_MODULE_BITS)
#define SF_MODULE_PLACE(id) ((id) & (SF_MAX_MODULES - 1))
#define SF_MODULE_LIVES ((sf_u32)(SF_FRAME_MODULE_MASK >> SF_MODULE_BITS) + 1)	/* how often a place can be given away */
#define SF_DIR_MAX (SF_CHUNK / 4)		/* directory entries a module */

/*
 * A rule's 16 bits. Bit 15 clear: packed, by the file's architecture.
 * x86-64, frames whose RA is at CFA - 8:
 *   14 CFA base (0 rsp, 1 rbp)   13..5 CFA offset / 8   4..0 n: FP was saved at CFA - 8 n, 0: FP unchanged
 * AArch64, where FP and RA are saved as a pair (a frame record), RA alone, or neither:
 *   14 CFA base (0 sp, 1 x29)   13..6 CFA offset / 16   5 RA alone   4..0 n: at CFA - 16 n; 31: at CFA - the CFA offset; 0: RA in LR
 * Bit 15 set: an index into the module's rules, or one of the two below.
 */
#define SF_RULE_INDEXED 0x8000u
#define SF_RULE_BASE_FP 0x4000u
#define SF_A64_RA_ALONE 0x20u
#define SF_A64_SLOT 0x1fu
#define SF_RULE_GAP 0xffffu	/* the tables say nothing here */
#define SF_RULE_END 0xfffeu	/* RA undefined: the outermost frame */
#define SF_MAX_RULES 0x4000u

enum sf_rule_kind {	/* the same as enum rule_kind of userspace/unwind/row.h */
	SF_K_NONE, SF_K_SAME, SF_K_UNDEF, SF_K_CFA, SF_K_CFA_MEM, SF_K_REG, SF_K_REG_MEM,
};

#define SF_RULE_SIGNAL 1	/* flags: a signal frame */
#define SF_RULE_CHILD 4		/* behind a system call that makes a thread: see step_rule */
#define SF_RULE_PLT 2		/* cfa_off2 is added where (offset & 15) >= plt_at */

struct sf_rule {
	sf_u8 cfa_kind, cfa_reg, ra_kind, ra_reg, fp_kind, fp_reg, bx_kind, flags;
	sf_s32 cfa_off, cfa_off2, ra_off, fp_off, bx_off;
	sf_u8 plt_at, zero[3];
};

enum sf_module_state {
	SF_MOD_LOADING,		/* asked for */
	SF_MOD_READY,
	SF_MOD_NO_TABLE,	/* there is nothing to unwind with */
	SF_MOD_JIT,		/* no ELF file */
	SF_MOD_RETRY,		/* not there, or taken away: to be asked for (again) */
	SF_MOD_FULL,		/* the same, but the memory for tables was full */
	SF_MOD_VOID,		/* given away in vain: another CPU had entered the file first */
	SF_MOD_NO_PLACE,	/* in BPF only: no module id was left */
	SF_MOD_REFUSED,		/* in BPF only: its user meets too many new files */
};

#define SF_MODULE_TRACKS_BX 1	/* packed rows keep rbx; in other modules' rows it is lost */

struct sf_module {
	sf_u32 state;		/* enum sf_module_state; written last when the rest changes */
	sf_u32 id;		/* whose place this is now; changed by user space while no BPF program knows it */
	sf_u32 first_page;	/* file offset >> SF_PAGE_SHIFT of the first directory entry */
	sf_u32 npages;
	sf_u32 dir;		/* location */
	sf_u32 rules;		/* location */
	sf_u16 nrules, flags;
	sf_u32 used;		/* by BPF: how often a mapping of it was looked up; cleared by user space */
	sf_u32 retry_ms;	/* SF_MOD_RETRY, SF_MOD_FULL: not before this time (CLOCK_MONOTONIC, modulo 2^32) */
	sf_u32 owner;		/* the user in whose process it was met first; by BPF, with the key */
	struct sf_file_key key;
};

/* Counters of one CPU, written by BPF only. Those of every sample come first, in one cache line. */
struct sf_cpu_stats {
	sf_u64 taken;			/* samples that passed the filters: = records received + lost */
	sf_u64 cache_hits, window_reads;
	sf_u64 vma_walks;
	sf_u64 idle;			/* interrupts of the idle task: no samples */
	sf_u64 needs, needs_dropped;	/* requests for tables; those that did not fit the ring: asked again */
	sf_u64 needs_refused;		/* by the limit of new files a second: asked again */
	sf_u64 run_ns;			/* time in on_cpu and on_exec, or off_switch and off_back, with cfg_want_cost */
	sf_u64 lost[8];			/* by enum sf_lost */
	sf_u64 off_taken;		/* off-CPU: blocks counted or sampled */
	sf_u64 off_no_state;		/* threads for whose state there was no memory: their blocks are not seen */
	sf_u64 off_switches;		/* with cfg_want_cost */
	sf_u64 zero[4];
};

_Static_assert(SF_LOST_MAX <= 8, "lost causes fit sf_cpu_stats");
_Static_assert(sizeof(struct sf_rule) == 32, "sf_rule layout");
_Static_assert(sizeof(struct sf_module) == 64, "sf_module layout");
_Static_assert(sizeof(struct sf_cpu_stats) == 192, "sf_cpu_stats layout");
_Static_assert(SF_LOC_CHUNK(0xffffffffu) >= SF_MAX_CHUNKS - 1, "locations reach every chunk");
_Static_assert((0xffffu << 4) < SF_CHUNK, "locations stay inside a chunk");
_Static_assert(SF_PAGE_ROWS + 4 * SF_PAGE_MAX_ROWS <= SF_CHUNK, "the densest page fits a chunk");
_Static_assert(SF_MAX_RULES * sizeof(struct sf_rule) <= SF_CHUNK, "a module's rules fit a chunk");
_Static_assert(SF_MODULE_LIVES * SF_MAX_MODULES - 1 == SF_FRAME_MODULE_MASK, "module ids fit a frame word");
_Static_assert((sf_u64)SF_DIR_MAX << SF_PAGE_SHIFT == 1ull << SF_FRAME_MODULE_SHIFT, "a directory covers all offsets");
_Static_assert(SF_MAX_RULES <= 0xffff, "nrules fits");

_Static_assert(sizeof(struct sf_off_count) == 88, "sf_off_count layout");
_Static_assert(sizeof(struct sf_off_thread) == 96, "sf_off_thread layout");
_Static_assert(sizeof(struct sf_sample) == 64, "sf_sample layout");
_Static_assert(sizeof(struct sf_file_key) == 24, "sf_file_key layout");
_Static_assert(sizeof(struct sf_need) == 80, "sf_need layout");
_Static_assert(SF_STOP_MAX <= 255, "stop reasons fit a byte");

#endif
