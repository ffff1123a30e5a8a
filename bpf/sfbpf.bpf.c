// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The programs of every run: the on-CPU sample, and the programs that find new files. Off-CPU
 * programs are a separate object (offcpu.bpf.c), which uses the same files, tables and ring.
 */
#include "core/call.bpf.h"
#include "core/event.bpf.h"
#include "core/filter.bpf.h"
#include "core/kload.bpf.h"
#include "core/latency.bpf.h"
#include "core/maps.bpf.h"
#include "core/sample.bpf.h"
#include "border/sfbpf_shared.h"
#include "core/space.bpf.h"
#include "core/trace_link.bpf.h"
#include "core/unwind.bpf.h"
#include "core/vma.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void sample_kernel_part(struct sf_scratch *s, void *ctx)
{
	u32 n = s->sample.n_user;
	long got;

	if (n > SF_MAX_USER)
		return;
	got = bpf_get_stack(ctx, &s->frames[AT_MOST(n, SF_MAX_USER)], SF_MAX_KERNEL * 8, 0);
	if (got > 0)
		s->sample.n_kernel = got / 8;
}

static __always_inline void sample_send(struct sf_scratch *s, struct sf_cpu_stats *st, u32 more)
{
	if (record_send(s, more))
		st->lost[SF_LOST_RING_FULL]++;
}

/*
 * Adds up the time of sfbpf's programs, in ns. Two clock readings per sample; unlike
 * kernel.bpf_stats, it does not slow down other BPF programs.
 */
static __always_inline void add_cost(u64 start)
{
	struct sf_cpu_stats *st = stats_here();

	if (st)
		__sync_fetch_and_add(&st->run_ns, bpf_ktime_get_ns() - start);
}

/* What a program is attached to. */
enum taken_at { AT_EVENT, AT_TRACEPOINT, AT_PROBE };

static __always_inline void sample_user_part(struct sf_scratch *s, void *ctx, u64 mm, u32 slot,
					     bool event_regs)
{
	int err;

	s->mm = mm;
	s->pid = s->sample.pid;
	s->sample.flags |= SF_SAMPLE_USER;
	err = event_regs ? regs_of_event(&s->regs, ctx) : regs_of_current(&s->regs);
	regs_of_mm(&s->regs, mm);
	sample_unwind(s, slot, err);
}

/* What a sample is of, besides its task. */
struct sample_of {
	enum taken_at at; /* constant in each program */
	bool user_mode;
	u32 event;
	u64 weight;
};

/* Takes a sample of the current task in a scratch slot that no other program uses. */
static __always_inline void take_in(struct sf_scratch *s, struct sf_cpu_stats *st, void *ctx,
				    u64 task, u32 slot, const struct sample_of *of)
{
	u64 mm = KLOAD(task, struct task_struct, mm);
	u32 linked = 0;

	sample_head(s, task, bpf_get_smp_processor_id(), KLOAD32(task, struct task_struct, tgid),
		    KLOAD32(task, struct task_struct, pid));
	s->sample.weight = of->weight;
	s->sample.state = of->event;
	if (!of->user_mode)
		s->sample.flags |= SF_SAMPLE_IN_KERNEL;
	if (mm && !(KLOAD32(task, struct task_struct, flags) & PF_NO_USER)) {
		if (cfg_user)
			sample_user_part(s, ctx, mm, slot, of->at == AT_EVENT && of->user_mode);
		else
			s->sample.flags |= SF_SAMPLE_USER;
	}
	if (of->at != AT_PROBE && cfg_kernel && !of->user_mode)
		sample_kernel_part(s, ctx);
	if (cfg_want_link && cfg_user && s->sample.flags & SF_SAMPLE_USER)
		linked = trace_link(slot);
	st->window_reads += s->reads;
	st->cache_hits += s->hits;
	sample_send(s, st, linked);
}

static __always_inline int take_sample(struct bpf_perf_event_data *ctx, u32 cpu)
{
	u64 task = bpf_get_current_task();
	u32 tid = KLOAD32(task, struct task_struct, pid),
	    pid = KLOAD32(task, struct task_struct, tgid);
	struct sf_scratch *s = scratch_of(cpu);
	struct sf_cpu_stats *st = bpf_map_lookup_elem(&cpu_stats, &cpu);
	struct sample_of of = { .at = AT_EVENT, .user_mode = regs_user_mode(ctx), .weight = 1 };

	if (!s || !st)
		return 0;
	if (!tid) {
		st->idle++;
		return 0;
	}
	if (!task_wanted(task, pid, tid))
		return 0;
	if (cfg_calls) {
		of.weight = call_takes(bpf_get_current_task_btf());
		if (!of.weight)
			return 0;
	}
	if (cfg_latency_us)
		of.weight = latency_of(pid);
	st->taken++;
	s->reads = s->hits = 0;
	if (s->busy) {
		st->lost[SF_LOST_BUSY]++;
		return 0;
	}
	s->busy = 1;
	if (cfg_many_events)
		of.event = bpf_get_attach_cookie(ctx);
	take_in(s, st, ctx, task, cpu, &of);
	s->busy = 0;
	return 0;
}

/* A hit of a tracepoint or probe. ctx: the record of the tracepoint, or the user registers. */
static __always_inline int take_hit(void *ctx, enum taken_at at)
{
	u32 site_number = bpf_get_attach_cookie(ctx), cpu = bpf_get_smp_processor_id(), slot = 0;
	struct sf_event_site *site = bpf_map_lookup_elem(&event_sites, &site_number);
	struct sf_cpu_stats *st = bpf_map_lookup_elem(&cpu_stats, &cpu);
	u64 task = bpf_get_current_task();
	struct sample_of of = { .at = at, .user_mode = at == AT_PROBE };
	struct sf_scratch *s;

	if (!site || !st || events_paused || !cpu_wanted(cpu) ||
	    !task_wanted(task, KLOAD32(task, struct task_struct, tgid),
			 KLOAD32(task, struct task_struct, pid)))
		return 0;
	of.event = site->event;
	if (at == AT_TRACEPOINT && site->filtered && !event_passes((u64)ctx, of.event))
		return 0;
	if (cfg_calls)
		of.weight = call_woken();
	else
		of.weight = site_value((u64)ctx, site) * cfg_event_period;
	if (!of.weight || !period_over(of.event))
		return 0;
	__sync_fetch_and_add(&st->taken, 1);
	s = event_slot(cpu, &slot);
	if (!s) {
		__sync_fetch_and_add(&st->lost[SF_LOST_BUSY], 1);
		return 0;
	}
	s->reads = s->hits = 0;
	take_in(s, st, ctx, task, slot, &of);
	__sync_lock_test_and_set(&s->busy, 0);
	return 0;
}

/* A hit of an entry or an exit. ctx: the user registers */
static __always_inline int take_call(void *ctx)
{
	u32 site_number = bpf_get_attach_cookie(ctx), zero = 0;
	struct sf_event_site *site = bpf_map_lookup_elem(&event_sites, &site_number);
	struct sf_call_stats *st = bpf_map_lookup_elem(&call_stats, &zero);
	u64 task = bpf_get_current_task();

	if (!site || !st || events_paused || !cpu_wanted(bpf_get_smp_processor_id()) ||
	    !task_wanted(task, KLOAD32(task, struct task_struct, tgid),
			 KLOAD32(task, struct task_struct, pid)))
		return 0;
	call_hit(ctx, st, site->call);
	return 0;
}

#define TIMED(call)                                                  \
	({                                                           \
		u64 start_ = cfg_want_cost ? bpf_ktime_get_ns() : 0; \
                                                                     \
		call;                                                \
		if (cfg_want_cost)                                   \
			add_cost(start_);                            \
		0;                                                   \
	})

SEC("?perf_event")
int on_cpu(struct bpf_perf_event_data *ctx)
{
	return TIMED(take_sample(ctx, bpf_get_smp_processor_id()));
}

SEC("?tracepoint")
int on_tracepoint(void *ctx)
{
	return TIMED(take_hit(ctx, AT_TRACEPOINT));
}

SEC("?uprobe")
int on_probe(void *ctx)
{
	return TIMED(take_hit(ctx, AT_PROBE));
}

/* Entries and exits of the functions whose calls are measured. ctx: the user registers. */
SEC("?uprobe")
int on_call(void *ctx)
{
	return TIMED(take_call(ctx));
}

/* ctx: preempt, prev, next */
SEC("?tp_btf/sched_switch")
int on_running(u64 *ctx)
{
	note_running(((struct task_struct *)ctx[2])->tgid);
	return 0;
}

/*
 * The programs above, in the version that knows all languages that were met
 * (kern/collector_walks.c). Programs of a program array are of one type, so each type has its own.
 */
struct walk_array {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
};
struct walk_array on_cpu_walks SEC(".maps");
struct walk_array on_tracepoint_walks SEC(".maps");
struct walk_array on_probe_walks SEC(".maps");

/* What is attached. */
SEC("?perf_event")
int on_cpu_jump(struct bpf_perf_event_data *ctx)
{
	bpf_tail_call_static(ctx, &on_cpu_walks, 0);
	return 0;
}

SEC("?tracepoint")
int on_tracepoint_jump(void *ctx)
{
	bpf_tail_call_static(ctx, &on_tracepoint_walks, 0);
	return 0;
}

SEC("?uprobe")
int on_probe_jump(void *ctx)
{
	bpf_tail_call_static(ctx, &on_probe_walks, 0);
	return 0;
}

/* Requests the tables of the file at an address of the current task, if it is new. */
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
 * Requests the tables of a program when it starts, not at its first sample, so that even a process
 * of 20 ms is unwound. This can be interrupted by the perf event, so it uses the second half of the
 * scratch array.
 */
SEC("tp_btf/sched_process_exec")
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

/* Adds the children of traced processes to pids, with follow_forks. ctx: parent, child. */
SEC("?tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	u32 parent = KLOAD32(ctx[0], struct task_struct, tgid);
	u32 child = KLOAD32(ctx[1], struct task_struct, tgid);
	u8 one = 1;

	if (parent != child && bpf_map_lookup_elem(&pids, &parent))
		bpf_map_update_elem(&pids, &child, &one, BPF_ANY);
	return 0;
}

/*
 * A process is removed when its leader is freed. The other threads may outlive the leader's exit,
 * but the leader is freed after all of them.
 */
SEC("?tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
	u32 pid = KLOAD32(ctx[0], struct task_struct, tgid);
	u32 tid = KLOAD32(ctx[0], struct task_struct, pid);

	if (pid == tid)
		bpf_map_delete_elem(&pids, &pid);
	return 0;
}

/* mapped_files: only these addresses, but of any process, if list_len is not 0. By user space. */
__u64 list_start = 0;
__u64 list_len = 0;

/*
 * Lists every file that a process has mapped executable, once: before sampling starts, and later
 * for single processes. Records are struct sf_need.
 */
SEC("iter/task_vma")
int mapped_files(struct bpf_iter__task_vma *ctx)
{
	u64 vma = 0, task = 0;
	struct sf_file_key key = {};
	struct sf_need need;
	u64 inode;
	struct sf_module *m;
	bool is_new = false; /* it is new, or must be requested again */
	u32 why, pid, owner;

	/*
	 * They are plain numbers: kload() computes addresses, which the verifier does not allow on
	 * typed pointers.
	 */
	bpf_probe_read_kernel(&vma, sizeof(vma), &ctx->vma);
	bpf_probe_read_kernel(&task, sizeof(task), &ctx->task);
	if (!vma || !task || !(KLOAD(vma, struct vm_area_struct, vm_flags) & VM_EXEC))
		return 0;
	pid = KLOAD32(task, struct task_struct, tgid);
	if (list_len ? KLOAD(vma, struct vm_area_struct, vm_start) - list_start >= list_len
		     : !pid_wanted(pid))
		return 0;
	inode = vma_inode(vma);
	if (!inode)
		return 0;
	inode_key(inode, &key);
	owner = task_owner(task);
	m = module_known(&key);
	if (m)
		is_new = retry_due(m, owner);
	else
		m = module_new(&key, owner, &is_new, &why);
	if (!m || !is_new)
		return 0;
	fill_need(&need, vma, inode, m, pid, owner);
	bpf_seq_write(ctx->meta->seq, &need, sizeof(need));
	return 0;
}

/*
 * Writes the key of the file that the process has mapped at SF_OPENED_AT. A path under /proc may
 * lead to another file than the one that was mapped when the file was requested, and no attribute
 * that stat(2) shows tells them apart: users choose these in file systems of their own.
 */
SEC("iter/task_vma")
int opened_file(struct bpf_iter__task_vma *ctx)
{
	struct sf_file_key key = {};
	u64 vma = 0, inode;

	bpf_probe_read_kernel(&vma, sizeof(vma), &ctx->vma); /* see mapped_files */
	if (!vma || KLOAD(vma, struct vm_area_struct, vm_start) != SF_OPENED_AT)
		return 0;
	inode = vma_inode(vma);
	if (!inode)
		return 0;
	inode_key(inode, &key);
	bpf_seq_write(ctx->meta->seq, &key, sizeof(key));
	return 0;
}

/*
 * Lists the module ids of files that user space has open and that no process maps any more. An
 * inode knows its mappings, so the cost depends on the number of files, not of processes.
 */
SEC("iter/task_file")
int unmapped_files(struct bpf_iter__task_file *ctx)
{
	struct sf_file_key key = {};
	struct sf_module *m;
	u64 file = 0, inode;
	u32 id;

	bpf_probe_read_kernel(&file, sizeof(file), &ctx->file); /* see mapped_files */
	inode = file ? KLOAD(file, struct file, f_inode) : 0;
	if (!inode || KLOAD(KLOAD(inode, struct inode, i_mapping), struct address_space,
			    i_mmap.rb_root.rb_node))
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
 * Names a kernel address, one per call from user space (BPF_PROG_TEST_RUN). For a few thousand
 * distinct addresses this is cheaper than reading the 120,000 lines of /proc/kallsyms, and it also
 * covers modules that are loaded later.
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
