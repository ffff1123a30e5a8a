/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the collector's files.
 *
 *   collector.c		loads, attaches, passes on records
 *   collector_trouble.c		messages for the user
 *   collector_events.c	what triggers samples
 *   collector_offcpu.c	loads the off-CPU object, on the maps of the first one
 *   collector_walks.c	the programs that walk stacks, by the languages that were met
 *   collector_account.c	the kernel's counters
 *   collector_codes.c		code of languages
 *   collector_kernel.c		names of kernel addresses
 *   collector_lists.c		files that processes have mapped
 */
#ifndef SFBPF_KERN_COLLECTOR_INTERNAL_H
#define SFBPF_KERN_COLLECTOR_INTERNAL_H

#include <linux/types.h>
#include <pthread.h>

#include "kern/collector.h"
#include "kern/cpu_events.h"
#include "kern/event_links.h"
#include "kern/kernel_names.h"
#include "kern/offcpu_bpf.h"
#include "kern/tables.h"
#include "offcpu.skel.h"
#include "remote.skel.h"
#include "sfbpf.skel.h"

/*
 * Bytes. Since 7.3 the statistics have a line for each function, and a log that does not fit makes
 * the load fail (ENOSPC).
 */
#define VERIFIER_LOG 65536

/* The first ones have the values of enum event_from. */
enum walk { WALK_ON_CPU, WALK_ON_TRACEPOINT, WALK_ON_PROBE, WALK_OFF_BACK, WALK_OFF_WAKING, WALKS };

/*
 * The programs that walk stacks, for some languages. Their objects are not kept: libbpf's copy of
 * one has megabytes.
 */
struct walk_version {
	int fds[WALKS];		/* 0: there is no such program */
	uint64_t states[WALKS]; /* the verifier's; 0: unknown */
	struct remote_bpf *remote;
	uint32_t languages; /* 1 << enum sf_language */
	int err;	    /* -errno of loading */
	struct refusal refused;
	uint64_t took_ns;
};

enum walks_state { WALKS_OFF, WALKS_READY, WALKS_LOADING }; /* collector_walks.c */

struct collector {
	struct collector_opts opts;
	struct sfbpf_bpf *skel;
	struct offcpu_bpf *off_skel; /* NULL: off-CPU time is not measured now */
	struct offcpu *offcpu;
	struct offcpu_opts offcpu_opts;
	struct modules *modules;
	struct tables *tables;
	struct loader *loader;
	struct ring_buffer *ring;
	struct sf_cpu_stats *cpu_stats;
	size_t cpu_stats_len;
	struct sf_cpu_stats *off_stats; /* the off-CPU programs' */
	bool rdonly_cast;
	struct refusal refused;		/* why the kernel refused the last programs */
	struct walk_version walks;	/* the version in use */
	struct walk_version next_walks; /* the version that walks_thread loads */
	pthread_t walks_thread;
	enum walks_state walks_state;
	bool walks_loaded;		   /* set by walks_thread at its end */
	uint32_t walks_failed;		   /* languages that the kernel has refused */
	uint32_t late_languages;	   /* languages that were met during the run */
	uint64_t late_ns;		   /* how long a version for them took to load, at most */
	int ncpus;			   /* possible */
	struct cpu_events perf[SF_EVENTS]; /* perf events */
	size_t nperf;
	struct event_links links; /* tracepoints and probes */
	struct event_links call_links;
	struct kernel_names *names;
	int stats_fd;
	char (*verifier_said)[VERIFIER_LOG]; /* indexed by program; NULL unless count_run_time */
	char (*off_said)[VERIFIER_LOG];	     /* verifier_said for off-CPU programs */
	uint64_t bad_records;
	uint32_t codes_begun;	    /* the last id of code when the kernel's map was emptied */
	struct worker_totals lists; /* iter_read's children */
	collector_sample_fn fn;
	void *fn_ctx;
	union {
		struct sf_sample sample;
		uint64_t room[sizeof(struct sf_sample) / 8 + SAMPLE_WORDS];
	} copy; /* a sample with other words; last, as its type has no fixed size */
};

/*
 * Returns the sample with the numbers of lang_codes in its frames of languages. It is valid until
 * the next call.
 */
const struct sf_sample *collector_number(struct collector *c, const struct sf_sample *s,
					 size_t words);
/*
 * Returns the sample with words for kernel addresses whose code may change (kern/kernel_names.h).
 * It is valid until the next call of either.
 */
const struct sf_sample *collector_kernel_words(struct collector *c, const struct sf_sample *s,
					       size_t words);
/* A kernel_ask_fn; ctx is the collector. */
bool collector_ask_kernel(void *ctx, uint64_t addr, char *ret, size_t cap);
/* Empties the kernel's map of code before it is full. */
void collector_codes_sweep(struct collector *c);

/* A loader_unmapped_fn; ctx is the collector. */
long collector_list_unmapped(void *ctx, uint32_t *ids, size_t cap);
/* An opener_iter_fn. ctx: the collector */
int collector_opened_file(void *ctx, pid_t pid);

/* Makes the verifier write its statistics of each program to (*said)[i]. Call before loading. */
void collector_log_verifier(struct bpf_object *obj, char (**said)[VERIFIER_LOG]);
/* Adds what collector_log_verifier made the verifier write, after loading failed. */
void collector_read_verifier(struct refusal *r, struct bpf_object *obj, char (*said)[VERIFIER_LOG]);
/* "total_states N" in the verifier's log of a program; 0: it does not say */
uint64_t collector_verifier_states(const char *log);
int collector_map_stats(struct collector *c, const struct bpf_map *map, struct sf_cpu_stats **ret);
/* The object for kernels with bpf_rdonly_cast, or without. NULL with errno set. */
struct sfbpf_bpf *collector_open_object(bool rdonly_cast);

/* Sets *err, with a message. -1 */
int collector_fail(struct collector_error *err, enum collector_trouble trouble, const char *fmt,
		   ...) __attribute__((format(printf, 3, 4)));
/* The kernel has refused something for lack of a capability. -1 */
int collector_forbid(struct collector_error *err, const char *refused);

bool collector_samples(const struct collector *c); /* on-CPU samples or hits of events */
/* Whether samples are taken for events of that kind. */
bool collector_takes(const struct collector *c, enum event_from from);
/* Whether programs of tracepoints or probes run. */
bool collector_hit_programs(const struct collector *c);
/* Which programs of the object are loaded, and the size of their map. Call before loading. */
void collector_choose_programs(const struct collector *c, struct sfbpf_bpf *skel);
/* Whether the words at the entries' stack pointers stay as they are until the exits. */
bool collector_keeps_words(const struct events *calls);
/* 0, or -1 with *err filled. */
int collector_open_events(struct collector *c, struct collector_error *err);
int collector_attach_events(struct collector *c, struct collector_error *err);
void collector_close_events(struct collector *c);
/* Hits that the kernel has not passed on because another program was running. */
uint64_t collector_missed_hits(const struct collector *c);

/* Whether another form of the programs, which do not do `what`, may avoid the error. */
bool collector_refused(const struct collector *c, const struct refusal *r, int err,
		       const char *what);

/* The languages to walk: 1 << enum sf_language */
uint32_t collector_languages(const struct collector *c);
/* Loads the first version, before anything is attached. 0 or -errno, with c->refused. */
int collector_walks_load(struct collector *c);
/* Makes the one program of a program array, where a jump leads. fd <= 0: it stays as it is. */
int collector_put_walk(const struct bpf_map *array, int fd);
/* Loads the next version if a new language was met; uses it when it is loaded. */
void collector_walks_follow(struct collector *c);
void collector_walks_wait(struct collector *c); /* until no version is being loaded */
void collector_walks_end(struct collector *c);	/* before what is attached is detached */
void collector_walks_free(struct collector *c);
/* The off-CPU object is about to be destroyed: ends what uses its maps. */
void collector_walks_drop_off(struct collector *c);
/*
 * Loads the off-CPU object with offcpu_opts, after the first one was loaded. 0 or -errno; in either
 * case collector_offcpu_stop frees everything.
 */
int collector_load_offcpu(struct collector *c);
/* Tells the tables about the cache of that object. Both exist. */
void collector_off_cache(struct collector *c);

#endif
