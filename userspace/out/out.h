/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outputs: a profile and a symbolizer in, bytes on a FILE out. All of them are plain functions that return
 * 0 or -errno (also when the disk is full: the FILE is flushed before they return).
 */
#ifndef SFBPF_OUT_OUT_H
#define SFBPF_OUT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "elf/module.h"
#include "prof/profile.h"
#include "sfbpf_shared.h"
#include "sym/symbolizer.h"

struct run_program {
	char name[32];
	uint64_t run_cnt, run_ns;
	uint64_t verified_insns, verifier_states, code_bytes;	/* what loading it took; machine code */
};

/* What became of the processes that open and read files. */
struct run_parsers {
	uint64_t died, late;	/* ended by themselves; took too long */
	uint64_t failed;	/* files without tables or names because of that */
	uint64_t deferred;	/* times that names were put off because others took too long */
	uint64_t cut;		/* functions left out, as their files have too many */
	uint64_t cpu_ns;
};

static inline uint64_t run_parsers_ended(const struct run_parsers *p)
{
	return p->died + p->late;
}

static inline uint64_t run_parsers_names_lost(const struct run_parsers *p)
{
	return p->deferred + p->cut;
}

/* The account of a run, for --stats and for the last line of text output. */
struct run_stats {
	double duration_s;
	uint64_t samples;		/* taken: received + lost ones */
	struct profile_account account;	/* of what was received */
	uint64_t lost[SF_LOST_MAX];
	uint64_t needs, needs_dropped;	/* files seen for the first time; requests that did not fit the ring (asked again) */
	uint64_t needs_refused;		/* beyond what a user is granted (asked again) */
	struct {
		uint64_t modules, rows, rules, bytes;
		uint64_t cached;		/* files whose tables came from disk */
		double build_ms;
		uint64_t evicted, recycled;	/* tables, module ids that were taken away */
		uint64_t full;			/* times when there was no room, nor any to be had */
		uint64_t turns;			/* times when, after a while, there was: the place of others in use */
	} tables;
	struct run_parsers parsers;
	const struct run_program *programs;
	size_t nprograms;
	struct { double cpu_ms; uint64_t rss_peak_kb; } self;
	bool offcpu;			/* then: */
	uint64_t off_ns[SF_OFF_STATES];	/* time by state, of what was received */
	uint64_t off_sampled_ns;	/* of it: what samples stand for */
	uint64_t off_lost_ns;		/* not in it */
	uint64_t off_generations;	/* how often the kernel's counts were taken out to make room */
};

struct out_opts {
	bool user_only, kernel_only;	/* -U, -K */
	bool usec;			/* COUNT is the weight in microseconds (off-CPU) instead of samples */
	size_t rows;			/* text: rows a table; 0: 40 */
	enum redact redact;		/* paths of files */
	bool any_process;		/* profile_merge_code: pprof has no pid where it is 0 */
	bool only_comm;			/* pprof: no other label, for receivers that make a series of each */
	int columns;			/* text: of the screen; 0: lines are not cut */
	int gzip_level;			/* pprof; 0: 6 */
};

struct out_meta {
	const char *event;		/* "cpu-clock" */
	double hz;			/* 0: not a frequency */
	const char *host;
	uint64_t start_unix_ns;		/* 0: unknown */
};

struct out_report {
	struct profile *profile;
	struct symbolizer *symbols;
	const struct modules *modules;
	const struct out_meta *meta;
	const struct run_stats *stats;
	struct out_opts opts;
	struct profile *wakers;		/* off-CPU: what the profile's wakers, and their wakers, are in; NULL: none are shown */
};

struct out_format {
	const char *name;		/* --format */
	const char *suffixes[3];	/* of -o, with the dot; NULL-terminated */
	bool binary;			/* refused on a terminal */
	bool cgroups, threads;		/* it says of which cgroup and thread a sample is, if the samples do */
	int (*write)(const struct out_report *r, FILE *f);
};

/* NULL: there is none of that name, or none for that suffix. */
const struct out_format *out_format_named(const char *name);
const struct out_format *out_format_for_path(const char *path);
const struct out_format *out_format_at(size_t i);	/* NULL past the last one */

int out_folded(const struct out_report *r, FILE *f);
int out_json(const struct out_report *r, FILE *f);
int out_text(const struct out_report *r, FILE *f);
int out_pprof(const struct out_report *r, FILE *f);
int out_html(const struct out_report *r, FILE *f);
int out_stats(const struct run_stats *st, FILE *f);

/* What all outputs share. A stack's value, to be summed (samples or nanoseconds), and a sum as it is printed. */
uint64_t out_value(const struct out_report *r, const struct profile_stack *s);
uint64_t out_shown(const struct out_report *r, uint64_t sum);
/* The user part did not reach its outermost frame, and is shown. */
bool out_incomplete(const struct out_report *r, const struct profile_stack *s);
uint64_t out_lost(const struct run_stats *st);	/* samples that were lost, of any cause */
bool out_is_clock(const struct out_meta *meta);	/* its samples come at even steps of CPU time, 1/hz apart */
/* The container's id of a stack's process, clean; NULL: none, or it can no longer be told. Valid until the next call. */
struct out_containers;
struct out_containers *out_containers_new(void);	/* NULL: out of memory */
void out_containers_free(struct out_containers *oc);
const char *out_container(struct out_containers *oc, const struct profile_stack *s);
int out_finish(FILE *f);		/* flush: 0 or -errno */

#endif
