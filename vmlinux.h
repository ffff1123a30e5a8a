/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The kernel types that sfbpf's BPF programs use, and no more. Every struct under the
 * preserve_access_index attribute is a CO-RE subset: only names matter, libbpf fills in the running
 * kernel's offsets. To use another field, add it by the kernel's name and type: its place and the
 * fields around it do not matter. Kernels differ in places; those variants carry a ___suffix, which
 * CO-RE ignores when it looks for the type, and the kernel commit beside it.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum {
	BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };
enum { BPF_F_USER_STACK = 256 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

/* Fixed by the architecture's user ABI (arch/ARCH/include/uapi/asm/ptrace.h): no CO-RE. */
#ifdef __TARGET_ARCH_arm64
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
#elif defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};
typedef struct pt_regs bpf_user_pt_regs_t;
#else
#error "no registers for this architecture"
#endif
struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period, addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct maple_range_64 {
	void *parent;
	unsigned long pivot[15];
	void *slot[16];
};
struct maple_tree {
	void *ma_root;
};

typedef struct {
	long long counter;
} atomic64_t;
struct mutex {
	atomic64_t owner;		/* not with PREEMPT_RT */
};
struct rw_semaphore {
	atomic64_t owner;		/* likewise */
};

/* arch/ARCH/include/asm/mmu.h */
#ifdef __TARGET_ARCH_arm64
typedef struct {
	atomic64_t id;			/* ASID and its generation */
	void *vdso;
} mm_context_t;
struct pt_regs {
	int syscallno;			/* -1: the kernel was not entered by a system call */
};
#elif defined(__TARGET_ARCH_x86)
typedef struct {
	unsigned long long ctx_id;	/* of this address space, never used again */
	void *vdso;
} mm_context_t;
#endif

typedef struct seqcount {
	unsigned int sequence;
} seqcount_t;

struct file_system_type {
	const char *name;
};
struct user_namespace {
	int level;
};
struct backing_dev_info {
	unsigned long long id;
};
struct super_block {
	unsigned int s_dev;
	struct backing_dev_info *s_bdi;
	unsigned long s_magic;
	struct file_system_type *s_type;
	struct user_namespace *s_user_ns;
};
struct rb_node;
struct rb_root {
	struct rb_node *rb_node;
};
struct rb_root_cached {
	struct rb_root rb_root;
};
struct address_space {
	struct rb_root_cached i_mmap;
};
struct inode {
	struct address_space *i_mapping;
	struct super_block *i_sb;
	unsigned long i_ino;
	unsigned int i_flags;
	long long i_size;
	unsigned int i_generation;
	long long i_ctime_sec;		/* since 3aa63a569c64 (6.11) */
	unsigned int i_ctime_nsec;
};
struct timespec64 {
	long long tv_sec;
	long tv_nsec;
};
struct inode___v66 {
	struct timespec64 __i_ctime;	/* 13bc24457850 (6.6) to 6.10 */
};
struct inode___v61 {
	struct timespec64 i_ctime;	/* before 6.6 */
};
struct file {
	struct inode *f_inode;
};
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct mm_struct *vm_mm;
	struct file *vm_file;
	unsigned int vm_lock_seq;	/* 5e31275cc997 (6.4), with CONFIG_PER_VMA_LOCK */
};
struct xol_area {
	unsigned long vaddr;
};
struct uprobes_state {
	struct xol_area *xol_area;	/* with CONFIG_UPROBES */
};
struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next;
};
struct uprobe;
struct uprobe_task {
	unsigned long vaddr, xol_vaddr;
	struct uprobe *active_uprobe;
	struct return_instance *return_instances;
	struct return_instance *ri_pool;	/* 8622e45b5da1 (6.14): entries that are free */
};
struct mm_struct {
	struct maple_tree mm_mt;
	unsigned long task_size, start_code, end_code, start_data, start_stack;
	struct file *exe_file;
	mm_context_t context;
	struct uprobes_state uprobes_state;
	seqcount_t mm_lock_seq;		/* eb449bd96954 (6.14), with CONFIG_PER_VMA_LOCK */
};
struct mm_struct___memcg {
	struct task_struct *owner;	/* with CONFIG_MEMCG */
};
struct mm_struct___v64 {
	int mm_lock_seq;		/* 5e31275cc997 (6.4) */
};
typedef struct { unsigned int val; } kuid_t;
struct cred {
	kuid_t uid;
};
struct thread_info {
	unsigned int cpu;
};
struct kernfs_node {
	unsigned long long id;
};
struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[];	/* since 7f203bc89eb6 (6.1) */
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct rq {
	u64 clock;
};
struct cfs_rq {
	struct rq *rq;
};
struct sched_entity {
	struct cfs_rq *cfs_rq;
};
struct sched_info {
	unsigned long long last_arrival;
};
struct thread_struct {
	unsigned long sp;	/* x86 */
	unsigned long fsbase;	/* x86 */
	struct {
		unsigned long tp_value;
	} uw;			/* arm64 */
};
struct task_struct {
	struct thread_info thread_info;
	void *stack;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	struct mm_struct *mm;
	struct sched_entity se;
	struct sched_info sched_info;
	int exit_state;
	int pid, tgid;
	const struct cred *cred;
	char comm[16];
	struct css_set *cgroups;
	struct uprobe_task *utask;	/* with CONFIG_UPROBES */
	struct thread_struct thread;
};
struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct file *file;
};
struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

#pragma clang attribute pop

/*
 * include/linux/sched.h: threads of the kernel, of io_uring, and others of a process (vhost; 6.4)
 */
#define PF_KTHREAD 0x00200000
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000
#define PF_NO_USER (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)
#define VM_WRITE 0x2		/* include/linux/mm.h */
#define VM_EXEC 0x4
#define TMPFS_MAGIC 0x01021994	/* include/uapi/linux/magic.h */
#define HUGETLBFS_MAGIC 0x958458f6
#define S_PRIVATE 0x200		/* include/linux/fs.h */

#endif
