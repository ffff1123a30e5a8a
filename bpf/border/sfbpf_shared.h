/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between BPF and user space: all that both sides include. Fixed-width
 * types and explicit padding only. Every layout is asserted below.
 */
#ifndef SFBPF_SHARED_H
#define SFBPF_SHARED_H

#include "core/call_hist.h"
#include "lang/languages.h"
#include "border/sfbpf_types.h"

#define SF_MAX_USER   1024 /* user frames per stack */
#define SF_MAX_KERNEL 127  /* kernel frames per stack (default of kernel.perf_event_max_stack) */
#define SF_COMM	      16   /* TASK_COMM_LEN */

/* ---- Stops and losses ---- */

enum sf_stop {
#define STOP(id, name, help) SF_STOP_##id,
#include "border/stop_reasons.def"
#undef STOP
	SF_STOP_MAX
};

enum sf_lost {
#define LOST(id, name, help) SF_LOST_##id,
#include "border/lost.def"
#undef LOST
	SF_LOST_MAX
};

/* ---- Frames ---- */

/*
 * A user frame is one word. Where the file is known, it is position-independent, so that equal
 * stacks of different processes consist of equal words.
 *
 *   63..61 kind   60 found by frame pointer   59 return address
 *   58..34 module id   33..0 file offset             (ROW, NOROW)
 *   58..0 virtual address                            (JIT, RAW)
 *   58..56 language   55..24 code id   23..0 position in the code    (LANG)
 *
 * The id of code counts up in the kernel and is never used twice (struct sf_code); 0: unknown. User
 * space replaces it by the number of the code's content (languages/lang_codes.h), which is equal in
 * all processes. Positions are 0 unless lines are wanted, so that equal stacks consist of equal
 * words.
 *
 * In JIT words, user space uses bits 58..47 for the second of the sample (0: any second) and bits
 * 46..0 for the address.
 *
 * Offsets and addresses are the ones to look up: for a return address (bit 59) that is the address
 * minus 1.
 *
 * The low bits of a module id are a place in the table of modules; the bits above count how often
 * that place was reused. An id therefore names one file for the whole run, even after its tables
 * and its place were given to another file.
 */
#define SF_FRAME_KIND_SHIFT   61
#define SF_FRAME_ROW	      0ull /* code in a file; one of its rows covers the pc */
/* Code in a file; no row covers the pc, or the tables are not loaded yet */
#define SF_FRAME_NOROW	      1ull
#define SF_FRAME_JIT	      2ull /* code in executable memory without a file */
#define SF_FRAME_RAW	      3ull /* a pc in no executable mapping */
#define SF_FRAME_LANG	      4ull /* a frame of a language */
#define SF_FRAME_BY_FP	      (1ull << 60)
#define SF_FRAME_RA	      (1ull << 59)
#define SF_FRAME_MODULE_SHIFT 34
#define SF_FRAME_MODULE_MASK  0x1ffffffull
#define SF_FRAME_OFFSET_MASK  ((1ull << SF_FRAME_MODULE_SHIFT) - 1)
#define SF_FRAME_ADDR_MASK    ((1ull << 59) - 1)

/* The only frame of a task inside execve(), between its old image and the new one */
#define SF_FRAME_EXEC (SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | SF_FRAME_ADDR_MASK)

/* Frames of code that was made at run time, of unknown number (bpf/core/bridge.bpf.h) */
#define SF_FRAME_BRIDGE (SF_FRAME_EXEC - 1)

#define SF_FRAME_KIND(f)   ((sf_u32)((f) >> SF_FRAME_KIND_SHIFT))
#define SF_FRAME_MODULE(f) ((sf_u32)((f) >> SF_FRAME_MODULE_SHIFT & SF_FRAME_MODULE_MASK))
#define SF_FRAME_OFFSET(f) (SF_FRAME_OFFSET_MASK & (f))
#define SF_FRAME_ADDR(f)   (SF_FRAME_ADDR_MASK & (f))

#define SF_FRAME_LANGUAGE(f) ((sf_u32)((f) >> 56 & 7))
#define SF_FRAME_CODE(f)     ((sf_u32)((f) >> 24))
#define SF_FRAME_POSITION(f) ((sf_u32)((f)&0xffffff))
#define SF_FRAME_LANG_WORD(language, code, position)                       \
	(SF_FRAME_LANG << SF_FRAME_KIND_SHIFT | (sf_u64)(language) << 56 | \
	 (sf_u64)(sf_u32)(code) << 24 | ((position)&0xffffff))

#define SF_FRAME_EPOCH_SHIFT	    47
#define SF_FRAME_JIT_ADDR(f)	    ((f) & ((1ull << SF_FRAME_EPOCH_SHIFT) - 1))
#define SF_FRAME_JIT_EPOCH(f)	    ((sf_u32)(SF_FRAME_ADDR(f) >> SF_FRAME_EPOCH_SHIFT))
#define SF_FRAME_IN_EPOCH(f, epoch) ((f) | (sf_u64)(epoch) << SF_FRAME_EPOCH_SHIFT)

/* ---- Ring buffer records ---- */

enum sf_record_type {
	SF_REC_SAMPLE = 1,
	SF_REC_NEED = 2,
	SF_REC_STACK = 3, /* off-CPU: the frames of a stack; counts refer to it by its hash */
	/* off-CPU: a sampled block; SF_OFF_MORE words follow the frames */
	SF_REC_BLOCK = 4,
	SF_REC_CODE = 5,   /* struct sf_code */
	SF_REC_COPY = 6,   /* struct sf_copy_need */
	SF_REC_SINGLE = 7, /* struct sf_off_single */
	SF_REC_CALL = 8,   /* struct sf_call */
};

/*
 * The task has a user part: it is no kernel thread, and not inside execve() (SF_FRAME_EXEC). n_user
 * may still be 0
 */
#define SF_SAMPLE_USER	      1
#define SF_SAMPLE_IN_KERNEL   2 /* taken while in kernel mode */
#define SF_SAMPLE_TRANSIENT   4 /* SF_REC_STACK: keep it until the thread's next one */
/* SF_REC_BLOCK: the frames were sent earlier, in the SF_REC_STACK with this hash */
#define SF_SAMPLE_BY_HASH     8
/* SF_LINK_WORDS words follow the frames: the current trace's id in two, the span's id */
#define SF_SAMPLE_LINKED      128
#define SF_LINK_WORDS	      3
/* bits 4..6: the language whose frames are in the user part; 0: none */
#define SF_SAMPLE_LANG_SHIFT  4
#define SF_SAMPLE_LANG(flags) ((flags) >> SF_SAMPLE_LANG_SHIFT & 7u)

struct sf_sample {
	sf_u32 type; /* SF_REC_SAMPLE, SF_REC_STACK, SF_REC_BLOCK */
	sf_u32 cpu;
	union {
		sf_u64 hash;	/* off-CPU: of the stack */
		sf_u64 time_ns; /* SF_REC_SAMPLE: CLOCK_MONOTONIC */
	};
	sf_u32 pid, tid;  /* the kernel's tgid and pid, initial namespace */
	sf_u64 cgroup_id; /* cgroup v2 id */
	/*
	 * SF_REC_SAMPLE: what it counts for. If calls are measured: the number of the call in the
	 * lower half; in the upper half the microseconds for which a goroutine has waited, 0: it
	 * ran. SF_REC_BLOCK: nanoseconds. SF_REC_STACK: 0
	 */
	sf_u64 weight;
	sf_u16 n_user, n_kernel;
	sf_u8 stop;	 /* enum sf_stop, of the user part */
	sf_u8 flags;	 /* SF_SAMPLE_* */
	sf_u8 state;	 /* off-CPU: enum sf_off_state; SF_REC_SAMPLE: the event's number */
	sf_u8 lang_stop; /* enum sf_stop of the language's frames */
	char comm[SF_COMM];
	/* n_user frame words, leaf first; then n_kernel kernel addresses, leaf first */
	sf_u64 frames[];
};

/*
 * Identifies a file by the mapped inode, never by path. The change time is part of the key, so a
 * file that was rewritten in place counts as another file. Unlike mtime, no program can set it.
 */
struct sf_file_key {
	sf_u64 ino;
	sf_u32 dev;	 /* the kernel's dev_t: major << 20 | minor */
	sf_u32 instance; /* inode_instance() in vma.bpf.h */
	sf_u64 ctime_ns; /* i_ctime, nanoseconds since the epoch */
};
#define SF_KEY_VDSO  0xfffffffffffffff0ull /* ino of the 64-bit vDSO's key; the rest 0 */
#define SF_OPENED_AT (7ull << 28)	   /* where openers map a file; sanitizers leave it free */

struct sf_need {
	sf_u32 type;		 /* SF_REC_NEED */
	sf_u32 module;		 /* the id in all frames of this file from now on */
	sf_u32 pid;		 /* a process that maps it */
	sf_u32 owner;		 /* the user of that process; the tables are charged to them */
	sf_u64 vm_start, vm_end; /* a mapping of it, for /proc/PID/map_files */
	sf_u64 size;		 /* i_size */
	struct sf_file_key key;
	char fs[8];	 /* name of the file system type ("ext4", "fuse"), truncated */
	sf_u32 fs_level; /* depth of the user namespace it was mounted in; 0: the initial one */
	sf_u32 zero;
};

/*
 * A mapping without a file that may hold a copy of a file's code, because a mapping of that file is
 * next to it (copied.bpf.h). User space compares the bytes.
 */
struct sf_copy_key {
	sf_u64 space, start, end; /* the address space (MM_ID), and the mapping */
	sf_u32 lock_seq;	  /* changes with the mapping, on kernels where it is known */
	sf_u32 zero;
};

/* The part of it that is equal to the file. end 0: the answer is due; start == end: none */
struct sf_copy {
	sf_u64 start, end;
	sf_u64 delta; /* file offset = address + delta */
};

struct sf_copy_need {
	sf_u32 type;   /* SF_REC_COPY */
	sf_u32 module; /* the file */
	sf_u32 pid, zero;
	struct sf_copy_key key;
	sf_u64 at;    /* an address of code in the mapping */
	sf_u64 delta; /* delta of the file's mapping next to it */
};

/* ---- Events ---- */

#define SF_EVENTS      32 /* events of a run, at most */
#define SF_EVENT_SLOTS 3  /* scratch slots of a CPU for tracepoints and probes */

/* What a hit of a tracepoint or probe counts for. */
enum sf_event_value {
	SF_VALUE_ONE,
	SF_VALUE_HERE,	/* a number in the registers (struct pt_regs) or the record, at `at` */
	SF_VALUE_CONST, /* `add` */
	/* a number in user memory: register at `at` + add + scale * register at `index` */
	SF_VALUE_MEMORY,
};

/* A place where a tracepoint or probe is attached. */
struct sf_event_site {
	sf_u8 event;	 /* the number of its event */
	sf_u8 value;	 /* enum sf_event_value */
	sf_u8 size;	 /* bytes of the number, 1 to 8 */
	sf_u8 is_signed; /* bool; a negative number counts for nothing */
	sf_u16 at, index;
	sf_u8 scale;
	sf_u8 filtered; /* bool: the event has a filter */
	sf_u8 call;	/* enum sf_call_site */
	sf_u8 zero[5];
	sf_s64 add;
};

enum sf_test_op { SF_TEST_EQ, SF_TEST_AND, SF_TEST_LESS, SF_TEST_MORE };

#define SF_TEST_SIGNED	1
#define SF_TEST_DYNAMIC 2   /* `at` has the place of the bytes in the record, in its low 16 bits */
#define SF_EVENT_TESTS	32  /* most tests of a filter; a power of two */
#define SF_TEST_PASS	254 /* stands for the next test: the record passes */
#define SF_TEST_FAIL	255

/* A comparison of a number in the record of a tracepoint with a constant. */
struct sf_event_test {
	sf_u64 value;
	sf_u16 at;
	sf_u8 size;    /* 1 to 8 bytes */
	sf_u8 op;      /* enum sf_test_op */
	sf_u8 flags;   /* SF_TEST_* */
	sf_u8 yes, no; /* the test that follows, which is a later one; SF_TEST_PASS, SF_TEST_FAIL */
	sf_u8 skip;    /* SF_TEST_DYNAMIC: bytes before the number */
};

struct sf_event_filter {
	struct sf_event_test tests[SF_EVENT_TESTS];
};

/* ---- Calls ---- */

/* What a place is to a call (bpf/core/call.bpf.h). */
enum sf_call_site {
	SF_CALL_NONE,
	SF_CALL_ENTRY,
	SF_CALL_EXIT,
	/* Probes that need not be in one function: calls are matched by counting, not by stack */
	SF_CALL_PAIR_ENTRY,
	SF_CALL_PAIR_EXIT,
	SF_CALL_PARK, /* a goroutine is about to wait (the entry of runtime.gopark) */
	SF_CALL_WAKE, /* it runs again (the exit): a sample */
};

/* A call that was slow, or in which samples or blocks were taken. */
struct sf_call {
	sf_u32 type; /* SF_REC_CALL */
	sf_u32 number;
	sf_u64 start_ns, end_ns; /* CLOCK_MONOTONIC */
	sf_u32 pid, tid;
	char comm[SF_COMM];
};

/* All calls, on one CPU. */
struct sf_call_stats {
	sf_u64 begun, ended;
	sf_u64 abandoned; /* left without an exit: longjmp(3), exceptions */
	sf_u64 alone;	  /* exits without an entry */
	sf_u64 lost;	  /* records of calls that found no room in the ring */
	sf_u64 no_room;	  /* entries without memory for the thread's state */
	sf_u64 ns, max_ns;
	sf_u64 hist[SF_CALL_HIST]; /* durations of ended calls */
};

/* ---- Traces ---- */

/*
 * Where the threads of a process have the pointer to their current span (OTEP 4947), by its pid.
 * start_stack: of the mm, so that no other process, and no later image of this one, is read.
 */
struct sf_thread_link {
	sf_u64 start_stack, tls; /* tls: an address in the process, or as SF_TLS_EXEC has it */
	sf_u32 tls_how, musl;	 /* SF_TLS_*; bool: the C library is musl */
};

/* ---- Off-CPU ---- */

/*
 * A block is the time from the moment a thread leaves the CPU until it runs again. The kernel sums
 * up blocks with the same stack, state, wakers, lock and generation (struct sf_off_count). The
 * frames of a stack are sent through the ring once per generation (SF_REC_STACK). When the maps
 * have no room for another stack, its blocks are sampled (SF_REC_BLOCK).
 *
 * Generations keep the maps from filling up. User space begins a new generation, waits until no
 * program counts for the old one, and then deletes the entries of the old one.
 */
#define SF_OFF_CHAIN 3 /* wakers of a block: its waker, the waker of the waker's last block, ... */
/* After the frames of a sampled block: hashes of SF_OFF_CHAIN stacks, and a struct sf_off_lock */
#define SF_OFF_MORE  (SF_OFF_CHAIN + 2)

/* How the owner of a lock is known. */
enum sf_owner {
	SF_OWNER_UNKNOWN,
	/* The futex word has its thread id, as PI and robust mutexes and musl's (FUTEX_WAITERS) */
	SF_OWNER_WORD,
	/* pthread_mutex_t.__data.__owner, if the futex is a mutex of glibc */
	SF_OWNER_FIELD,
	/* The thread that woke the waiter by this futex, if the futex is a lock */
	SF_OWNER_WAKER,
	/* The lock is the kernel's, and says it */
	SF_OWNER_KERNEL,
};

enum sf_lock_kind { SF_LOCK_FUTEX, SF_LOCK_MUTEX, SF_LOCK_RWSEM }; /* the kernel's: the last two */

/* The futex that a thread waits for, or the lock of the kernel. */
struct sf_off_lock {
	/* An address in the thread's process, or in the kernel; 0: it waits for something else */
	sf_u64 addr;
	/* A thread id: WORD, FIELD: in the namespace of the process, else in the initial one */
	sf_u32 owner;
	sf_u16 how;  /* enum sf_owner */
	sf_u16 kind; /* enum sf_lock_kind */
};

/* Why a thread is off the CPU, in the letters of ps. SF_OFF_R: runnable, but the CPU is taken. */
enum sf_off_state {
	SF_OFF_S,
	SF_OFF_D,
	SF_OFF_R,
	SF_OFF_T,
	SF_OFF_TRACED,
	SF_OFF_I,
	SF_OFF_P,
	SF_OFF_STATES
};
#define SF_OFF_LETTERS "SDRTtIP"

/* The purpose of a run of the iterator programs off_first and off_last; in off_pass. */
enum sf_off_pass {
	/* off_last, at the start: reads stacks of threads off the CPU, if taken on leaving */
	SF_OFF_PASS_STACKS,
	/* off_last, at the end: counts the open blocks whose files all have their tables */
	SF_OFF_PASS_CLOSE,
	SF_OFF_PASS_REST, /* off_last, at the end: counts the remaining open blocks */
	/* off_first, second visit: allocation of task storage may have failed on the first one */
	SF_OFF_PASS_AGAIN,
	SF_OFF_PASS_CUT, /* off_last, during the run: counts open blocks up to off_cut */
};

/*
 * The hash of an unknown stack: the thread was off the CPU before the run began, and the kernel
 * cannot read the stack of a sleeping thread.
 */
#define SF_STACK_UNKNOWN 1ull

/* Keyed by a hash of (stack, state, wakers, lock, generation). */
struct sf_off_count {
	sf_u64 sum_ns, count, max_ns;
	/* hashes; a waker of 0 is unknown and ends the chain */
	sf_u64 stack, wakers[SF_OFF_CHAIN];
	struct sf_off_lock lock;
	sf_u32 pid, generation;
	sf_u16 state; /* enum sf_off_state */
	sf_u16 sent;  /* the stack's frames were sent */
	sf_u32 zero;
	char comm[SF_COMM];
};

/* One block with its times, CLOCK_MONOTONIC. */
struct sf_off_single {
	sf_u32 type;  /* SF_REC_SINGLE */
	sf_u32 state; /* enum sf_off_state; SF_OFF_R: it waited for a CPU from start to end */
	/* It waited for a CPU from woken to end; woken is end if that is not known. */
	sf_u64 start_ns, woken_ns, end_ns;
	sf_u64 stack, waker; /* hashes; a waker of 0 is unknown */
	sf_u32 pid, tid;
	sf_u32 waker_tid; /* 0: an interrupt, or unknown */
	sf_u32 call;	  /* the number of the call that it is in; 0: none */
	char comm[SF_COMM];
};

#define SF_OFF_HIST 32
/* Same key; slot 0: less than 1 us, slot n: 2^(n-1) us or more */
struct sf_off_hist {
	sf_u32 slot[SF_OFF_HIST];
};

struct sf_off_thread { /* key: the thread id */
	sf_u64 ns[SF_OFF_STATES];
	sf_u64 count, max_ns;
	sf_u64 ran_ns; /* CPU time within the run; 0 unless it was asked for */
	sf_u32 pid, zero;
	char comm[SF_COMM];
};

/* ---- Tables ---- */

/*
 * Rows are stored in chunks: one-element mmapable arrays of SF_CHUNK bytes in an array of maps.
 * User space writes them through mmap, and BPF reads them as plain memory. A location is chunk <<
 * 16 | offset / 16. Location 0 means "nothing": the first 16 bytes of chunk 0 are never used.
 *
 *   module (by id) -> directory: one location for each 64 KiB of file offsets
 *                  -> page: u16 index[257], 2 bytes of padding, u32 rows[index[256]]
 *
 * A row is (low 16 bits of the file offset of its first byte) | rule << 16. It extends to the next
 * row. The first row of a page has offset 0, so a search never leaves its page. index[b] is the
 * number of rows below b * 256 (a lower bound), so the row that covers `low` is among index[low >>
 * 8] - 1 .. index[(low >> 8) + 1] - 1.
 */
#define SF_CHUNK_SHIFT	    20
#define SF_CHUNK	    (1u << SF_CHUNK_SHIFT)
#define SF_MAX_CHUNKS	    1024
#define SF_LOC_CHUNK(loc)   ((loc) >> 16)
#define SF_LOC_OFFSET(loc)  (((loc)&0xffffu) << 4)
#define SF_PAGE_SHIFT	    16
#define SF_PAGE_INDEX	    257
#define SF_PAGE_ROWS	    (SF_PAGE_INDEX * 2 + 2) /* byte offset of the rows in a page */
#define SF_PAGE_MAX_ROWS    65535
#define SF_MODULE_BITS	    14
#define SF_CACHE_BITS	    12 /* cached rules, per scratch slot */
#define SF_CACHE_BYTES	    (8u << SF_CACHE_BITS)
#define SF_MAX_MODULES	    (1u << SF_MODULE_BITS)
#define SF_MODULE_PLACE(id) ((id) & (SF_MAX_MODULES - 1)) /* SF_MODULE_LIVES ids share a place */
#define SF_MODULE_LIVES	    ((sf_u32)(SF_FRAME_MODULE_MASK >> SF_MODULE_BITS) + 1)
#define SF_DIR_MAX	    (SF_CHUNK / 4) /* directory entries per module */

/*
 * A rule's 16 bits. Bit 15 clear: packed, in the form of the file's architecture.
 *
 * x86-64, frames whose RA is at CFA - 8:
 *   14     CFA base (0 rsp, 1 rbp)
 *   13..5  CFA offset / 8
 *   4..0   n: FP was saved at CFA - 8 n; 0: FP is unchanged
 * AArch64, where FP and RA are saved as a pair (a frame record), RA alone, or neither:
 *   14     CFA base (0 sp, 1 x29)
 *   13..6  CFA offset / 16
 *   5      RA alone
 *   4..0   n: saved at CFA - 16 n; 31: at CFA - CFA offset; 0: RA is in LR
 *
 * Bit 15 set: an index into the module's rules, or one of the two special values below.
 */
#define SF_RULE_INDEXED 0x8000u
#define SF_RULE_BASE_FP 0x4000u
#define SF_A64_RA_ALONE 0x20u
#define SF_A64_SLOT	0x1fu
#define SF_RULE_GAP	0xffffu /* no row here */
#define SF_RULE_END	0xfffeu /* RA undefined: the outermost frame */
#define SF_MAX_RULES	0x4000u

enum sf_rule_kind { /* same values as enum rule_kind in userspace/rows/row.h */
		    SF_K_NONE,
		    SF_K_SAME,
		    SF_K_UNDEF,
		    SF_K_CFA,
		    SF_K_CFA_MEM,
		    SF_K_REG,
		    SF_K_REG_MEM,
		    SF_K_INDEX_MEM,
};

#define SF_RULE_SIGNAL 1  /* flags: a signal frame */
#define SF_RULE_CHILD  4  /* code after a system call that creates a thread: see step_rule */
#define SF_RULE_PLT    2  /* cfa_off2 is added where (offset & 15) >= plt_at */
#define SF_RULE_LEADS  16 /* entry of hand-written code, which may lead to run-time code */
#define SF_RULE_GO     8  /* Go's runtime on another stack: it is a struct sf_go_rule */

struct sf_rule {
	sf_u8 cfa_kind, cfa_reg, ra_kind, ra_reg, fp_kind, fp_reg, bx_kind, flags;
	sf_s32 cfa_off, cfa_off2, ra_off, fp_off, bx_off;
	sf_u8 plt_at, zero[3];
};

/*
 * How to go on where Go's runtime has left the stack of a goroutine, or runs on the stack of its
 * thread (g0). g is the descriptor of a goroutine or of g0, m that of a thread. The first word of m
 * is g0's descriptor; a stack pointer and a pc are saved at g_sched in a g.
 */
enum sf_go_op {
	SF_GO_NONE,
	SF_GO_GOROUTINE, /* sp is that of m's goroutine */
	SF_GO_CALL, /* sp is that of the goroutine that called C: by a g and a depth on the stack */
	SF_GO_CALLBACK, /* C called Go: sp is g0's, and its first word the one before */
	SF_GO_VDSO,	/* CFA and RA are words of m */
	SF_GO_MORE,	/* pc and sp are the goroutine's; if m has none, as SF_GO_THREAD */
	SF_GO_THREAD,	/* pc and sp are g0's at the start of the thread */
};

struct sf_go_rule {    /* it takes the place of a struct sf_rule */
	sf_u8 op;      /* enum sf_go_op */
	sf_u8 g_m;     /* where m is in a g */
	sf_u8 g_sched; /* where sp is in a g; pc follows */
	sf_u8 call_g;  /* SF_GO_CALL: where the g and its depth are, from sp */
	sf_u8 call_depth;
	sf_u8 tls_slot, zero; /* tls is the place of a word with it, as an offset in the file */
	sf_u8 flags;	      /* SF_RULE_GO */
	sf_s32 tls;	      /* where g is, from the thread pointer; AArch64: 0: it is in x28 */
	sf_s32 m_off;	/* where the goroutine is in m; SF_GO_VDSO: where CFA is, RA follows */
	sf_s32 cfa_off; /* CFA = sp + this */
	sf_s32 ra_off;	/* RA = *(CFA + this); SF_GO_THREAD: the right RA, as a file offset */
	sf_s32 fp_off;	/* FP = *(CFA + this); 0: unknown */
	/* SF_GO_THREAD: if RA is not that, C has called Go; then pc is this file offset; 0: none */
	sf_s32 callback;
};

enum sf_module_state {
	SF_MOD_LOADING, /* requested */
	SF_MOD_READY,
	SF_MOD_NO_TABLE, /* the file has no unwind tables */
	SF_MOD_JIT,	 /* no ELF file */
	SF_MOD_RETRY,	 /* not loaded, or evicted: to be requested (again) */
	SF_MOD_FULL,	 /* table memory was full: to be requested (again) */
	SF_MOD_VOID,	 /* unused: another CPU entered the file first */
	SF_MOD_NO_PLACE, /* BPF only: no module id was left */
	SF_MOD_REFUSED,	 /* BPF only: its user meets too many new files */
};

#define SF_MODULE_TRACKS_BX 1  /* packed rows preserve rbx; else it is unknown after them */
#define SF_MODULE_LANG	    2  /* a language's runtime: struct sf_lang is before the directory */
#define SF_MODULE_MORE_ROWS 4  /* user space will make more rows after an SF_STOP_NO_ROW */
#define SF_MODULE_STARTS    8  /* greenlet's library, whose code is the first of stacks */
#define SF_MODULE_MAKES	    16 /* libcoro, which makes stacks: stack_made() */

struct sf_module {
	sf_u32 state; /* enum sf_module_state; written last when the rest changes */
	/* The id that the place has now; user space changes it only while no BPF program uses it */
	sf_u32 id;
	sf_u32 first_page; /* file offset >> SF_PAGE_SHIFT of the first directory entry */
	sf_u32 npages;
	sf_u32 dir;   /* location */
	sf_u32 rules; /* location */
	sf_u16 nrules, flags;
	/* Lookups of its mappings: counted by BPF, cleared by user space */
	sf_u32 used;
	/* No request before this time (CLOCK_MONOTONIC, ms mod 2^32); LOADING: for another user */
	sf_u32 retry_ms;
	/* The user to whom the tables are charged: the last one for whom they were requested */
	sf_u32 owner;
	struct sf_file_key key;
};

#define SF_EXCLUDED 16384 /* cgroups that the agent's rules exclude */

/*
 * Which tasks are measured, on and off the CPU: those that match each member that is not 0. A
 * command-line option fills a member, and task_wanted (bpf/core/filter.bpf.h) tests the member; the
 * struct is copied in between. Lists of process and thread ids are maps.
 */
struct sf_filter {
	sf_u64 cgroup;	     /* id of a cgroup v2; its descendants match, too */
	sf_u32 cgroup_level; /* its depth below the root cgroup */
	sf_u32 user;	     /* user id + 1 */
	sf_u32 comm_len;     /* bytes of comm */
	char comm[64];	     /* a pattern for names of threads: *, ? and plain bytes */
	sf_u32 zero;
};

/* Counters of a CPU, written by BPF only. Every sample updates those of the first cache line. */
struct sf_cpu_stats {
	/* Samples that passed the filters: = records received + lost */
	sf_u64 taken;
	sf_u64 cache_hits, window_reads;
	sf_u64 vma_walks;
	sf_u64 idle; /* interrupts of the idle task: no samples */
	/* Requests for tables; requests that did not fit the ring (they are repeated) */
	sf_u64 needs, needs_dropped;
	/* requests refused by the limit on new files per second (they are repeated) */
	sf_u64 needs_refused;
	/* ns in on_cpu and on_exec, or in off_switch and off_back; with cfg_want_cost */
	sf_u64 run_ns;
	sf_u64 lost[8];	  /* counts by enum sf_lost */
	sf_u64 off_taken; /* off-CPU: blocks counted or sampled */
	/* Threads whose state could not be allocated: their blocks are not seen */
	sf_u64 off_no_state;
	sf_u64 off_switches; /* switches counted with cfg_want_cost */
	sf_u64 zero[4];
};

_Static_assert(SF_LOST_MAX <= 8, "lost causes fit sf_cpu_stats");
_Static_assert(sizeof(struct sf_rule) == 32, "sf_rule layout");
_Static_assert(sizeof(struct sf_go_rule) == sizeof(struct sf_rule) &&
		       __builtin_offsetof(struct sf_go_rule, flags) ==
			       __builtin_offsetof(struct sf_rule, flags),
	       "sf_go_rule is told from sf_rule");
_Static_assert(sizeof(struct sf_module) == 64, "sf_module layout");
_Static_assert(sizeof(struct sf_filter) == 88, "sf_filter layout");
_Static_assert(sizeof(struct sf_cpu_stats) == 192, "sf_cpu_stats layout");
_Static_assert(SF_LOC_CHUNK(0xffffffffu) >= SF_MAX_CHUNKS - 1, "locations reach every chunk");
_Static_assert((0xffffu << 4) < SF_CHUNK, "locations stay inside a chunk");
_Static_assert(SF_PAGE_ROWS + 4 * SF_PAGE_MAX_ROWS <= SF_CHUNK, "the densest page fits a chunk");
_Static_assert(SF_MAX_RULES * sizeof(struct sf_rule) <= SF_CHUNK, "a module's rules fit a chunk");
_Static_assert(SF_MODULE_LIVES *SF_MAX_MODULES - 1 == SF_FRAME_MODULE_MASK,
	       "module ids fit a frame word");
_Static_assert((sf_u64)SF_DIR_MAX << SF_PAGE_SHIFT == 1ull << SF_FRAME_MODULE_SHIFT,
	       "a directory covers all offsets");
_Static_assert(SF_MAX_RULES <= 0xffff && SF_LANG_MAX <= 8 && SF_STOP_MAX <= 255,
	       "nrules, languages of a frame word and stop reasons fit");
_Static_assert(sizeof(struct sf_python) == 72, "sf_python layout");
_Static_assert(sizeof(struct sf_java) == 136, "sf_java layout");
_Static_assert(sizeof(struct sf_ruby) == 32, "sf_ruby layout");
_Static_assert(sizeof(struct sf_javascript) == 328, "sf_javascript layout");
_Static_assert(sizeof(struct sf_php) == 56 && sizeof(struct sf_perl) == 16, "sf_php layout");
_Static_assert(sizeof(struct sf_lang) == 512, "sf_lang layout");
_Static_assert(sizeof(struct sf_code) == 28 + 2 * SF_CODE_TEXT + SF_CODE_LINES, "sf_code layout");
_Static_assert(sizeof(struct sf_thread_link) == 24, "sf_thread_link layout");
_Static_assert(sizeof(struct sf_off_count) == 104 && sizeof(struct sf_off_single) == 80, "sf_off");
_Static_assert(sizeof(struct sf_off_thread) == 104, "sf_off_thread layout");
_Static_assert(sizeof(struct sf_sample) == 64, "sf_sample layout");
_Static_assert(sizeof(struct sf_event_site) == 24 && sizeof(struct sf_event_test) == 16,
	       "layouts of events");
_Static_assert(sizeof(struct sf_call) == 48 &&
		       sizeof(struct sf_call_stats) == 64 + 8 * SF_CALL_HIST,
	       "sf_call layout");
_Static_assert(sizeof(struct sf_file_key) == 24, "sf_file_key layout");
_Static_assert(sizeof(struct sf_need) == 80, "sf_need layout");
_Static_assert(sizeof(struct sf_copy_key) == 32 && sizeof(struct sf_copy) == 24, "sf_copy layout");
_Static_assert(sizeof(struct sf_copy_need) == 64, "sf_copy_need layout");

#endif
