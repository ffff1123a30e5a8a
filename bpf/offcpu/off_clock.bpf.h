/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* The clock for off-CPU time. */
#ifndef SFBPF_OFF_CLOCK_BPF_H
#define SFBPF_OFF_CLOCK_BPF_H

#include "core/maps.bpf.h"

/* Start and end of the run, CLOCK_MONOTONIC ns; 0: not reached. Written by user space. */
__u64 off_begin = 0, off_finish = 0;

__s64 off_lag = 0;	 /* CLOCK_MONOTONIC - the run queues' clocks */
__s64 off_lag_least = 0; /* minimum of off_lag seen while off_lag_wanted is set */
__u32 off_lag_wanted = 0;

/*
 * The time of this switch on the clock of its run queue, which the scheduler's accounting uses. The
 * scheduler reads that clock once for both threads, at the beginning of __schedule(). If a wake-up
 * made this CPU switch, the scheduler reuses the earlier reading of the wake-up
 * (rq_clock_skip_update() in kernel/sched/core.c), so the way out of idle counts as CPU time of the
 * woken thread.
 */
static __always_inline u64 off_clock(const struct task_struct *prev)
{
	u64 now, clock;
	s64 lag;

	if (!bpf_core_field_exists(struct cfs_rq, rq)) /* no CONFIG_FAIR_GROUP_SCHED */
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

/*
 * The time at which a task got its current CPU, from the scheduler's own records. For switches
 * without a sched_switch event.
 */
static __always_inline u64 off_arrival(const struct task_struct *task)
{
	if (!bpf_core_field_exists(struct cfs_rq, rq) ||
	    !bpf_core_field_exists(struct sched_info, last_arrival))
		return bpf_ktime_get_ns();
	return task->sched_info.last_arrival + off_lag;
}

#endif
