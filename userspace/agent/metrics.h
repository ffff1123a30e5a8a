/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GET /metrics (Prometheus text format 0.0.4), /healthz and /readyz, served by agent/page_server.h.
 */
#ifndef SFBPF_AGENT_METRICS_H
#define SFBPF_AGENT_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/contexts.h"
#include "agent/kubelet.h"
#include "agent/sender.h"
#include "agent/spool.h"
#include "out/out.h"

/* Blocked time. */
struct metrics_off_cpu {
	bool on;
	struct {
		uint64_t bpf_ns, taken, sampled_ns, lost_ns, lost;
	} now, before;		     /* sums since the last start; sums before that */
	uint64_t blocks, blocked_ns; /* sums of all windows */
	uint64_t thin_ns, suspended;
};

/* The values of the metrics, since the start of the agent unless stated otherwise. */
struct metrics_values {
	/* alive_ns: CLOCK_MONOTONIC, when the ring was last polled */
	uint64_t start_unix_ns, alive_ns;
	/* If the ring was not polled for this long, /healthz reports "stuck" */
	uint64_t stale_ns;
	uint64_t windows, windows_skipped, windows_failed, window_samples, samples_taken,
		samples_dropped, samples_excluded, lost[SF_LOST_MAX];
	uint64_t user_stacks, stops[SF_STOP_MAX];
	uint64_t modules, rows, table_bytes, needs;
	struct worker_totals parsers;
	uint64_t symbol_bytes, symbols_reset;
	struct contexts_totals contexts;
	struct kubelet_totals kubelet;
	uint64_t hz, hz_want, throttled;
	uint64_t cpus;
	uint64_t reloads, reload_errors;
	double last_window_s, encode_s;
	bool off_cpu; /* configured */
	struct metrics_off_cpu off;
	uint64_t host_gaps; /* 1 << i: host_gap_open(i) at the last window */
	char config_hash[17];
};

struct metrics;

/* address: "HOST:PORT" or "PORT" (on 127.0.0.1). NULL, with a message, on failure. */
struct metrics *metrics_listen(const char *address, char *err, size_t cap);
/* Serves the values of the last metrics_set and the counters of sender and spool. 0 or -errno. */
int metrics_start(struct metrics *m, struct sender *sender, struct spool *spool,
		  void (*on_thread)(void));
/* Sets host_gaps. Each gap is logged when it opens and when it closes. */
void metrics_look_for_gaps(struct metrics_values *v);
void metrics_set(struct metrics *m, const struct metrics_values *v); /* m may be NULL */
uint64_t metrics_cpu_ns(const struct metrics *m);		     /* CPU time; m may be NULL */
void metrics_stop(struct metrics *m);
/* Writes the page of /metrics. */
void metrics_write(FILE *f, const struct metrics_values *v, const struct sender_stats *s,
		   const struct spool_account *a);

#endif
