/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says when code of its own comes and goes: BPF programs, their trampolines, those
 * of ftrace and of probes (PERF_RECORD_KSYMBOL). One event for each CPU, which takes no samples.
 */
#ifndef SFBPF_KERN_KSYMBOLS_H
#define SFBPF_KERN_KSYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ksymbol {
	uint64_t start, len;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	bool gone;	  /* else it has come */
	const char *name;
};

struct ksymbols {
	struct ksymbol_ring {
		int fd;	   /* -1: none */
		void *mem; /* struct perf_event_mmap_page, and the data */
	} * of;		   /* indexed by CPU */
	int ncpus;
	size_t page;
};

/* Opens the events of the CPUs that are online and have none. 0; -ENOMEM; or why there are none. */
int ksymbols_open(struct ksymbols *k, int ncpus);
void ksymbols_close(struct ksymbols *k); /* also on zeroes */
bool ksymbols_pending(const struct ksymbols *k);
/* Calls fn() for each record. false: some did not fit the rings. */
bool ksymbols_read(struct ksymbols *k, void (*fn)(void *ctx, const struct ksymbol *s), void *ctx);

#endif
