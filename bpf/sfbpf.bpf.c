// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Entry points: the on-CPU sample, and what keeps the picture of files complete. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "sfbpf_shared.h"
#include "maps.bpf.h"
#include "kload.bpf.h"
#include "filter.bpf.h"
#include "vma.bpf.h"
#include "unwind.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The user part from s->regs. err: what reading them came to, SF_STEP_GO or a stop. */
static __always_inline void sample_unwind(struct sf_scratch *s, u32 slot, int err)
{
	if (err != SF_STEP_GO) {
		s->frames[0] = SF_FRAME_RAW << SF_FRAME_KIND_SHIFT | (s->regs.pc & SF_FRAME_ADDR_MASK);
		s->sample.n_user = err == SF_STOP_COMPAT;
		s->sample.stop = err;
		return;
	}
	unwind_user(s, slot);
	s->sample.n_user = s->n;
	s->sample.stop = s->stop;
}

/* Fills the sample's head; the frames follow. */
static __always_inline void sample_head(struct sf_scratch *s, u64 task, u32 cpu, u32 pid, u32 tid)
{
	struct sf_sample *rec = &s->sample;

	rec->type = SF_REC_SAMPLE;
	rec->cpu = cpu;
	rec->time_ns = cfg_want_time ? bpf_ktime_get_ns() : 0;
	rec->pid = pid;
	rec->tid = tid;
	rec->cgroup_id = cfg_want_cgroup ? bpf_get_current_cgroup_id() : 0;
	rec->weight = 1;
	rec->n_user = rec->n_kernel = 0;
	rec->stop = SF_STOP_COMPLETE;
	rec->flags = 0;
	rec->zero = 0;
	*(u64 *)&rec->comm[0] = kload(KADDR(task, struct task_struct, comm));
	*(u64 *)&rec->comm[8] = kload(KADDR(task, struct task_struct, comm) + 8);
}

static __always_inline void sample_kernel_part(struct sf_scratch *s, void *ctx)
{
	u32 n = s->sample.n_user;
	long got;

	asm volatile("" : "+r"(n));	/* see vma_at */
	if (n > SF_MAX_USER)
		return;
	got = bpf_get_stack(ctx, &s->frames[n], SF_MAX_KERNEL * 8, 0);
	if (got > 0)
		s->sample.n_kernel = got / 8;
}

static __always_inline void sample_send(struct sf_scratch *s, struct sf_cpu_stats *st)
{
	u32 len = sizeof(struct sf_sample) + 8 * ((u32)s->sample.n_user + s->sample.n_kernel);
	u64 flags = BPF_RB_NO_WAKEUP;

	if (len > sizeof(struct sf_sample) + 8 * (SF_MAX_USER + SF_MAX_KERNEL))
		return;
	/* A wake-up is an interrupt (5 us in a VM): the consumer drains on a timer, and is woken only when the ring fills. */
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= cfg_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&ring, &s->sample, len, flags))
		st->lost[SF_LOST_RING_FULL]++;
}

#include "offcpu.bpf.h"

/* Our own time on this CPU, in ns; two clock readings a sample, unlike kernel.bpf_stats for our programs only. */
static __always_inline void add_cost(u64 start)
{
	struct sf_cpu_stats *st = stats_here();

	if (st)
		__sync_fetch_and_add(&st->run_ns, bpf_ktime_get_ns() - start);
}

static __always_inline void sample_user_part(struct sf_scratch *s, struct bpf_perf_event_data *ctx, u64 task, u64 mm, u32 slot,
					     bool user_mode)
{
	int err;

	s->mm = mm;
	s->pid = s->sample.pid;
	s->sample.flags |= SF_SAMPLE_USER;
	err = user_mode ? regs_of_event(&s->regs, ctx) : regs_of_current(&s->regs, task);
	regs_of_mm(&s->regs, mm);
	sample_unwind(s, slot, err);
}

static __always_inline int take_sample(struct bpf_perf_event_data *ctx, u32 cpu)
{
	u64 task = bpf_get_current_task();
	u32 tid = KLOAD32(task, struct task_struct, pid), pid = KLOAD32(task, struct task_struct, tgid);
	struct sf_scratch *s = scratch_of(cpu);
	struct sf_cpu_stats *st = bpf_map_lookup_elem(&cpu_stats, &cpu);
	bool user_mode = regs_user_mode(ctx);
	u64 mm;

	if (!s || !st)
		return 0;
	if (!tid) {
		st->idle++;
		return 0;
	}
	if (!task_wanted(task, pid, tid))
		return 0;
	st->taken++;
	s->reads = s->hits = 0;
	if (s->busy) {
		st->lost[SF_LOST_BUSY]++;
		return 0;
	}
	s->busy = 1;
	sample_head(s, task, cpu, pid, tid);
	if (!user_mode)
		s->sample.flags |= SF_SAMPLE_IN_KERNEL;
	mm = KLOAD(task, struct task_struct, mm);
	if (mm && !(KLOAD32(task, struct task_struct, flags) & PF_KTHREAD)) {
		if (cfg_user)
			sample_user_part(s, ctx, task, mm, cpu, user_mode);
		else
			s->sample.flags |= SF_SAMPLE_USER;
	}
	if (cfg_kernel && !user_mode)
		sample_kernel_part(s, ctx);
	st->window_reads += s->reads;
	st->cache_hits += s->hits;
	sample_send(s, st);
	s->busy = 0;
	return 0;
}

SEC("perf_event")
int on_cpu(struct bpf_perf_event_data *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 start = cfg_want_cost ? bpf_ktime_get_ns() : 0;

	take_sample(ctx, cpu);
	if (cfg_want_cost)
		add_cost(start);
	return 0;
}

/* Asks for the file at an address of the current task, if it is new. */
static __always_inline void need_at(u64 mm, u64 addr, u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);

	if (!s)
		return;
	s->mm = mm;
	s->pid = bpf_get_current_pid_tgid() >> 32;
	space_enter(s, slot);
	vma_find(slot, addr);
}

/*
 * A program starts: ask for its file at once, not at its first sample, so that even a process of
 * 20 ms is unwound. Its scratch is the second half of the array: this is no perf event, they may nest.
 */
SEC(TRACEPOINT "sched_process_exec")
int on_exec(void *ctx)
{
	u64 task = bpf_get_current_task();
	u64 mm = KLOAD(task, struct task_struct, mm);
	u64 ids = bpf_get_current_pid_tgid();
	u32 slot = cfg_ncpus + bpf_get_smp_processor_id();

	u64 start = cfg_want_cost ? bpf_ktime_get_ns() : 0;

	if (!mm || !task_wanted(task, ids >> 32, ids))
		return 0;
	need_at(mm, KLOAD(mm, struct mm_struct, start_code), slot);
	if (cfg_want_cost)
		add_cost(start);
	return 0;
}

/* With a command to follow: its descendants count too. ctx: parent, child. */
SEC("?" TRACEPOINT "sched_process_fork")
int on_fork(u64 *ctx)
{
	u32 parent = KLOAD32(ctx[0], struct task_struct, tgid);
	u32 child = KLOAD32(ctx[1], struct task_struct, tgid);
	u8 one = 1;

	if (parent != child && bpf_map_lookup_elem(&pids, &parent))
		bpf_map_update_elem(&pids, &child, &one, BPF_ANY);
	return 0;
}

/* The last thread of a process may outlive its leader, so this is the end of the thread with tid == tgid only at the very end. */
SEC("?" TRACEPOINT "sched_process_free")
int on_free(u64 *ctx)
{
	u32 pid = KLOAD32(ctx[0], struct task_struct, tgid);
	u32 tid = KLOAD32(ctx[0], struct task_struct, pid);

	if (pid == tid)
		bpf_map_delete_elem(&pids, &pid);
	return 0;
}

/* Every file that some process has mapped executable, once: before sampling starts, and of a command when it has. Records are struct sf_need. */
SEC("iter/task_vma")
int mapped_files(struct bpf_iter__task_vma *ctx)
{
	u64 vma = 0, task = 0;
	struct sf_file_key key = {};
	struct sf_need need;
	u64 inode;
	struct sf_module *m;
	bool is_new = false;	/* or to be asked for again */
	u32 why, pid;

	/* As plain numbers: kload() computes addresses, which the verifier does not allow on typed pointers. */
	bpf_probe_read_kernel(&vma, sizeof(vma), &ctx->vma);
	bpf_probe_read_kernel(&task, sizeof(task), &ctx->task);
	if (!vma || !task || !(KLOAD(vma, struct vm_area_struct, vm_flags) & VM_EXEC))
		return 0;
	pid = KLOAD32(task, struct task_struct, tgid);
	if (!pid_wanted(pid))
		return 0;
	inode = vma_inode(vma);
	if (!inode)
		return 0;
	inode_key(inode, &key);
	m = module_known(&key);
	if (m)
		is_new = retry_due(m);
	else
		m = module_new(&key, task_owner(task), &is_new, &why);
	if (!m || !is_new)
		return 0;
	fill_need(&need, vma, inode, m, pid);
	bpf_seq_write(ctx->meta->seq, &need, sizeof(need));
	return 0;
}

/*
 * Of the files that user space has open, those that nobody maps any more, as module ids. A file's inode knows its mappings, so
 * this costs as much as there are files, however many processes there are.
 */
SEC("iter/task_file")
int unmapped_files(struct bpf_iter__task_file *ctx)
{
	struct sf_file_key key = {};
	struct sf_module *m;
	u64 file = 0, inode;
	u32 id;

	bpf_probe_read_kernel(&file, sizeof(file), &ctx->file);	/* see mapped_files */
	inode = file ? KLOAD(file, struct file, f_inode) : 0;
	if (!inode || KLOAD(KLOAD(inode, struct inode, i_mapping), struct address_space, i_mmap.rb_root.rb_node))
		return 0;
	inode_key(inode, &key);
	m = module_known(&key);
	if (!m)
		return 0;
	id = m->id;
	bpf_seq_write(ctx->meta->seq, &id, sizeof(id));
	return 0;
}

/*
 * The name of a kernel address, asked for by user space one at a time (BPF_PROG_TEST_RUN): a few thousand distinct
 * addresses cost less than reading the 120,000 lines of /proc/kallsyms, and modules that come later are named too.
 */
__u64 kname_addr = 0;
char kname_text[160] = "";

SEC("syscall")
int kernel_name(void *ctx)
{
	u64 addr = kname_addr;

	bpf_snprintf(kname_text, sizeof(kname_text), "%ps", &addr, sizeof(addr));
	return 0;
}
