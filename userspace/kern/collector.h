/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF side of a run: open, load, preload, attach, poll, stop. Only the collector's files use
 * the skeletons and the ring.
 */
#ifndef SFBPF_KERN_COLLECTOR_H
#define SFBPF_KERN_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "border/sfbpf_shared.h"
#include "files/module.h"
#include "kern/events.h"
#include "kern/loader.h"
#include "kern/offcpu_bpf.h"
#include "kern/refusal.h"
#include "languages/lang_codes.h"

struct collector_opts {
	struct events *events; /* resolved (events_resolve) */
	/*
	 * Entries and exits of functions (events_add_calls), resolved: only what happens between
	 * them is recorded. NULL: everything is
	 */
	struct events *calls;
	void (*call)(void *ctx, const struct sf_call *rec); /* takes the calls that were kept */
	void *call_ctx;
	uint64_t hz, period;	  /* hz, or period if hz is 0 */
	bool latency;		  /* weights are elapsed microseconds of the process; needs hz */
	bool user, kernel;	  /* parts of the stack to record */
	bool native;		  /* record evaluation loops of languages, too */
	bool all_languages;	  /* walk all languages from the start, met or not */
	bool lines;		  /* record positions in code of languages, and its line tables */
	struct lang_codes *codes; /* receives the code of languages */
	const uint32_t *pids, *tids;
	size_t npids, ntids;
	bool follow_forks; /* also sample descendants of pids */
	struct sf_filter filter;
	const struct num_cpus *cpus; /* NULL: all online */
	uint64_t ring_bytes;	     /* rounded up to a power of two of pages */
	uint64_t table_bytes;	     /* budget of the row tables */
	/* Tables of files that no process maps are dropped after this time; 0: never */
	uint64_t table_idle_ns;
	/* enable kernel.bpf_stats for the run, and collect the verifier's statistics */
	bool count_run_time;
	bool want_cgroup; /* record the cgroup id */
	bool excludes;	  /* collector_exclude will be called */
	bool want_link;	  /* record the current span of threads (collector_thread_link) */
	bool want_cost;	  /* collector_counters.run_ns: costs two clock readings per sample */
	const struct offcpu_opts *offcpu; /* NULL: on-CPU */
	bool wall;			  /* offcpu: take on-CPU samples, too */
	/* Fork servers for the workers that open and read mapped files */
	const struct loader_servers *servers;
	bool (*stopped)(void); /* whether to end the preload; NULL: never */
	int verbose;
};

struct collector_program {
	char name[32];
	uint64_t run_cnt, run_ns;
	/* Instructions and states that the verifier processed */
	uint64_t verified_insns, verifier_states;
	uint64_t code_bytes;
};

#define COLLECTOR_PROGRAMS 32 /* more than there are */

struct collector_counters {
	uint64_t taken, idle, lost[SF_LOST_MAX];
	uint64_t vma_walks, cache_hits, window_reads, needs, needs_dropped, needs_refused;
	uint64_t run_ns;       /* time of sfbpf's BPF programs, with want_cost */
	uint64_t off_no_state; /* off-CPU: threads whose state could not be allocated */
	struct tables_counts tables;
	struct loader_totals loader;
};

struct collector;

enum collector_trouble {
	COLLECTOR_OK,	       /* no error */
	COLLECTOR_FAILED,      /* an error at run time */
	COLLECTOR_FORBIDDEN,   /* a capability is missing */
	COLLECTOR_UNSUPPORTED, /* the kernel lacks a feature */
};

/* What went wrong, and the message for the user. */
struct collector_error {
	enum collector_trouble trouble;
	char text[512];
	struct refusal refusal; /* unsupported: the refusal of the programs tried last, if any */
};

/* Loads everything, attaches nothing. NULL on error, with *err filled. */
struct collector *collector_new(const struct collector_opts *opts, struct modules *modules,
				struct collector_error *err);
/*
 * Makes the tables of all files that running processes have mapped, for 20 s at most; those of
 * users without CPU time left come later. Returns the number of files.
 */
int collector_preload(struct collector *c);
/*
 * Makes the tables of the files that a process, of any kind, has mapped in [start, start + len).
 * Waits a second at most; the rest come later. Call before collector_attach.
 */
void collector_preload_range(struct collector *c, uint32_t pid, uint64_t start, uint64_t len);
/* Walks all languages from the start, as `all_languages` does. To be called before attaching. */
void collector_want_languages(struct collector *c);
/*
 * Requests the tables of files that the process has mapped, before the first sample meets them.
 * Call during sampling.
 */
void collector_look(struct collector *c, uint32_t pid);
bool collector_add_pid(struct collector *c, uint32_t pid);
/*
 * Ends the sampling of tasks in a cgroup, not of those below it, on and off the CPU. The set holds
 * SF_EXCLUDED; a full one begins anew, as most cgroups in it are gone then.
 */
void collector_exclude(void *collector, uint64_t cgroup_id);
void collector_exclude_none(struct collector *c); /* samples all of them again */
/* Makes the kernel describe code of languages again. */
void collector_codes_forget(struct collector *c);
/* Starts sampling. 0, or -1 with *err filled. */
int collector_attach(struct collector *c, struct collector_error *err);

/* Changes the frequency. Call during sampling. 0 or -errno. */
int collector_set_hz(struct collector *c, uint64_t hz);
/* Takes no samples until it is called with false. Call during sampling. 0 or -errno. */
int collector_pause(struct collector *c, bool pause);
/*
 * Follows CPU hotplug: samples the CPUs that are online now. Opens events, so it needs the rights
 * for that. Returns the number of sampled CPUs.
 */
int collector_follow_cpus(struct collector *c);

/*
 * Sets where the threads of a process have their current span; needs want_link. NULL: takes the
 * process out. 0 or -errno.
 */
int collector_thread_link(struct collector *c, uint32_t pid, const struct sf_thread_link *link);

/* ns: calls of this length or more are kept, whether or not something was recorded in them. */
void collector_calls_over(struct collector *c, uint64_t ns);
/* The counts of all calls until now. 0 or -errno. */
int collector_calls(const struct collector *c, struct sf_call_stats *ret);

#define SAMPLE_WORDS (SF_MAX_USER + SF_MAX_KERNEL + SF_OFF_MORE + SF_LINK_WORDS) /* maximum */

/* The number of words that follow a sample: its frames, and what its type and flags add. */
static inline size_t sample_words(const struct sf_sample *s)
{
	return (size_t)s->n_user + s->n_kernel + (s->type == SF_REC_BLOCK ? SF_OFF_MORE : 0) +
	       (s->flags & SF_SAMPLE_LINKED ? SF_LINK_WORDS : 0);
}

typedef void (*collector_sample_fn)(void *ctx, const struct sf_sample *sample);
/* Waits up to timeout_ms and passes on all records in the ring. 0, or -errno (not -EINTR). */
int collector_poll(struct collector *c, int timeout_ms, collector_sample_fn fn, void *ctx);
/* Readable when collector_poll should be called before its next turn. Owned by the collector. */
int collector_fd(const struct collector *c);
/* NULL unless off-CPU time is currently measured. */
struct offcpu *collector_offcpu(struct collector *c);
/*
 * Measures off-CPU time in addition to samples, from start to stop, with the same files, tables and
 * filters. collector_offcpu() is not NULL in between. 0, or -1 with *err filled.
 */
int collector_offcpu_start(struct collector *c, const struct offcpu_opts *opts,
			   struct collector_error *err);
/*
 * Whether the kernel accepts the programs for that: loads them, attaches none. Not while off-CPU
 * time is measured. Results as above.
 */
int collector_offcpu_try(struct collector *c, const struct offcpu_opts *opts,
			 struct collector_error *err);
int collector_offcpu_cut(struct collector *c); /* offcpu_cut */
void collector_offcpu_stop(struct collector *c);
/*
 * Counters of the off-CPU programs, between collector_offcpu_start and stop. taken: blocks. run_ns:
 * from their own clock readings (offcpu_opts.want_cost), or from kernel.bpf_stats (want_cost).
 */
void collector_offcpu_counters(struct collector *c, struct collector_counters *ret);
/* Stops sampling; the ring can still be drained with collector_poll(c, 0, ...). */
void collector_detach(struct collector *c);
void collector_counters(struct collector *c, struct collector_counters *ret);
size_t collector_programs(struct collector *c, struct collector_program *ret, size_t cap);
/*
 * Writes the names of the languages whose first runtime was met during the run ("python, perl"): a
 * program that walks them had to be loaded first, and their functions were native frames until
 * then. Returns the longest time that it took, in ns; 0: there were none.
 */
uint64_t collector_late_languages(const struct collector *c, char *buf, size_t cap);
/*
 * A symbolizer_kernel_fn; ctx is the collector. word: of a kernel frame of a sample that
 * collector_poll passed on.
 */
bool collector_kernel_name(void *ctx, uint64_t word, char *ret, size_t cap);
void collector_free(struct collector *c);

#endif
