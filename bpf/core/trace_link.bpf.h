/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The span that a thread works for, as OpenTelemetry's SDKs publish it (OTEP 4947, "Thread
 * Context"): a thread-local variable points to a record of the thread. Only the thread itself
 * writes either, and it is interrupted while they are read.
 */
#ifndef SFBPF_TRACE_LINK_BPF_H
#define SFBPF_TRACE_LINK_BPF_H

#include "lang/code.bpf.h"
#include "core/maps.bpf.h"
#include "core/memory.bpf.h"

#define LINK_PROCESSES 16384

/* User space adds the processes that have such a variable. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LINK_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct sf_thread_link);
} thread_links SEC(".maps");

struct link_record {
	u64 trace[2], span;
	u8 valid, flags;
	u16 attributes; /* bytes of attributes, which are not read */
};

#define LINK_RECORD 28 /* bytes of the record without attributes */

/*
 * Adds the ids of the current span after the frames of the record, and says so in its flags.
 * Returns the number of words that were added. Global: not in the frame of the caller.
 */
__noinline u32 trace_link(u32 slot)
{
	struct sf_scratch *s = scratch_of(slot);
	struct link_record record = {};
	struct sf_thread_link *link;
	u64 at, *after;
	u32 n;

	if (!s)
		return 0;
	link = bpf_map_lookup_elem(&thread_links, &s->pid);
	if (!link || link->start_stack != s->regs.entry_sp)
		return 0;
	at = lang_tls(link->tls_how, link->musl, link->tls, 0, user_tp());
	if (!at || copy_user(&record, LINK_RECORD, at) || record.valid != 1)
		return 0;
	n = (u32)s->sample.n_user + s->sample.n_kernel;
	if (n > SF_MAX_USER + SF_MAX_KERNEL || !(record.trace[0] | record.trace[1]) || !record.span)
		return 0;
	after = &s->frames[AT_MOST(n, SF_MAX_USER + SF_MAX_KERNEL)];
	after[0] = record.trace[0];
	after[1] = record.trace[1];
	after[2] = record.span;
	s->sample.flags |= SF_SAMPLE_LINKED;
	return SF_LINK_WORDS;
}

#endif
