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
 *   63..61 kind   60 found by frame pointer   59 return address   58..43 module id   42..0 file offset
 *   63..61 kind   60 found by frame pointer   59 return address   58..0 virtual address   (JIT, RAW)
 *
 * Offsets and addresses are those to look up: for a return address (bit 59) that is the address minus 1.
 */
#define SF_FRAME_KIND_SHIFT 61
#define SF_FRAME_ROW 0ull	/* in a file; one of its rows covers the pc */
#define SF_FRAME_NOROW 1ull	/* in a file; no row covers the pc, or the tables are not there yet */
#define SF_FRAME_JIT 2ull	/* in executable memory without a file */
#define SF_FRAME_RAW 3ull	/* in no executable mapping */
#define SF_FRAME_BY_FP (1ull << 60)
#define SF_FRAME_RA (1ull << 59)
#define SF_FRAME_MODULE_SHIFT 43
#define SF_FRAME_MODULE_MASK 0xffffull
#define SF_FRAME_OFFSET_MASK ((1ull << SF_FRAME_MODULE_SHIFT) - 1)
#define SF_FRAME_ADDR_MASK ((1ull << 59) - 1)

#define SF_FRAME_KIND(f) ((sf_u32)((f) >> SF_FRAME_KIND_SHIFT))
#define SF_FRAME_MODULE(f) ((sf_u32)((f) >> SF_FRAME_MODULE_SHIFT & SF_FRAME_MODULE_MASK))
#define SF_FRAME_OFFSET(f) ((f) & SF_FRAME_OFFSET_MASK)
#define SF_FRAME_ADDR(f) ((f) & SF_FRAME_ADDR_MASK)

/* ---- Ring buffer records ------------------------------------------------------------------------------ */

enum sf_record_type { SF_REC_SAMPLE = 1, SF_REC_NEED = 2 };

#define SF_SAMPLE_USER 1	/* the task has a user part (not a kernel thread); n_user may still be 0 */
#define SF_SAMPLE_IN_KERNEL 2	/* taken while in kernel mode */

struct sf_sample {
	sf_u32 type;		/* SF_REC_SAMPLE */
	sf_u32 cpu;
	sf_u64 time_ns;		/* CLOCK_MONOTONIC */
	sf_u32 pid, tid;	/* the kernel's tgid and pid, initial namespace */
	sf_u64 cgroup_id;	/* cgroup v2 id */
	sf_u64 weight;		/* samples: 1; off-CPU: nanoseconds */
	sf_u16 n_user, n_kernel;
	sf_u8 stop;		/* enum sf_stop, of the user part */
	sf_u8 flags;		/* SF_SAMPLE_* */
	sf_u16 zero;
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
	sf_u32 zero;
	sf_u64 vm_start, vm_end;	/* a mapping of it, for /proc/PID/map_files */
	sf_u64 size;		/* i_size */
	struct sf_file_key key;
};

_Static_assert(sizeof(struct sf_sample) == 64, "sf_sample layout");
_Static_assert(sizeof(struct sf_file_key) == 24, "sf_file_key layout");
_Static_assert(sizeof(struct sf_need) == 64, "sf_need layout");
_Static_assert(SF_STOP_MAX <= 255, "stop reasons fit a byte");

#endif
