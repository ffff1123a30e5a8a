/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/budget.h"
#include "agent/log.h"
#include "agent/page_server.h"
#include "base/clock.h"
#include "base/num.h"
#include "kern/host_gaps.h"

struct metrics {
	struct page_server *server;
	pthread_mutex_t lock; /* protects values */
	struct metrics_values values;
	struct sender *sender;
	struct spool *spool;
	char *page; /* the last one, for all who ask within PAGE_NS */
	size_t page_len;
	uint64_t page_ns;
};

/* ---- The page ---- */

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP sfbpf_agent_%s %s\n# TYPE sfbpf_agent_%s %s\n", name, help, name, type);
}

static void one(FILE *f, const char *name, const char *type, const char *help, double value)
{
	head(f, name, type, help);
	fprintf(f, "sfbpf_agent_%s %.17g\n", name, value);
}

static void labelled(FILE *f, const char *name, const char *label, const char *text, uint64_t value)
{
	fprintf(f, "sfbpf_agent_%s{%s=\"%s\"} %" PRIu64 "\n", name, label, text, value);
}

static void write_host_gaps(FILE *f, const struct metrics_values *v)
{
	const struct host_gap *gap;

	head(f, "host_gap", "gauge",
	     "1: what keeps the agent from seeing the whole host; see the log and /readyz.");
	for (size_t i = 0; (gap = host_gap_at(i)); i++)
		labelled(f, "host_gap", "gap", gap->id, v->host_gaps >> i & 1);
}

static void write_sampling(FILE *f, const struct metrics_values *v)
{
	one(f, "samples_total", "counter", "Samples taken in the kernel.",
	    (double)v->samples_taken);
	head(f, "samples_lost_total", "counter",
	     "Samples that did not reach user space, by cause.");
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		labelled(f, "samples_lost_total", "cause", profile_lost_name(i), v->lost[i]);
	head(f, "stacks_total", "counter", "Samples with a user stack, by stop reason.");
	for (unsigned int i = 0; i < SF_STOP_MAX; i++)
		labelled(f, "stacks_total", "end", profile_stop_name((uint8_t)i), v->stops[i]);
	one(f, "windows_total", "counter", "Windows closed.", (double)v->windows);
	one(f, "windows_skipped_total", "counter",
	    "Windows closed without samples, because of window-share.", (double)v->windows_skipped);
	one(f, "windows_failed_total", "counter", "Windows that could not be encoded completely.",
	    (double)v->windows_failed);
	one(f, "window_samples_total", "counter", "Samples in closed windows.",
	    (double)v->window_samples);
	one(f, "window_samples_dropped_total", "counter",
	    "Samples dropped because a window had no memory for them.", (double)v->samples_dropped);
	one(f, "window_seconds", "gauge", "Length of the last window.", v->last_window_s);
	one(f, "encode_seconds_total", "counter", "CPU time of symbolizing and encoding windows.",
	    v->encode_s);
	one(f, "frequency_hertz", "gauge", "Current samples per second and CPU.", (double)v->hz);
	one(f, "frequency_wanted_hertz", "gauge", "The configured frequency.", (double)v->hz_want);
	one(f, "throttled_total", "counter",
	    "Times the frequency was lowered because of cpu-limit.", (double)v->throttled);
	one(f, "cpus", "gauge", "Sampled CPUs.", (double)v->cpus);
}

static void write_off_cpu(FILE *f, const struct metrics_values *v)
{
	const struct metrics_off_cpu *o = &v->off;

	if (!v->off_cpu && !o->blocked_ns)
		return;
	one(f, "off_cpu_measured", "gauge",
	    "1: blocked time is measured; 0: suspended because of off-cpu-limit.", o->on);
	one(f, "off_cpu_blocks_total", "counter", "Blocks that ended in closed windows.",
	    (double)o->blocks);
	one(f, "off_cpu_blocked_seconds_total", "counter", "Blocked time in closed windows.",
	    (double)o->blocked_ns / 1e9);
	one(f, "off_cpu_sampled_seconds_total", "counter",
	    "Blocked time that is estimated from samples.",
	    (double)(o->now.sampled_ns + o->before.sampled_ns) / 1e9);
	one(f, "off_cpu_lost_seconds_total", "counter",
	    "Blocked time that is missing from all windows.",
	    (double)(o->now.lost_ns + o->before.lost_ns) / 1e9);
	one(f, "off_cpu_records_lost_total", "counter",
	    "Records of blocks that did not reach user space.",
	    (double)(o->now.lost + o->before.lost));
	one(f, "off_cpu_bpf_seconds_total", "counter",
	    "CPU time of measuring blocked time in the kernel.",
	    (double)(o->now.bpf_ns + o->before.bpf_ns) / 1e9);
	one(f, "off_cpu_sampling_seconds", "gauge",
	    "Blocks shorter than this are sampled, one per this much blocked time; 0: no sampling.",
	    (double)o->thin_ns / 1e9);
	one(f, "off_cpu_suspended_total", "counter",
	    "Times that measuring blocked time was suspended.", (double)o->suspended);
}

static void write_kubelet(FILE *f, const struct kubelet_totals *k)
{
	if (!k->on)
		return;
	one(f, "kubelet_up", "gauge", "1: the kubelet answered the last request.", k->answers);
	one(f, "kubelet_answers_total", "counter", "Lists of pods from the kubelet.",
	    (double)k->answered);
	one(f, "kubelet_failures_total", "counter",
	    "Requests to the kubelet without a list of pods.", (double)k->failed);
	one(f, "kubelet_pods", "gauge", "Pods in the last list.", (double)k->pods);
	one(f, "kubelet_containers", "gauge", "Containers in the last list.",
	    (double)k->containers);
}

static void write_memory(FILE *f, const struct metrics_values *v)
{
	one(f, "files", "gauge", "Mapped files with unwind tables.", (double)v->modules);
	one(f, "table_rows", "gauge", "Rows in the unwind tables.", (double)v->rows);
	one(f, "table_bytes", "gauge", "Kernel memory of the unwind tables.",
	    (double)v->table_bytes);
	one(f, "files_seen_total", "counter", "Files seen for the first time while sampling.",
	    (double)v->needs);
	one(f, "parsers_died_total", "counter",
	    "Workers that died or were late while reading mapped files.",
	    (double)worker_totals_ended(&v->parsers));
	one(f, "files_failed_total", "counter",
	    "Files without tables or names because a worker died or was late.",
	    (double)v->parsers.failed);
	one(f, "symbol_bytes", "gauge", "Memory of symbol tables and names.",
	    (double)v->symbol_bytes);
	one(f, "symbols_forgotten_total", "counter",
	    "Times symbols were forgotten because of memory-limit.", (double)v->symbols_reset);
	one(f, "resident_memory_bytes", "gauge",
	    "Resident memory of the agent, including unwind tables.", (double)budget_rss());
	one(f, "heap_bytes", "gauge",
	    "Anonymous resident memory: without unwind tables and libraries.",
	    (double)budget_heap());
	one(f, "names_deferred_total", "counter",
	    "Times the symbols of a file were postponed because other files took too long.",
	    (double)v->parsers.deferred);
	one(f, "names_cut_total", "counter",
	    "Functions without a name because their file has too many; "
	    "perf maps and jitdumps read only in part.",
	    (double)v->parsers.cut);
	one(f, "names_mangled_total", "counter",
	    "Names shown mangled because they take too long to demangle.",
	    (double)v->parsers.mangled);
	one(f, "names_changed_total", "counter",
	    "Files that were written before their names were read: they have none.",
	    (double)v->parsers.changed);
	one(f, "process_contexts_read_total", "counter",
	    "Times that the context of a process, which has its service's name, was read.",
	    (double)v->contexts.read);
	one(f, "process_contexts_failed_total", "counter",
	    "Times that a context could not be read: damaged, being changed, or too slow.",
	    (double)v->contexts.failed);
	one(f, "cpu_seconds_total", "counter", "CPU time of the agent.",
	    (double)(budget_cpu_ns() + v->parsers.cpu_ns) / 1e9);
	one(f, "start_time_seconds", "gauge", "Start of the agent, Unix time.",
	    (double)v->start_unix_ns / 1e9);
	one(f, "reloads_total", "counter", "Configuration reloads.", (double)v->reloads);
	one(f, "reload_errors_total", "counter",
	    "Reloads that failed because of an invalid configuration.", (double)v->reload_errors);
	one(f, "log_suppressed_total", "counter", "Log lines suppressed by the rate limit.",
	    (double)agent_log_suppressed());
}

static void write_delivery(FILE *f, const struct sender_stats *s, const struct spool_account *a)
{
	head(f, "requests_total", "counter",
	     "Requests, by the answer: a status of HTTP, grpc-N, written or not_written (files), "
	     "none (no answer).");
	for (size_t i = 0; i < s->ncodes; i++)
		labelled(f, "requests_total", "code", s->codes[i].code, s->codes[i].n);
	one(f, "request_bytes_total", "counter", "Bytes of request bodies.", (double)s->bytes);
	one(f, "request_seconds_total", "counter", "Time spent in requests.", s->seconds);
	one(f, "rejected_profiles_total", "counter",
	    "Profiles that a server rejected from accepted requests.",
	    (double)s->rejected_profiles);
	one(f, "failures_in_a_row", "gauge", "Requests that failed since the last success.",
	    (double)s->failures);
	one(f, "copy_errors_total", "counter", "Copies of windows that could not be written.",
	    (double)s->copy_errors);
	one(f, "bodies_added_total", "counter", "Bodies put into the spool (over restarts).",
	    (double)a->added.entries);
	one(f, "bodies_delivered_total", "counter",
	    "Bodies that a server accepted (over restarts).",
	    (double)a->done[SPOOL_DELIVERED].entries);
	head(f, "bodies_dropped_total", "counter",
	     "Bodies that were dropped, by cause (over restarts).");
	for (int i = SPOOL_DELIVERED + 1; i < SPOOL_OUTCOMES; i++)
		labelled(f, "bodies_dropped_total", "cause", spool_outcome_names[i],
			 a->done[i].entries);
	labelled(f, "bodies_dropped_total", "cause", "disk_slow", s->overrun.entries);
	one(f, "samples_added_total", "counter", "Samples put into the spool (over restarts).",
	    (double)a->added.samples);
	one(f, "samples_delivered_total", "counter",
	    "Samples that a server accepted (over restarts).",
	    (double)a->done[SPOOL_DELIVERED].samples);
	head(f, "samples_dropped_total", "counter",
	     "Samples that were dropped, by cause (over restarts).");
	for (int i = SPOOL_DELIVERED + 1; i < SPOOL_OUTCOMES; i++)
		labelled(f, "samples_dropped_total", "cause", spool_outcome_names[i],
			 a->done[i].samples);
	labelled(f, "samples_dropped_total", "cause", "disk_slow", s->overrun.samples);
	one(f, "spool_bodies", "gauge", "Bodies in the spool.", (double)a->held.entries);
	one(f, "spool_samples", "gauge", "Samples in the spool.", (double)a->held.samples);
	one(f, "spool_bytes", "gauge", "Bytes in the spool.", (double)a->bytes);
	one(f, "spool_bodies_in_memory", "gauge", "Bodies in the spool that are not on disk.",
	    (double)a->in_memory);
	one(f, "spool_oldest_timestamp_seconds", "gauge",
	    "Start of the oldest window in the spool, Unix time; 0: empty.",
	    (double)a->oldest_ns / 1e9);
	one(f, "spool_write_errors_total", "counter", "Bodies that could not be written to disk.",
	    (double)a->disk_errors);
}

void metrics_write(FILE *f, const struct metrics_values *v, const struct sender_stats *s,
		   const struct spool_account *a)
{
	head(f, "build_info", "gauge", "Version.");
	fprintf(f, "sfbpf_agent_build_info{version=\"" SFBPF_VERSION "\"} 1\n");
	write_host_gaps(f, v);
	write_sampling(f, v);
	write_off_cpu(f, v);
	write_kubelet(f, &v->kubelet);
	write_memory(f, v);
	write_delivery(f, s, a);
}

/* ---- Serving ---- */

#define PAGE_NS (100 * NUM_MS)

static void make_page(struct metrics *m, const struct metrics_values *v)
{
	struct sender_stats s;
	struct spool_account a;
	FILE *f;

	free(m->page);
	m->page = NULL;
	f = open_memstream(&m->page, &m->page_len);
	if (!f)
		return;
	sender_stats(m->sender, &s);
	spool_account(m->spool, &a);
	metrics_write(f, v, &s, &a);
	if (fclose(f)) {
		free(m->page);
		m->page = NULL;
	}
}

/* Not ready: what is collected would be incomplete. */
static int answer_ready(const struct metrics_values *v, FILE *f)
{
	const struct host_gap *gap;

	if (!v->alive_ns) {
		fputs("starting\n", f);
		return 503;
	}
	for (size_t i = 0; (gap = host_gap_at(i)); i++)
		if (v->host_gaps >> i & 1)
			fprintf(f, "%s: %s; fix: %s\n", gap->id, gap->what, gap->fix);
	if (v->host_gaps)
		return 503;
	fputs("ok\n", f);
	return 200;
}

static int answer(void *ctx, const char *path, FILE *f)
{
	struct metrics *m = ctx;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct metrics_values v;
	bool stale;

	pthread_mutex_lock(&m->lock);
	v = m->values;
	pthread_mutex_unlock(&m->lock);
	if (!strcmp(path, "/healthz")) {
		stale = now - v.alive_ns > v.stale_ns;
		fputs(stale ? "stuck\n" : "ok\n", f);
		return stale ? 503 : 200;
	}
	if (!strcmp(path, "/readyz"))
		return answer_ready(&v, f);
	if (strcmp(path, "/metrics"))
		return 404;
	if (!m->page || now - m->page_ns > PAGE_NS) {
		make_page(m, &v);
		m->page_ns = now;
	}
	if (!m->page)
		return 503;
	fwrite(m->page, 1, m->page_len, f);
	return 200;
}

struct metrics *metrics_listen(const char *address, char *err, size_t cap)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m) {
		snprintf(err, cap, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->server = page_server_listen(address, err, cap);
	if (m->server)
		return m;
	metrics_stop(m);
	return NULL;
}

int metrics_start(struct metrics *m, struct sender *sender, struct spool *spool,
		  void (*on_thread)(void))
{
	m->sender = sender;
	m->spool = spool;
	return page_server_start(m->server, answer, m, on_thread);
}

void metrics_set(struct metrics *m, const struct metrics_values *v)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->values = *v;
	pthread_mutex_unlock(&m->lock);
}

uint64_t metrics_cpu_ns(const struct metrics *m)
{
	return m ? page_server_cpu_ns(m->server) : 0;
}

void metrics_stop(struct metrics *m)
{
	if (!m)
		return;
	page_server_stop(m->server);
	free(m->page);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
