/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* A record with a stack: its head, its user part, and sending it. */
#ifndef SFBPF_SAMPLE_BPF_H
#define SFBPF_SAMPLE_BPF_H

#include "core/kload.bpf.h"
#include "core/maps.bpf.h"
#include "core/unwind.bpf.h"

/*
 * A task inside execve(2) has no user part from the time when its old image is gone. First, the new
 * mm has no start_code and the registers are those of the old image; then there is a start_code;
 * then the registers are cleared, and the task is still in the system call.
 */
static __always_inline bool in_exec(const struct sf_scratch *s)
{
	if (!(s->sample.flags & SF_SAMPLE_IN_KERNEL))
		return false;
	return ((s->regs.flags & SF_REGS_RA) && REGS_CLEARED(&s->regs)) ||
	       !KLOAD(s->mm, struct mm_struct, start_code);
}

/*
 * Whether the task is inside execve(2), and the new mm has its start_code, but the registers are
 * still those of the old image: their pc is in no mapping.
 */
static __always_inline bool old_image_gone(const struct sf_scratch *s)
{
	const struct pt_regs *p;

	if (s->stop != SF_STOP_NO_MODULE || s->n > 1 || !(s->sample.flags & SF_SAMPLE_IN_KERNEL))
		return false;
	p = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return p && is_execve(p);
}

static __always_inline void sample_without_image(struct sf_scratch *s)
{
	s->frames[0] = SF_FRAME_EXEC;
	s->sample.n_user = 1;
	s->sample.stop = SF_STOP_COMPLETE;
	s->sample.flags &= ~SF_SAMPLE_USER;
	s->stop = SF_STOP_NO_REGS; /* nothing for off_memo_store */
}

/* Unwinds the user part from s->regs. err: the result of reading them, SF_STEP_GO or a stop. */
static __always_inline void sample_unwind(struct sf_scratch *s, u32 slot, int err)
{
	if (in_exec(s)) {
		sample_without_image(s);
		return;
	}
	if (err != SF_STEP_GO) {
		s->frames[0] = SF_FRAME_RAW << SF_FRAME_KIND_SHIFT |
			       (s->regs.pc & SF_FRAME_ADDR_MASK);
		s->sample.n_user = err == SF_STOP_COMPAT;
		s->sample.stop = err;
		return;
	}
	if (s->sample.flags & SF_SAMPLE_IN_KERNEL)
		probe_hit(slot);
	unwind_user(s, slot);
	if (old_image_gone(s)) {
		sample_without_image(s);
		return;
	}
	s->sample.n_user = s->n;
	s->sample.stop = s->stop;
	s->sample.flags |= s->lang.language << SF_SAMPLE_LANG_SHIFT;
	s->sample.lang_stop = s->lang.language ? s->lang.stop : SF_STOP_COMPLETE;
}

/* Fills the sample's head; the frames follow. */
static __always_inline void sample_head(struct sf_scratch *s, u64 task, u32 cpu, u32 pid, u32 tid)
{
	struct sf_sample *rec = &s->sample;

	rec->type = SF_REC_SAMPLE;
	rec->cpu = cpu;
	rec->time_ns = bpf_ktime_get_ns();
	rec->pid = pid;
	rec->tid = tid;
	rec->cgroup_id = cfg_want_cgroup ? bpf_get_current_cgroup_id() : 0;
	rec->weight = 1;
	rec->n_user = rec->n_kernel = 0;
	rec->stop = SF_STOP_COMPLETE;
	rec->flags = 0;
	rec->lang_stop = SF_STOP_COMPLETE;
	*(u64 *)&rec->comm[0] = kload(KADDR(task, struct task_struct, comm));
	*(u64 *)&rec->comm[8] = kload(KADDR(task, struct task_struct, comm) + 8);
}

/* Whether the stack ended where user space can make more rows. */
static __always_inline bool more_rows_due(struct sf_scratch *s)
{
	u32 last = (u32)s->sample.n_user - 1;
	struct sf_module *m = NULL;

	if (s->sample.stop == SF_STOP_NO_ROW && last < SF_MAX_USER)
		m = module_at(SF_FRAME_MODULE(*frame_at(s, last)));
	return m && m->flags & SF_MODULE_MORE_ROWS;
}

/*
 * Sends the scratch's record with its frames and `more` words after them. 0, or negative if the
 * ring is full. The consumer polls on a timer, because a wake-up is an interrupt (5 us in a VM). It
 * is woken only if the ring holds cfg_wake_bytes, or if it is to make rows.
 */
static __always_inline long record_send(struct sf_scratch *s, u32 more)
{
	u32 len = sizeof(struct sf_sample) +
		  8 * ((u32)s->sample.n_user + s->sample.n_kernel + more);
	u64 flags = BPF_RB_NO_WAKEUP;

	if (len > sizeof(struct sf_sample) + 8 * (SF_MAX_USER + SF_MAX_KERNEL + SF_OFF_MORE))
		return -1;
	if (more_rows_due(s) || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= cfg_wake_bytes)
		flags = BPF_RB_FORCE_WAKEUP;
	return bpf_ringbuf_output(&ring, &s->sample, len, flags);
}

#endif
