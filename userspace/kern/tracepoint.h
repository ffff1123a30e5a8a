/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracepoints as tracefs describes them (events/SYSTEM/NAME/id and format), and filters on the
 * fields of their records, in the kernel's language (Documentation/trace/events.rst, "Event
 * filtering"). The kernel applies its own filters only after BPF programs have run, so filters are
 * compiled to tests that a BPF program makes.
 */
#ifndef SFBPF_KERN_TRACEPOINT_H
#define SFBPF_KERN_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"

struct tracepoint_field {
	char name[64];
	uint16_t at, size; /* offset in the record and length, bytes */
	bool is_signed, dynamic, text;
};

#define TRACEPOINT_FIELDS 64 /* more than any has */

struct tracepoint {
	uint64_t id; /* perf_event_attr.config of PERF_TYPE_TRACEPOINT */
	struct tracepoint_field fields[TRACEPOINT_FIELDS];
	size_t nfields;
};

/* The root of tracefs, also where it is not mounted. A descriptor or -errno. */
int tracefs_open(void);
/* 0; -ENOENT: the kernel has no such tracepoint; -errno. */
int tracepoint_read(int tracefs, const char *system, const char *name, struct tracepoint *ret);
/* Reads the text of a file `format`. */
void tracepoint_parse(const char *text, struct tracepoint *ret);
const struct tracepoint_field *tracepoint_field(const struct tracepoint *t, const char *name,
						size_t len);
/* Calls fn() for each tracepoint, in no order, until it returns another value than 0. */
int tracepoints_each(int tracefs, int (*fn)(void *ctx, const char *system, const char *name),
		     void *ctx);

/* Compiles a filter. 0, or -EINVAL with what is wrong in `why`. */
int event_filter_compile(const struct tracepoint *t, const char *text, struct sf_event_filter *ret,
			 char *why, size_t cap);

#endif
