/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Outputs: they write a report to a FILE. All are plain functions that flush the FILE and return 0
 * or -errno, also when the disk is full.
 */
#ifndef SFBPF_OUT_OUT_H
#define SFBPF_OUT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/container_name.h"
#include "border/sfbpf_shared.h"
#include "files/module.h"
#include "prof/profile.h"
#include "prof/run_stats.h"
#include "sym/symbolizer.h"

struct html_meta;
struct out_blocks;
struct out_calls;
struct out_containers;
struct slices;
struct stackset;
struct stacks_text;
struct timeline;

/*
 * Whose names stacks begin with: a process's, a thread's, or a container's with the default's
 * below. By default folded output has thread names; flame graphs have process names with thread
 * names below.
 */
enum out_by { OUT_BY_DEFAULT, OUT_BY_PROCESS, OUT_BY_THREAD, OUT_BY_CONTAINER };
/* "process", "thread", "container"; OUT_BY_DEFAULT: another name */
enum out_by out_by_named(const char *name);

/* Whether stacks have what the thread did (prof/wait_notes.h) as a frame. */
enum out_wall { OUT_WALL_NONE, OUT_WALL_LEAF, OUT_WALL_ROOT };

struct out_opts {
	enum out_by by;
	enum out_wall wall;
	bool mark_idle; /* off-CPU: idle stacks have what they wait for as leaf; html hides them */
	bool user_only, kernel_only; /* -U, -K */
	/* COUNT is the weight in microseconds (off-CPU) instead of the number of samples. */
	bool usec;
	/* COUNT is the weight, in this unit ("bytes", "count"); NULL: it is as said above. */
	const char *unit;
	/*
	 * Several events, or the kinds of calls, by profile_stack.group: stacks begin with the name
	 * of theirs. NULL: there is one
	 */
	const char *const *groups;
	size_t ngroups;
	size_t rows;	    /* text: rows per table; 0: 40 */
	enum redact redact; /* what to remove from paths of files */
	bool any_process;   /* the profile was made by profile_merge_code: pprof omits pid 0 */
	/* pprof: only the label comm, for receivers that make a series of each label. */
	bool only_comm;
	int columns;	/* text: width of the screen; 0: lines are not cut */
	int gzip_level; /* pprof; 0: 6 */
};

struct out_meta {
	const char *event; /* "cpu-clock" */
	double hz;	   /* 0: not sampled at a frequency */
	const char *host;
	const char *command;	  /* the command whose run it is; NULL: none */
	const char *command_line; /* sfbpf's, without the command's arguments; NULL: unknown */
	const char *kernel;	  /* "6.1.0-18-amd64 x86_64"; NULL: unknown */
	uint64_t start_unix_ns;	  /* 0: unknown */
};

struct out_label {
	const char *name, *value; /* need not be clean */
};

struct out_report {
	struct profile *profile;
	struct symbolizer *symbols;
	const struct modules *modules;
	const struct out_meta *meta;
	const struct run_stats *stats;
	struct out_opts opts;
	/* Off-CPU: the stacks of the profile's wakers and of their wakers; NULL: none are shown. */
	struct profile *wakers;
	/*
	 * Labels of the stacks with this cgroup id, which is then no cgroup's; returns how many.
	 * NULL: stacks have none.
	 */
	const struct out_labels {
		size_t (*of)(void *ctx, uint64_t cgroup_id, const struct out_label **ret);
		void *ctx;
	} * labels;
	/* The ids of a trace (two words) and a span, of profile_stack.link; NULL: none. */
	const struct out_links {
		void (*of)(void *ctx, uint32_t link, uint64_t ret[SF_LINK_WORDS]);
		void *ctx;
	} * links;
	struct timeline *timeline;   /* NULL: the times of the samples were not kept */
	const struct slices *slices; /* html: coarse times of all samples; NULL: likewise */
	/* Shared by several outputs; NULL: each output looks them up */
	struct out_containers *containers;
	const struct out_calls *calls;	 /* text, JSON: the report on slow calls; NULL: none */
	const struct out_blocks *blocks; /* text: tables of blocked time; NULL: none */
	bool apart;			 /* threads keep names that differ in numbers only */
};

/* The input of report and diff: stacks by name, of one or two profiles. */
struct out_recorded {
	const struct stackset *stacks;
	const struct html_meta *meta;
	const struct stacks_text *text;
	uint64_t max_bytes; /* limit on folded lines; more is -EFBIG */
};

struct out_format {
	const char *name;	 /* --format */
	const char *suffixes[3]; /* suffixes of FILE in -o, with the dot; NULL-terminated */
	bool binary;		 /* not written to a terminal */
	/* The output has the cgroup (or its labels) and the thread of a sample, if known. */
	bool cgroups, threads;
	bool go_lines; /* it has lines and inlined functions of Go code without being asked */
	bool timeline; /* needs out_report.timeline */
	bool apart;    /* it has each thread's own name (prof/thread_names.h) */
	bool slices;   /* uses out_report.slices */
	bool whole;    /* it has all that out_report has */
	/* Others' files of other formats have the suffix, too: it counts with --timeline only */
	bool shared_suffix;
	int (*write)(const struct out_report *r, FILE *f);
	/* NULL: the format needs more than names. */
	int (*write_recorded)(const struct out_recorded *r, FILE *f);
	/* Two sets of stacks; NULL: write_recorded, if the format is not binary */
	int (*write_compared)(const struct out_recorded *r, FILE *f);
};

/* What is written: a report with a timeline, one without, stacks by name, or two sets of them. */
enum out_source { OUT_SAMPLES, OUT_PROFILE, OUT_RECORDED, OUT_COMPARED };

/* NULL: unknown, or it needs more than the source has */
const struct out_format *out_format_named(const char *name, enum out_source source);
/*
 * Selects a format by name, else by the suffix of path (NULL: none), else the one named otherwise.
 * NULL: unknown name or suffix.
 */
const struct out_format *out_format_choose(const char *name, const char *path,
					   const char *otherwise, enum out_source source);
const struct out_format *out_format_at(size_t i); /* NULL past the last one */
/* One name for threads of the report whose names differ in numbers only. 0 or -ENOMEM */
int out_name_threads(const struct out_report *r);
/* What the format takes of a report that has all that was kept */
struct out_report out_report_for(const struct out_report *all, const struct out_format *f);
/* " folded json ...", for messages. */
const char *out_format_names(enum out_source source);
/* " .folded .txt ...", likewise, without shared suffixes. */
const char *out_format_suffixes(enum out_source source);

int out_folded(const struct out_report *r, FILE *f);
int out_json(const struct out_report *r, FILE *f);
int out_text(const struct out_report *r, FILE *f);
int out_pprof(const struct out_report *r, FILE *f);
int out_html(const struct out_report *r, FILE *f);
int out_svg(const struct out_report *r, FILE *f);
int out_firefox(const struct out_report *r, FILE *f);
int out_perfetto(const struct out_report *r, FILE *f);
int out_recording(const struct out_report *r, FILE *f);
int out_stats(const struct run_stats *st, FILE *f);

/*
 * Shared by all outputs. The value of a stack, to be added up (samples or nanoseconds); a sum in
 * the unit in which it is printed.
 */
uint64_t out_value(const struct out_report *r, const struct profile_stack *s);
uint64_t out_shown(const struct out_report *r, uint64_t sum);
/* Whether the user part is shown and did not reach its outermost frame. */
bool out_incomplete(const struct out_report *r, const struct profile_stack *s);
/*
 * The frame that says what the thread of stack i did: below the leaf, or with OUT_WALL_ROOT above
 * the root. NULL: none
 */
const char *out_state_frame(const struct out_report *r, size_t i);
/* "[NAME]": the frame that stacks of a group begin with; valid until the next call. NULL: none */
const char *out_group_frame(const struct out_report *r, uint32_t group);
bool out_state_at_root(const struct out_report *r);
/* What the thread of stack i did: enum wait_note, or -ENOMEM. */
int out_wait_note(const struct out_report *r, size_t i);
/* "name (tid)"; tid 0, of an interrupt: "name". */
#define OUT_THREAD_TEXT 96
void out_thread_text(char ret[OUT_THREAD_TEXT], const char *comm, uint32_t tid);
/* Whether samples are taken at even steps of CPU time, 1/hz apart. */
bool out_is_clock(const struct out_meta *meta);
/* The container of a stack's process: clean text. id "": none, or no longer known */
struct out_container {
	char id[CONTAINER_ID_MAX], name[CONTAINER_TEXT]; /* name "": unknown */
	bool gone; /* the process and its cgroup: whether it was in a container is not known */
};
struct out_containers *out_containers_new(void); /* NULL: out of memory */
void out_containers_free(struct out_containers *oc);
/* The report's, or new ones. NULL: out of memory. _done frees them if they are not the report's. */
struct out_containers *out_containers_of(const struct out_report *r);
void out_containers_done(const struct out_report *r, struct out_containers *oc);
/* Sets what out_container returns for a process. 0 or -ENOMEM */
int out_containers_set(struct out_containers *oc, uint32_t pid, uint64_t cgroup_id,
		       const struct out_container *c);
/* Not NULL; valid until the next call. */
const struct out_container *out_container(struct out_containers *oc, const struct profile_stack *s);
/*
 * The name that stacks begin with by container: "web", "POD/CONTAINER", else the first 12 digits of
 * the id, else "[host]" or, of a process that is gone, "[unknown]". dst has CONTAINER_TEXT bytes.
 */
char *out_container_root(struct out_containers *oc, const struct profile_stack *s, char *dst);
int out_finish(FILE *f); /* flushes f; 0 or -errno */

#endif
