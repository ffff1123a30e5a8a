/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Samples that count for elapsed time: a sample stands for its period divided by the number of
 * threads of its process that run at that moment. Their sum is the time in which the process ran on
 * any CPU (perf record --latency has the idea).
 */
#ifndef SFBPF_LATENCY_BPF_H
#define SFBPF_LATENCY_BPF_H

#include "core/maps.bpf.h"

/* The process that runs on each CPU; 0: none, or not known yet. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: the number of CPUs */
	__type(key, u32);
	__type(value, u32);
} running SEC(".maps");

struct running_count {
	u32 pid, n;
};

static long count_running(u32 cpu, void *ctx)
{
	struct running_count *r = ctx;
	u32 *pid = bpf_map_lookup_elem(&running, &cpu);

	if (pid && *pid == r->pid)
		r->n++;
	return 0;
}

static __always_inline void note_running(u32 pid)
{
	u32 cpu = bpf_get_smp_processor_id();
	u32 *now = bpf_map_lookup_elem(&running, &cpu);

	if (now)
		*now = pid;
}

/*
 * The microseconds that a sample of the process, which runs on this CPU, stands for. The rest of
 * the division is at random. Not inlined, as that would add its states to those of the walk.
 */
static __attribute__((noinline)) u64 latency_of(u32 pid)
{
	struct running_count r = { .pid = pid };
	u64 n;

	note_running(pid);
	bpf_loop(cfg_ncpus, count_running, &r, 0);
	n = r.n ? r.n : 1;
	return (cfg_latency_us + bpf_get_prandom_u32() % n) / n;
}

#endif
