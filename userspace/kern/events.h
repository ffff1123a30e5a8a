/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The events whose hits are sampled, by the spelling of -e:
 *
 *   cpu-clock, page-faults:u, r00c0, L1-dcache-load-misses	perf events, by perf's names
 *   sched:sched_switch, tracepoint:sched:sched_switch=FIELD	a tracepoint
 *   uprobe:PATH:FUNCTION[+OFFSET][=ARG], uretprobe:...		entries of functions, their returns
 *   usdt:PATH:PROVIDER:NAME[=ARG]				probes that a program has built in
 *
 * ARG: arg1, arg2, ...; of a return ret; of a tracepoint a field. A hit counts for that number
 * instead of 1; ":bytes" after ARG says that its unit is bytes, ":s32" and the like which part of
 * the register it is. FUNCTION, PROVIDER, NAME and names of tracepoints may have wildcards.
 *
 *   parsed (events_add) --events_resolve--> places known --event_places_open--> open
 */
#ifndef SFBPF_KERN_EVENTS_H
#define SFBPF_KERN_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "border/sfbpf_shared.h"
#include "kern/perf_event.h"
#include "symtab/elf_reader.h"

/* What an event comes from: each kind has a BPF program of its own. */
enum event_from { EVENT_PERF, EVENT_TRACEPOINT, EVENT_PROBE, EVENT_FROMS };

#define EVENT_PLACES 4096 /* most places of a run */

struct event_place {
	/* perf_event_attr: config of a tracepoint; offset in the file and in config of a probe */
	uint64_t config, offset, semaphore;
	bool at_return; /* a return probe */
	struct sf_event_site site;
};

struct event {
	char *name; /* its spelling */
	enum event_from from;
	struct perf_event_kind perf; /* EVENT_PERF */
	/* The rest is of tracepoints and probes. */
	char *path, *what, *arg; /* a probe's file; the pattern; NULL: hits count for 1 */
	bool at_return, usdt, bytes;
	/*
	 * SF_CALL_ENTRY: the exits of the function are places of this event, too. SF_CALL_PAIR_*:
	 * it is one end of a call. SF_CALL_NONE: hits are samples
	 */
	enum sf_call_site call;
	bool go;      /* resolved: a program in Go */
	bool returns; /* SF_CALL_ENTRY: return probes may be used where code does not show exits */
	uint8_t arg_size; /* 0: as it is */
	bool arg_signed;
	char *filter; /* NULL: none */
	struct sf_event_filter tests;
	int fd; /* the probe's file; -1: not open */
	struct event_place *places;
	size_t nplaces, cap;
};

struct events { /* zeroed: cpu-clock */
	struct event v[SF_EVENTS];
	const char *names[SF_EVENTS];
	size_t n;
	char text[256]; /* their names, for messages; it may be cut */
};

/* Writes what is wrong to `why`. 0, -EINVAL or -ENOMEM. One that is no probe may be a list: a,b */
int events_add(struct events *e, const char *spelling, char *why, size_t cap);
/*
 * Adds the probes of calls: entry is a function's probe, whose exits are found, or one end of a
 * pair whose other end is `exit`. Neither has an argument. returns: see struct event. Results as
 * above.
 */
int events_add_calls(struct events *e, const char *entry, const char *exit, bool returns, char *why,
		     size_t cap);
/*
 * Adds where goroutines begin to wait to calls, and where they go on to sampled events, if resolved
 * calls are those of a Go program. 0; -ENOTSUP: calls of goroutines cannot be measured on this
 * machine, or calls of other programs are among them; -EINVAL, -ENOMEM.
 */
int events_add_parks(struct events *calls, struct events *sampled, char *why, size_t cap);
/* Whether resolved calls are those of goroutines. */
bool events_of_goroutines(const struct events *calls);
/* Sets the filter of the last event, which must be a tracepoint. 0 or -EINVAL. */
int events_filter(struct events *e, const char *text, char *why, size_t cap);
/* Adds cpu-clock to an empty list. */
void events_default(struct events *e);
/* The only event is cpu-clock. */
bool events_are_clock(const struct events *e);
bool events_have(const struct events *e, enum event_from from);
/* Whether hits count for numbers, and their unit. */
bool events_weighted(const struct events *e);
const char *events_unit(const struct events *e); /* "samples", "bytes", "count" */
/*
 * Finds the places. pids: processes whose files a library's name may mean. 0; -ENOENT: the file,
 * function, tracepoint, argument or field does not exist; -errno, with what is wrong in `why`.
 */
int events_resolve(struct events *e, struct elf_reader *reader, const uint32_t *pids, size_t npids,
		   char *why, size_t cap);
void events_free(struct events *e);

/* Whether it is the spelling of a function's or USDT probe. */
bool event_is_probe(const char *spelling);

/*
 * Opens the file that PATH means: a path, or the name of a library or program, which is looked for
 * in the files that the processes have mapped, then where the dynamic linker and the shell look.
 * A descriptor, or -errno.
 */
int event_file_open(const char *path, const uint32_t *pids, size_t npids);

#endif
