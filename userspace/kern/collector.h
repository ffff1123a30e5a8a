/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running BPF side: open, load, preload, attach, poll, stop. The only user of the skeleton and the ring.
 */
#ifndef SFBPF_KERN_COLLECTOR_H
#define SFBPF_KERN_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "elf/module.h"
#include "kern/loader.h"
#include "kern/offcpu.h"
#include "kern/perf_event.h"
#include "sfbpf_shared.h"

struct collector_opts {
	const struct perf_event_kind *event;
	uint64_t hz, period;		/* hz, or period if hz is 0 */
	bool user, kernel;		/* which parts of the stack */
	const uint32_t *pids, *tids;
	size_t npids, ntids;
	bool follow_forks;		/* children of pids count too */
	bool by_uid;
	uint32_t uid;
	const char *comm_glob;		/* NULL: any */
	uint64_t cgroup_id;		/* 0: any */
	int cgroup_level;		/* its depth below the root */
	const struct num_cpus *cpus;	/* NULL: all online */
	uint64_t ring_bytes;		/* rounded up to a power of two of pages */
	uint64_t table_bytes;		/* budget of the row tables */
	uint64_t table_idle_ns;		/* tables of files that nobody maps any more are dropped after so long; 0: never */
	const char *table_cache;	/* directory where they are kept for the next start; NULL: nowhere */
	bool count_run_time;		/* kernel.bpf_stats for the run, and the verifier's own account */
	bool want_cgroup;		/* samples carry the cgroup's id */
	bool want_cost;			/* collector_counters.run_ns: two clock readings a sample */
	const struct offcpu_opts *offcpu;	/* NULL: on-CPU */
	const struct loader_servers *servers;	/* make the processes that open and read mapped files */
	const char *btf;		/* a file with this kernel's BTF; NULL: the kernel's own */
	int verbose;
};

struct collector_program {
	char name[32];
	uint64_t run_cnt, run_ns;
	uint64_t verified_insns, verifier_states;	/* instructions and states that the verifier went through */
	uint64_t code_bytes;
};

struct collector_counters {
	uint64_t taken, idle, lost[SF_LOST_MAX];
	uint64_t vma_walks, cache_hits, window_reads, needs, needs_dropped, needs_refused;
	uint64_t run_ns;		/* of our BPF programs, with want_cost */
	uint64_t off_no_state;		/* off-CPU: threads that could not be followed */
	struct tables_counts tables;
	struct loader_totals loader;
};

struct collector;

/* What went wrong, in words for the user, and the contract's exit code (1, 3 or 4). */
struct collector_error {
	int exit_code;
	char text[512];
};

/* Loads everything, attaches nothing. NULL: *err is filled. */
struct collector *collector_new(const struct collector_opts *opts, struct modules *modules, struct collector_error *err);
/* Converts the files that running processes have mapped. Returns their number. */
int collector_preload(struct collector *c);
/* While it samples: what the process has mapped since it began is converted before the first stack comes through it. */
void collector_look(struct collector *c, uint32_t pid);
bool collector_add_pid(struct collector *c, uint32_t pid);
/* Starts sampling. 0, or the exit code with *err filled. */
int collector_attach(struct collector *c, struct collector_error *err);

/* While it samples: another frequency; 0 or -errno. */
int collector_set_hz(struct collector *c, uint64_t hz);
/* CPUs may have come and gone: samples those that are online now (opens events, so needs the rights). Returns how many. */
int collector_follow_cpus(struct collector *c);

typedef void (*collector_sample_fn)(void *ctx, const struct sf_sample *sample);
/* Waits up to timeout_ms and hands over what the ring holds. 0, or -errno (not -EINTR). */
int collector_poll(struct collector *c, int timeout_ms, collector_sample_fn fn, void *ctx);
/* Off-CPU: the half that counts blocks; NULL otherwise. */
struct offcpu *collector_offcpu(struct collector *c);
/*
 * Off-CPU beside samples, for as long as somebody looks at it: collector_offcpu() is there from start to stop. What runs
 * on the same files, tables and filters takes a third of a second to load. 0, or the exit code with *err filled.
 */
int collector_offcpu_start(struct collector *c, const struct offcpu_opts *opts, struct collector_error *err);
int collector_offcpu_cut(struct collector *c);	/* offcpu_cut */
void collector_offcpu_stop(struct collector *c);
/* Its own; taken: blocks. run_ns from its own clock (offcpu_opts.want_cost), or from kernel.bpf_stats (want_cost). */
void collector_offcpu_counters(struct collector *c, struct collector_counters *ret);
/* Stops sampling; the ring can still be drained with collector_poll(c, 0, ...). */
void collector_detach(struct collector *c);
void collector_counters(struct collector *c, struct collector_counters *ret);
size_t collector_programs(struct collector *c, struct collector_program *ret, size_t cap);
/* A symbolizer_kernel_fn; ctx is the collector. */
bool collector_kernel_name(void *ctx, uint64_t addr, char *ret, size_t cap);
void collector_free(struct collector *c);

#endif
