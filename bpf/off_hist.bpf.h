/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Off-CPU: how long the blocks of each stack were, as histograms. */
#ifndef SFBPF_OFF_HIST_BPF_H
#define SFBPF_OFF_HIST_BPF_H

#include "maps.bpf.h"

/* Sized by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct sf_off_hist);
} off_hists SEC(".maps");

static __always_inline u32 off_hist_slot(u64 ns)
{
	u64 us = ns / 1000;
	u32 slot = 0;

	if (us >> 32)
		return SF_OFF_HIST - 1;
	if (us >> 16) { slot += 16; us >>= 16; }
	if (us >> 8) { slot += 8; us >>= 8; }
	if (us >> 4) { slot += 4; us >>= 4; }
	if (us >> 2) { slot += 2; us >>= 2; }
	slot += us >> 1 ? 2 : us;
	return slot < SF_OFF_HIST ? slot : SF_OFF_HIST - 1;
}

static const struct sf_off_hist off_no_hist;

static __always_inline void off_add_hist(u64 key, u64 ns)
{
	struct sf_off_hist *h = bpf_map_lookup_elem(&off_hists, &key);

	if (!h) {
		bpf_map_update_elem(&off_hists, &key, &off_no_hist, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&off_hists, &key);
	}
	if (h)
		__sync_fetch_and_add(&h->slot[off_hist_slot(ns) & (SF_OFF_HIST - 1)], 1);
}

#endif
