/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One run: the place where the stages meet. BPF -> samples -> profile -> symbols; tools only decide when to
 * start, how long to go on, and what to do with the result.
 */
#ifndef SFBPF_TOOLS_SESSION_H
#define SFBPF_TOOLS_SESSION_H

#include <signal.h>

#include "kern/collector.h"
#include "out/out.h"
#include "prof/profile.h"
#include "sym/symbolizer.h"

struct session {
	struct loader_servers servers;	/* ours, if the options had none */
	struct patience patience;	/* with these two, of the thread that names */
	struct elf_reader *reader;	/* of the files that names are in */
	struct path_opener *paths;	/* of those that are not mapped */
	struct modules *modules;
	struct collector *collector;
	struct symbolizer *symbols;
	struct profile *profile;	/* where samples go; a tool may exchange it between polls */
	uint64_t start_ns, end_ns;	/* CLOCK_MONOTONIC; end 0 while running */
	uint64_t cpus, next_cpus_ns;	/* that are sampled; session_poll: when to look whether some have come or gone */
	uint64_t start_unix_ns;
	uint64_t dropped;		/* samples that profile_add had no memory for */
	collector_sample_fn take;	/* instead of profile_add; NULL: none */
	void *take_ctx;
	uint64_t more_caps;		/* that the tool needs after session_start, beside caps_needed (PRIVS_CAP); set after session_open */
	size_t left_limit;		/* session_sweep: modules without an id that are kept before it looks closer */
	struct run_program programs[16];
	size_t nprograms;
};

/* Loads and preloads; samples nothing yet. 0, or the exit code after having said why. */
int session_open(struct session *s, const struct collector_opts *opts);
/* Gives up all privileges but those that are needed from here on, then starts to sample. */
int session_start(struct session *s);
int session_poll(struct session *s, int timeout_ms);	/* 0 or -errno */
/* To be called for each sample that comes: what names need of a live process. The sample as it is to be counted; until the next call. */
const struct sf_sample *session_see(struct session *s, const struct sf_sample *sample);
/*
 * Frees what is known of files that are gone, while nobody holds a pointer to a module. see: says modules_see for all
 * frames that are kept beside s->profile; NULL: there are none, or with a sink of its own (take), it keeps what it has seen.
 */
void session_sweep(struct session *s, void (*see)(void *ctx, const struct modules *ms), void *ctx);
/* Stops sampling and takes what is still in the ring. */
void session_stop(struct session *s);
/* The account so far; account is that of `profile`. */
void session_stats(struct session *s, const struct profile *profile, struct run_stats *ret);
struct run_parsers session_parsers(const struct session *s, const struct collector_counters *c);
void session_close(struct session *s);

uint64_t session_now(void);		/* CLOCK_MONOTONIC, ns */

/*
 * SIGINT, SIGTERM and SIGHUP: the first sets the flag, the second one of SIGINT ends the program at once.
 * Returns the flag.
 */
const volatile sig_atomic_t *session_signals(void);

#endif
