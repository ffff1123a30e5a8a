/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* All shared maps, the knobs, and the per-CPU scratch, with their writers, readers and sizes. */
#ifndef SFBPF_MAPS_BPF_H
#define SFBPF_MAPS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "core/bounds.h"
#include "core/row_step.h"
#include "border/sfbpf_shared.h"

#define SF_PAGE_MIN   4096 /* the smallest page of any kernel */
#define SF_WINDOW     1024 /* bytes of the user stack per read; a power of two */
#define SF_HASH_BLOCK 16
#define SF_VMAS	      8 /* mappings cached per address space */
#define SF_SPACES     4 /* address spaces cached; a power of two */
#define SF_SLOTS      (SF_VMAS * SF_SPACES)
#define SF_LOG	      128 /* words noted per stack; a power of two */

#define SF_LINE __attribute__((aligned(64))) /* mmapable maps are page-aligned */

/* sf_vma.flags with SF_MOD_JIT; otherwise those are SF_MODULE_* */
#define SF_VMA_SHARED 1 /* memory that processes share */
#define SF_VMA_NEW    2 /* copied_learn has not looked at it */
#define SF_VMA_PROBES 8 /* [uprobes]: see probe.bpf.h */
#define SF_VMA_ASKED  4 /* it may be a copy of code, which is not known yet (struct sf_copy) */

struct sf_vma {
	u64 start, len; /* virtual address, bytes */
	u64 delta;	/* file offset = address + delta */
	u64 word;	/* the module's bits of the frame word */
	u32 state;	/* enum sf_module_state; SF_MOD_JIT for memory without a file */
	u32 zero;
	u32 first_page, npages, dir, rules, nrules, flags; /* struct sf_tables */
};

/* Identifies a cached mapping after other mappings have changed (vma_same). */
struct sf_vma_seen {
	u64 vma;      /* struct vm_area_struct; 0: cannot be identified */
	u32 lock_seq; /* its vm_lock_seq */
	u32 zero;
};

/*
 * An address space whose mappings are cached from sample to sample. The cache is exact: ctx_id is
 * never reused, and mm_lock_seq changes with every write lock of the mappings. If mm_lock_seq has
 * changed, or the kernel has none, each mapping is checked first. tables_epoch changes when tables
 * are evicted; then the whole cache is dropped.
 */
struct sf_space {
	u64 ctx_id;
	u32 seq;
	u32 next; /* the slot to replace when all are used, modulo SF_VMAS */
	/* A file in it still has no tables: the next sample checks again */
	u32 provisional;
	u32 epoch; /* tables_epoch at the time of the lookup */
};

/* ---- Languages (lang/lang.bpf.h) ---- */

#define SF_LANG_WINDOW 1024 /* bytes of frames per read; a power of two */
#define SF_LANG_OBJECT 256  /* bytes of an object; a power of two */

#define SF_PC_FRAMES 32	   /* frames at a pc */
#define SF_CODE_PCS  16384 /* a power of two */

/* The frames that compiled code of Java or JavaScript has at an address, innermost first. */
struct sf_code_pc {
	u64 at, space;
	u64 cookie;   /* the code's cookie, as memory is reused */
	u64 code;     /* JavaScript: the code's first address */
	u32 epoch;    /* code_epoch, as the words have ids */
	u32 n;	      /* JavaScript: without that of the function itself */
	u32 position; /* JavaScript: position of that one */
	u32 zero;
	u64 words[SF_PC_FRAMES];
};

/*
 * What a walk begins with: all zero. Each sample clears it, also in processes without a language,
 * so it is one cache line.
 */
struct sf_lang_begin {
#define LANGUAGE(number, id, name, frame_type) struct sf_##name##_begin name;
#include "border/languages.def"
#undef LANGUAGE
};

/* What languages spent of a sample's limits. */
struct sf_lang_spent {
	u32 sent; /* records of code */
#define LANGUAGE(number, id, name, frame_type) struct sf_##name##_spent name;
#include "border/languages.def"
#undef LANGUAGE
};

#define SF_LANG_TEXT 32 /* bytes at the end of a name that tell it from another one */

/* Each sample sets fields of the first two cache lines: those up to pc.at. */
struct sf_lang_walk {
	struct sf_lang_begin begin;
	struct sf_lang_spent spent;
	u32 language;	      /* language of the last frames; SF_LANG_NONE: none in this stack */
	u32 stop;	      /* enum sf_stop: why frames are missing */
	u32 end;	      /* the place after the last activation's frames */
	s32 seen;	      /* slot of the outermost file of a runtime on the stack; -1: none */
	u64 code;	      /* the code object in hand: its address */
	struct sf_code_pc pc; /* what java_scopes or js_scopes found */
	u64 cookie;	      /* cookie of the code object in hand */
	u64 body;	      /* a language's own part of the object's sf_code_entry */
	u32 id;		      /* id of that object; 0: not looked up yet */
	u32 owed;	      /* code_id: its description was not sent yet */
	u32 loop;	      /* the language whose evaluation loop is in hand */
	u32 first;	      /* the place of this activation's first frame in frames[] */
	u32 win_len;
	u64 win_base;
	/* The frame of the evaluation loop: its word, and its sp. Its CFA is the caller's sp. */
	u64 word, sp;
#define LANGUAGE(number, id, name, frame_type) struct sf_##name##_walk name;
#include "border/languages.def"
#undef LANGUAGE
	struct sf_vma other; /* a file that a language has asked for */
	/* The text in hand; the file of the code in hand, and the hash of its name */
	u64 text[SF_LANG_TEXT / 8], file, file_hash;
	u8 object[SF_LANG_OBJECT + 8];
	u8 window[SF_LANG_WINDOW + 8];
	struct sf_code rec;
};

#define SF_LEAVE_CODE 64 /* bytes; a power of two */

/* A walk along the instructions of run-time code to its return (leave.bpf.h). */
struct sf_leave {
	u64 sp, fp, bx; /* values after the instructions so far */
	u32 flags;	/* SF_REGS_BX: bx is known */
	u32 at, len;	/* the next instruction; bytes in code */
	u32 state;	/* LEAVE_ON, LEAVE_RETURN, LEAVE_UNKNOWN */
	u32 loaded;	/* r10 or r11 has a new value */
	u32 maybe;	/* leaf_step: a word may be the return address */
	u64 caller;	/* what made the frame at rbp begins here; 0: not known */
	u64 word, to;	/* the next word of the stack; what the call before the last one leads to */
	u32 reach;	/* how far the pc is after that */
	u32 height;	/* bytes that the code there has pushed up to `at` */
	u32 counts, zero;  /* the word may be an address in that function */
	u32 rex, is_short; /* prefixes of the instruction at `at`; operands of 16 bits */
	u8 code[SF_LEAVE_CODE + 8];
};

#define SF_BRIDGE_CODE 64 /* bytes of a function that are read */

/* A search of the stack above run-time code (bridge.bpf.h). */
struct sf_bridge {
	u64 sp, fp;		/* values in that code */
	u64 at;			/* the next word of the stack */
	u64 ra, before;		/* the current return address, and the bytes of code before it */
	u64 to;			/* what the call there calls; 0: not looked up */
	u32 row;		/* the return address's row: SF_RULE_* */
	u64 low, high;		/* addresses of code of files are between these */
	u64 stack, stack_len;	/* the mapping with sp, which has no code */
	u32 left;		/* how much may still be looked at (BRIDGE_WORDS) */
	u32 reach;		/* bytes above sp */
	u32 far;		/* enum bridge_far */
	u32 stop;		/* enum sf_stop: why the walk ended without a bridge */
	u32 sure;		/* only a call that leads into run-time code counts */
	u64 doubt_at, doubt_ra; /* bridge_join: at and ra that were put off; doubt_ra 0: none */
	u32 doubt_row;		/* their row */
	u32 joins;		/* bridge_join looks at the frames that follow */
	u32 language;		/* sf_lang_walk.language where the first gap begins */
	u32 here;		/* sf_lang_walk.language where the last gap begins */
	u8 code[SF_BRIDGE_CODE];
};

/*
 * The work space of one program on one CPU. It is in map memory, not on the BPF stack: the verifier
 * does not track scalars in maps, so the loop callbacks converge at once (with scalars on the stack
 * they never do). The fields that every sample uses come first, packed into cache lines: between
 * two samples other code evicts them from the CPU's caches.
 */
struct sf_scratch {
	struct sf_regs regs;
	u64 mm; /* struct mm_struct of the task */
	u64 win_base;
	u32 win_len; /* bytes of the window that are valid, from win_base */
	u32 busy;
	u32 n;	  /* user frames so far */
	u32 stop; /* enum sf_stop, once the loop is over */
	/* First reason for a step by frame pointer; SF_STOP_COMPLETE: none yet */
	u32 cause;
	u32 space;    /* which of spaces[] this sample uses */
	u32 vma_last; /* slot in vmas[] of the last frame */
	u32 pid;
	u32 reads, hits; /* window reads and cache hits of this sample */
	/* vma_find: the slot for a new mapping; SF_SLOTS: the next one in turn */
	u32 vma_put;
	u32 lang_at; /* LANG_NATIVE, LANG_LOOP, LANG_INSIDE, LANG_BRIDGE */
	u64 go_sp;   /* go_callback: where the next one is; 0: not known yet */
	u64 absent;  /* see code_before */
	/*
	 * Places in frames[]: behind the last run-time code that the walk met, and of the first
	 * SF_FRAME_BRIDGE. 0: none
	 */
	u32 gap, bridged;
	u32 faults; /* see code_before */
	/* SF_REGS_GUESS: the walk broke, and was begun again with all return addresses checked */
	u32 checked;
	u64 begin_pc, begin_sp; /* pc and sp of the innermost frame, for walk_again */
	u32 begin_flags;
	/* A step by frame pointer may have left out a caller: enum sf_stop, in place of COMPLETE */
	u32 skipped;
	struct sf_space spaces[SF_SPACES] SF_LINE;
	struct sf_vma_seen seen[SF_SLOTS];
	struct sf_vma vmas[SF_SLOTS] SF_LINE; /* SF_VMAS for each space */
	struct sf_sample sample SF_LINE;
	/* directly after sample: one record */
	u64 frames[SF_MAX_USER + SF_MAX_KERNEL + SF_LINK_WORDS];
	u64 pad[SF_HASH_BLOCK]; /* off-CPU frames are hashed in whole blocks */
	u8 window[SF_WINDOW + 8] SF_LINE;
	/* The rule of an indexed row; too large for the BPF stack in off-CPU programs */
	struct sf_rule rule;
	u64 log_base, log_far, log_hash; /* see note_word */
	u64 log_fp; /* source of the frame pointer: LOG_FP_* or the address it was read from */
	u32 log_n, log_fp_first;
	u16 log[SF_LOG];
	struct sf_bridge bridge;
	struct sf_leave leave;
	struct sf_copy_need copied; /* what copied_near hands to copied_learn */
	struct sf_lang_walk lang SF_LINE;
	u64 node[32]; /* kernels without bpf_rdonly_cast: copy of a maple tree node */
} SF_LINE;

_Static_assert(__builtin_offsetof(struct sf_scratch, frames) ==
		       __builtin_offsetof(struct sf_scratch, sample) + sizeof(struct sf_sample),
	       "frames follow the sample");
_Static_assert(__builtin_offsetof(struct sf_lang_walk, pc.space) <= 128,
	       "what each sample sets of sf_lang_walk is two cache lines");

/*
 * The key is a slot. Programs that can interrupt one another on a CPU use different slots. User
 * space sets the size. With n possible CPUs, on-CPU samples use [0, n) and exec uses [n, 2n).
 * Off-CPU programs have their own map (off_scratch.bpf.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_scratch);
} scratch SEC(".maps");

static __always_inline struct sf_scratch *scratch_of(u32 slot)
{
	return bpf_map_lookup_elem(&scratch, &slot);
}

/* Place i, below SF_MAX_USER, among the user frames. */
static __always_inline u64 *frame_at(struct sf_scratch *s, u32 i)
{
	return &s->frames[INDEX(i, SF_MAX_USER)];
}

/* Appends a user frame. false: there is no room. */
static __always_inline bool frame_push(struct sf_scratch *s, u64 word)
{
	u32 n = s->n;

	if (n >= SF_MAX_USER)
		return false;
	*frame_at(s, n) = word;
	s->n = n + 1;
	return true;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_cpu_stats);
} cpu_stats SEC(".maps");

static __always_inline struct sf_cpu_stats *stats_here(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpu_stats, &cpu);
}

/* Return address -> rule, by scratch slot; direct-mapped and exact (see row.bpf.h). */
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

/* File -> module id. BPF inserts a file when it first meets it; user space removes it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_MAX_MODULES);
	__type(key, struct sf_file_key);
	__type(value, u32);
} files SEC(".maps");

/*
 * Mappings without a file that may be copies of a file's code. BPF inserts them with the request,
 * user space fills them in.
 */
#define SF_COPIES 512
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SF_COPIES);
	__type(key, struct sf_copy_key);
	__type(value, struct sf_copy);
} copies SEC(".maps");

/*
 * The key is the place of a module id. BPF fills in key and owner when it first meets the file, and
 * counts `used`. User space writes the other fields through mmap, assigns the next id of the place,
 * and evicts tables (see userspace/kern/tables.h).
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SF_MAX_MODULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct sf_module);
} modules SEC(".maps");

/*
 * The time up to which requests for tables have used up each user's grant (see need_allowed). Users
 * that share an entry share the grant. Which do depends on a key that is different in each run
 * (grant_at); root has its own entry.
 */
#define SF_GRANTS 4096 /* entries of users other than root; root's is the last one */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SF_GRANTS + 1);
	__type(key, u32);
	__type(value, u64);
} grants SEC(".maps");

/* What `grants` has, for new code objects (code_allowed). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SF_GRANTS + 1);
	__type(key, u32);
	__type(value, u64);
} code_grants SEC(".maps");

/*
 * Code objects of languages -> their ids. An address is only valid with the cookie that the object
 * had, as memory is reused. User space empties the map when it is nearly full.
 */
struct sf_code_key {
	u64 space, addr; /* MM_ID */
};

struct sf_code_entry {
	u64 cookie;
	u32 id;
	u32 owed; /* not sent yet: 1 + tries left */
	u64 body; /* sf_lang_walk.body */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_MAX_CODES);
	__type(key, struct sf_code_key);
	__type(value, struct sf_code_entry);
} codes SEC(".maps");

/*
 * Keys are from code_pc_key. Pcs with the same key replace each other, and are found again. It
 * takes memory only once there is Java or JavaScript, or Perl and lines.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_CODE_PCS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct sf_code_pc);
} code_pcs SEC(".maps");

struct chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, SF_CHUNK);
};

/*
 * The row tables. User space creates a chunk and fills it through mmap; only then are there
 * locations in it. It removes empty chunks.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SF_MAX_CHUNKS);
	__uint(key_size, 4);
	__array(values, struct chunk_map);
} chunks SEC(".maps");

/* Samples and needs, to user space. Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} ring SEC(".maps");

/*
 * Filters: sets of process and thread ids. Written by user space before attach, and by fork and
 * exit with follow_forks.
 */
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

/*
 * A filter of the agent: ids of cgroups whose tasks are not sampled. Written by user space at any
 * time (collector_exclude). Entries come and go with containers, so none is allocated before.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SF_EXCLUDED);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, u8);
} excluded SEC(".maps");

/*
 * Knobs, constant after load: the verifier removes code that a knob disables. They have their own
 * section, so that both objects (sfbpf.bpf.c, offcpu.bpf.c) have them at the same offsets. User
 * space sets them once and copies the section.
 */
#define KNOB const volatile SEC(".rodata.knobs")
KNOB bool cfg_user = true, cfg_kernel = true;
KNOB bool cfg_by_pid = false, cfg_by_tid = false;
KNOB bool cfg_by_excluded = false;
/* The only id in pids, in tids; 0: there may be several */
KNOB __u32 cfg_only_pid = 0, cfg_only_tid = 0;
KNOB bool cfg_note_words = false;  /* note_word */
KNOB __u32 cfg_languages = ~0;	   /* 1 << enum sf_language: those that are walked */
KNOB bool cfg_native = false;	   /* record evaluation loops, too */
KNOB bool cfg_lines = false;	   /* positions in code, and line tables */
KNOB bool cfg_want_cgroup = false; /* costs 15 ns per sample */
KNOB bool cfg_want_link = false;   /* SF_SAMPLE_LINKED */
KNOB bool cfg_want_cost = false;   /* sf_cpu_stats.run_ns */
KNOB struct sf_filter cfg_filter = {};
KNOB __u64 cfg_event_period = 1; /* tracepoints and probes: one in this many hits is sampled */
KNOB bool cfg_by_cpu = false;	 /* cpu_wanted() */
KNOB __u64 cfg_cpu_mask[128] = {};
KNOB bool cfg_many_events = false; /* perf events have cookies: the numbers of their sites */
KNOB __u64 cfg_latency_us = 0;	   /* latency.bpf.h: the period; 0: samples count for 1 */
KNOB bool cfg_calls = false;	   /* only what happens in calls is taken (call.bpf.h) */
KNOB bool cfg_call_g = false;	   /* calls are those of goroutines, not of threads */
KNOB bool cfg_call_words = false;  /* the word at the entry's stack pointer is not changed */
KNOB __u32 cfg_ncpus = 1;
KNOB __u32 cfg_page_shift = 12;
/*
 * Ranges of ids of which each belongs to one user (userspace/base/user_account.h): he could be all
 * of them, and counts as the first one.
 */
#define SF_USER_RANGES 64
KNOB __u32 cfg_nranges = 0;
KNOB __u32 cfg_range_first[SF_USER_RANGES] = {}, cfg_range_count[SF_USER_RANGES] = {};
KNOB __u64 cfg_hash_key = 1;	     /* odd; random in each run */
KNOB __u64 cfg_wake_bytes = 1 << 18; /* wake the consumer when the ring holds this much */

/*
 * Free module ids: a ring that user space fills and BPF takes from when it meets a new file. 0 is
 * not an id.
 */
/* A separate map, because both objects share it together with the tables */
#define TABLES_STATE SEC(".data.tables")
__u32 free_ids[SF_MAX_MODULES] TABLES_STATE = {};
/* BPF takes at head, user space adds at tail; modulo 2^32 */
__u32 free_head TABLES_STATE = 0, free_tail TABLES_STATE = 0;
/* Changed by user space when tables are evicted, so that BPF drops what it cached of them */
__u32 tables_epoch TABLES_STATE = 0;
__u32 code_ids TABLES_STATE = 0;   /* the last id of a code object */
__u32 code_epoch TABLES_STATE = 0; /* counted by user space when it has emptied the codes */
__u32 remote_tid = 0;		   /* remote.bpf.c: the task whose memory is read */

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak; /* 6.2 */
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

#endif
