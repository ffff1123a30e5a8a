/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Which tasks are sampled. Filters run before anything is unwound. A filter that is off costs
 * nothing, because cfg_* are constants to the verifier.
 */
#ifndef SFBPF_FILTER_BPF_H
#define SFBPF_FILTER_BPF_H

#include "core/kload.bpf.h"

/*
 * A match like fnmatch's: *, ? and plain bytes, over at most 15 bytes of comm. On a mismatch it
 * goes back to the last star, which then takes one more byte. That happens at most 16 times, with
 * at most 16 comparisons each. So with the pattern's 64 bytes 512 steps are enough.
 */
struct glob {
	char comm[SF_COMM];
	u32 p, c; /* the next byte of the pattern, and of comm */
	u32 star; /* the byte of the pattern after the last star; 0: there was no star */
	u32 mark; /* the byte of comm after what the last star takes */
	u32 match;
};

static int glob_step(u32 i, void *ctx)
{
	struct glob *g = ctx;
	char have = g->comm[INDEX(g->c, SF_COMM)];
	u32 len = cfg_filter.comm_len;
	char want = g->p < len ? cfg_filter.comm[INDEX(g->p, sizeof(cfg_filter.comm))] : 0;

	if (g->c >= SF_COMM)
		have = 0;
	if (want == '*') {
		g->star = ++g->p;
		g->mark = g->c;
		return 0;
	}
	if (!have) {
		g->match = g->p >= len;
		return 1;
	}
	if (g->p < len && (want == '?' || want == have)) {
		g->p++;
		g->c++;
		return 0;
	}
	if (!g->star)
		return 1;
	g->p = g->star;
	g->c = ++g->mark;
	return 0;
}

/*
 * Always 0, but unknown to the verifier. Before Linux 6.7 the verifier follows a callback only
 * once, so it would assume that the state before the first step holds in every step.
 */
__u32 glob_zero = 0;

__noinline int comm_matches(u64 task)
{
	u32 zero = glob_zero;
	struct glob g = { .p = zero, .c = zero, .star = zero, .mark = zero, .match = zero };

	*(u64 *)&g.comm[0] = kload(KADDR(task, struct task_struct, comm));
	*(u64 *)&g.comm[8] = kload(KADDR(task, struct task_struct, comm) + 8);
	bpf_loop(512, glob_step, &g, 0);
	return g.match;
}

/* Whether the process is in the list `pids`, or there is none. One id needs no hash lookup. */
static __always_inline bool pid_wanted(u32 pid)
{
	return !cfg_by_pid ||
	       (cfg_only_pid ? pid == cfg_only_pid : bpf_map_lookup_elem(&pids, &pid) != NULL);
}

static __always_inline bool tid_wanted(u32 tid)
{
	return !cfg_by_tid ||
	       (cfg_only_tid ? tid == cfg_only_tid : bpf_map_lookup_elem(&tids, &tid) != NULL);
}

/* Programs that run on all CPUs ask this. Perf events are opened on the wanted CPUs only. */
static __always_inline bool cpu_wanted(u32 cpu)
{
	return !cfg_by_cpu || (cfg_cpu_mask[INDEX(cpu / 64, 128)] >> (cpu & 63) & 1);
}

/* Whether the task's cgroup is the filter's or below it. */
static __always_inline bool in_cgroup(u64 task)
{
	u64 cgrp = KLOAD(KLOAD(task, struct task_struct, cgroups), struct css_set, dfl_cgrp);
	u64 ancestor;

	if (KLOAD32(cgrp, struct cgroup, level) < cfg_filter.cgroup_level)
		return false;
	ancestor = kload(KADDR(cgrp, struct cgroup, ancestors) + 8ull * cfg_filter.cgroup_level);
	return KLOAD(KLOAD(ancestor, struct cgroup, kn), struct kernfs_node, id) ==
	       cfg_filter.cgroup;
}

/* Whether the task's own cgroup is in the set `excluded`. */
static __always_inline bool is_excluded(u64 task)
{
	u64 cgrp = KLOAD(KLOAD(task, struct task_struct, cgroups), struct css_set, dfl_cgrp);
	u64 id = KLOAD(KLOAD(cgrp, struct cgroup, kn), struct kernfs_node, id);

	return bpf_map_lookup_elem(&excluded, &id) != NULL;
}

/*
 * Whether a task passes all filters. It need not be the current one: the off-CPU programs ask for
 * tasks that wait.
 */
static __always_inline bool task_wanted(u64 task, u32 pid, u32 tid)
{
	if (!pid_wanted(pid) || !tid_wanted(tid))
		return false;
	if (cfg_by_excluded && is_excluded(task))
		return false;
	if (cfg_filter.user &&
	    KLOAD32(KLOAD(task, struct task_struct, cred), struct cred, uid.val) + 1 !=
		    cfg_filter.user)
		return false;
	if (cfg_filter.cgroup && !in_cgroup(task))
		return false;
	if (cfg_filter.comm_len && !comm_matches(task))
		return false;
	return true;
}

#endif
