/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the collector's files share.
 *
 *   collector.c		loads, attaches, hands over what comes
 *   collector_account.c	what the kernel counted
 */
#ifndef SFBPF_KERN_COLLECTOR_INTERNAL_H
#define SFBPF_KERN_COLLECTOR_INTERNAL_H

#include <linux/types.h>

#include "kern/collector.h"
#include "kern/cpu_events.h"
#include "kern/tables.h"
#include "sfbpf.skel.h"

#define VERIFIER_LOG 4096	/* bytes; its account alone takes a tenth of that */

struct collector {
	struct collector_opts opts;
	struct sfbpf_bpf *skel;
	struct offcpu *offcpu;
	struct offcpu_opts offcpu_opts;
	bool at_leave;
	bool plain;			/* the kernel has no BTF: plain.bpf.c */
	struct modules *modules;
	struct tables *tables;
	struct table_cache *cache;	/* NULL: none */
	struct loader *loader;
	struct ring_buffer *ring;
	struct sf_cpu_stats *cpu_stats;
	size_t cpu_stats_len;
	struct sfbpf_bpf *beside;	/* off-CPU beside samples; NULL: not now */
	struct sf_cpu_stats *beside_stats;
	bool rdonly_cast;
	int ncpus;			/* possible */
	struct cpu_events events;
	int stats_fd;
	char (*verifier_said)[VERIFIER_LOG];	/* by program; NULL unless count_run_time */
	uint64_t bad_records;
	uint64_t lists_late, lists_died;	/* iter_read's children */
	collector_sample_fn fn;
	void *fn_ctx;
};

#endif
