/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: sends long blocks one by one, with their times, in addition to counting them. */
#ifndef SFBPF_OFF_SINGLE_BPF_H
#define SFBPF_OFF_SINGLE_BPF_H

#include "core/maps.bpf.h"
#include "offcpu/off_scratch.bpf.h"
#include "border/sfbpf_shared.h"

const volatile bool cfg_off_singles = false;
const volatile __u64 cfg_off_single_min = 0; /* ns; shorter blocks are only counted */

/* Blocks that were long enough: those sent, and those not sent (off_thin, or the ring is full). */
__u64 off_singles_sent = 0, off_singles_lost = 0;

static __always_inline bool off_is_single(const struct off_block *b)
{
	return cfg_off_singles && b->end - b->start >= cfg_off_single_min;
}

/*
 * Sends o->single. Half of the ring stays free for samples. A global function, so it is verified
 * once.
 */
__noinline int off_send_single(u32 slot)
{
	struct off_scratch *o = off_scratch_of(slot);

	if (!o)
		return 0;
	if (bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= 2 * cfg_wake_bytes ||
	    bpf_ringbuf_output(&ring, &o->single, sizeof(o->single), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&off_singles_lost, 1);
	else
		__sync_fetch_and_add(&off_singles_sent, 1);
	return 0;
}

#endif
