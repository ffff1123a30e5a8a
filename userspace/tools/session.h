/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run: connects BPF, samples, profile and symbols. Tools decide when to start and stop, and
 * write the result.
 */
#ifndef SFBPF_TOOLS_SESSION_H
#define SFBPF_TOOLS_SESSION_H

#include "kern/collector.h"
#include "out/out.h"
#include "prof/process_names.h"
#include "prof/profile.h"
#include "prof/slices.h"
#include "prof/timeline.h"
#include "sym/symbolizer.h"

#define SESSION_NICE (-10) /* nice value of the thread that calls session_open */

struct session {
	struct loader_servers servers; /* used if the options have none */
	struct allowance allowance;    /* allowance of the naming thread */
	struct elf_reader reader;      /* reads names from mapped files */
	struct path_opener paths;      /* opens files that are not mapped */
	struct modules *modules;
	struct lang_codes *codes;
	struct collector *collector;
	struct symbolizer *symbols;
	struct profile *profile;   /* takes the samples; a tool may replace it between polls */
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end 0 while running */
	uint64_t polled_ns;	   /* when the last poll began; 0: none has ended */
	/* Number of sampled CPUs; when session_poll next checks for CPUs going on- or offline */
	uint64_t cpus, next_cpus_ns;
	uint64_t start_unix_ns;
	struct process_names *names; /* NULL until session_name_process */
	uint64_t dropped;	     /* samples dropped because memory ran out */
	struct timeline *timeline;   /* takes the time of each sample in the profile; NULL: none */
	struct slices *slices;	     /* takes these times coarsely; NULL: none */
	collector_sample_fn take;    /* replaces session_add; NULL: none */
	void *take_ctx;
	/*
	 * Capabilities (PRIVS_CAP) that the tool needs after session_start in addition to
	 * caps_needed; set between session_open and session_start
	 */
	uint64_t more_caps;
	/* session_sweep marks frames only above this number of retired modules */
	size_t retired_limit;
	struct run_program programs[COLLECTOR_PROGRAMS];
	size_t nprograms;
};

/* Prints why the collector failed. Returns the exit code. */
int session_refused(const struct collector_error *why);
/* Loads BPF and preloads tables. 0, or the exit code after printing the error. */
int session_open(struct session *s, const struct collector_opts *opts);
/* Drops all privileges that are no longer needed, then starts sampling. */
int session_start(struct session *s);
/* Warns if stacks will be incomplete for lack of the host's PID namespace. */
void session_warn_host(void);
int session_poll(struct session *s, int timeout_ms); /* 0 or -errno */
/* collector_thread_link of the session; -ENOENT: it is not open. */
int session_thread_link(void *session, uint32_t pid, const struct sf_thread_link *link);
/*
 * Must be called for each sample: collects what naming needs while the process lives. Returns the
 * sample to count, valid until the next call.
 */
const struct sf_sample *session_see(struct session *s, const struct sf_sample *sample);
/* Counts a sample in the profile and on what shows its time. */
void session_add(struct session *s, const struct sf_sample *sample, const struct profile_times *t);
/* Names the record's process in p. */
void session_name_process(struct session *s, struct profile *p, const struct sf_sample *rec);
/*
 * Frees retired modules without frames. The caller must not hold pointers to modules. mark: calls
 * modules_mark for all frames kept outside of s->profile. NULL: there are none, or, with s->take,
 * modules with frames remain.
 */
void session_sweep(struct session *s, void (*mark)(void *ctx, const struct modules *ms), void *ctx);
/* Stops sampling and takes the rest of the ring. */
void session_stop(struct session *s);
/* The account of the run so far; ret->account is computed from `profile`. */
void session_stats(struct session *s, const struct profile *profile, struct run_stats *ret);
struct worker_totals session_parsers(const struct session *s, const struct collector_counters *c);
/* Forgets the code of languages, for memory. No profile may have frames of it. */
void session_forget_codes(struct session *s);
void session_close(struct session *s);

uint64_t session_now(void); /* CLOCK_MONOTONIC, ns */

/*
 * The first SIGINT, SIGTERM or SIGHUP sets the flag; a second one of the same kind ends the program
 * at once.
 */
void session_signals(void);
bool session_stopped(void); /* the flag */
/* Has the next SIGINT or SIGTERM set another flag, to skip slow steps. Call it after sampling. */
void session_may_skip(void);
bool session_skipped(void);

#endif
