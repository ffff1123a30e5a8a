/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The clock that off-CPU time is measured by. */
#ifndef SFBPF_OFF_CLOCK_BPF_H
#define SFBPF_OFF_CLOCK_BPF_H

#include "maps.bpf.h"

/* The run's edges, CLOCK_MONOTONIC ns; 0: not yet. Written by user space. */
__u64 off_begin = 0, off_finish = 0;

__s64 off_lag = 0;			/* CLOCK_MONOTONIC - the run queues' clocks */
__s64 off_lag_least = 0;		/* the least that was seen of it, while off_lag_wanted */
__u32 off_lag_wanted = 0;

/*
 * The time of this switch as the scheduler's accounts have it: its run queue's clock. It is read once for both threads, at the
 * beginning of __schedule(); or earlier, when a wake-up has made this CPU switch: then that wake-up's reading
 * is used again (rq_clock_skip_update() in kernel/sched/core.c), and the way out of idle is the woken thread's CPU time.
 */
static __always_inline u64 off_clock(const struct task_struct *prev)
{
	u64 now, clock;
	s64 lag;

	if (!bpf_core_field_exists(struct cfs_rq, rq))	/* without CONFIG_FAIR_GROUP_SCHED */
		return bpf_ktime_get_ns();
	clock = prev->se.cfs_rq->rq->clock;
	if (off_lag_wanted) {
		now = bpf_ktime_get_ns();
		lag = now - clock;
		if (lag < off_lag_least)
			off_lag_least = lag;
	}
	return clock + off_lag;
}

/* When a task came to the CPU on which it is now, by the scheduler's own notes: for switches that were not seen. */
static __always_inline u64 off_arrival(const struct task_struct *task)
{
	if (!bpf_core_field_exists(struct cfs_rq, rq) || !bpf_core_field_exists(struct sched_info, last_arrival))
		return bpf_ktime_get_ns();
	return task->sched_info.last_arrival + off_lag;
}

#endif
