// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * What unwinding costs otherwise: the kernel's frame-pointer walker, called as other eBPF profilers
 * call it. The filter stands where sfbpf's stands, so that the run statistics of both mean the
 * same.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define FRAMES 512

const volatile __u32 cfg_pid = 0;	/* whose stacks */
const volatile bool cfg_output = false; /* hand them to user space, as a profiler must */

__u64 stacks = 0, frames = 0;

struct record {
	u64 head[8]; /* as large as the head of sfbpf's record */
	u64 ips[FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct record);
} space SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} ring SEC(".maps");

static __always_inline int walk(void *ctx)
{
	u32 zero = 0;
	struct record *r = bpf_map_lookup_elem(&space, &zero);
	u64 len;
	long n;

	if (!r)
		return 0;
	n = bpf_get_stack(ctx, r->ips, sizeof(r->ips), BPF_F_USER_STACK);
	if (n < 0)
		return 0;
	len = n;
	stacks++;
	frames += len / 8;
	if (cfg_output && len <= sizeof(r->ips))
		bpf_ringbuf_output(&ring, r, sizeof(r->head) + len, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("perf_event")
int on_cpu(struct bpf_perf_event_data *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != cfg_pid)
		return 0;
	return walk(ctx);
}

/* ctx: preempt, prev, next (and the previous state). */
SEC("tp_btf/sched_switch")
int off_cpu(u64 *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 != cfg_pid)
		return 0;
	return walk(ctx);
}
