/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf agent: profiles continuously. Closes a window every few seconds for the sender. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent_privs.h"
#include "agent/body.h"
#include "agent/budget.h"
#include "agent/clickhouse_receiver.h"
#include "agent/identity.h"
#include "agent/log.h"
#include "agent/metrics.h"
#include "agent/notify.h"
#include "agent/pace.h"
#include "agent/receiver.h"
#include "agent/rules.h"
#include "agent/sender.h"
#include "base/clock.h"
#include "base/container_name.h"
#include "base/exitcode.h"
#include "cli/tools.h"
#include "kern/host_gaps.h"
#include "tools/agent_offcpu.h"
#include "tools/agent_options.h"
#include "tools/stages.h"
#include "worker/privs.h"

/* The main thread uses a fraction of a percent of a CPU, as for the loader and record. */
#define POLL_MS	      1000
#define WINDOW_BYTES  (32u << 20) /* a larger window is closed early */
#define RESET_WINDOWS 6		  /* minimum number of windows between symbol resets */

struct agent {
	struct agent_options opts;
	struct agent_config *cfg; /* the sender has a separate copy */
	char host[256];
	struct identity identity;
	struct session session;
	struct container_names *containers;
	struct targets *targets;
	struct rules *rules; /* NULL: none */
	struct window window;
	struct contexts *contexts;  /* NULL: processes are not asked for names */
	struct thread_links *links; /* NULL: not configured */
	struct kubelet *kubelet;    /* NULL: not configured */
	struct agent_offcpu off;
	struct spool *spool;
	struct sender *sender;
	struct metrics *metrics;
	struct loader_servers servers;
	struct metrics_values values;
	struct budget budget;
	uint64_t window_mono, windows_since_reset;
	uint64_t window_end;		   /* when the window is closed; CLOCK_MONOTONIC */
	struct spool_account spool_before; /* at the start of the run */
	uint64_t cpu_ns;		   /* sampling_cpu_ns at the start of the window */
	uint64_t loader_cpu_ns;
	bool skips; /* the window has no samples: window-share */
	bool done;  /* --once: the window is complete */
};

static volatile sig_atomic_t reload_requested;

static void on_hangup(int sig)
{
	(void)sig;
	reload_requested = 1;
}

/* ---- Windows ---- */

static void add_to_window(void *ctx, const struct sf_sample *sample)
{
	struct agent *a = ctx;

	if (sample->type == SF_REC_BLOCK)
		agent_offcpu_take(&a->off, sample);
	else
		window_add(&a->window, session_see(&a->session, sample));
}

/* Marks what blocks use: only blocks keep frames between windows. */
static void mark(void *ctx, const struct modules *ms)
{
	agent_offcpu_mark(&((struct agent *)ctx)->off, ms);
}

/*
 * The window begins at the end of the previous one. So it includes samples that arrived while the
 * previous one was encoded.
 */
static void open_window(struct agent *a, uint64_t mono_ns, uint64_t unix_ns)
{
	targets_trim(a->targets);
	if (a->contexts)
		contexts_trim(a->contexts, mono_ns);
	if (a->session.modules)
		session_sweep(&a->session, mark, a);
	window_open(&a->window, a->targets, unix_ns, (double)a->budget.hz);
	a->window_mono = mono_ns;
}

static uint64_t window_length(const struct agent *a)
{
	return a->opts.once ? a->cfg->interval_ns : pace_window_ns(a->cfg);
}

static int push_body(void *ctx, struct body *b)
{
	sender_push(((struct agent *)ctx)->sender, b, false);
	return 0;
}

static int push_copy(void *ctx, struct body *b)
{
	sender_push(((struct agent *)ctx)->sender, b, true);
	return 0;
}

static void count_window(struct agent *a)
{
	struct profile_account account;

	for (size_t g = 0; g < a->window.ngroups; g++) {
		if (a->window.groups[g].kind != WINDOW_CPU)
			continue;
		profile_account(a->window.groups[g].profile, a->session.modules, &account);
		a->values.user_stacks += account.user_total;
		for (unsigned int i = 0; i < SF_STOP_MAX; i++)
			a->values.stops[i] += account.stops[i];
	}
	a->values.windows++;
	a->values.windows_skipped += a->skips;
	a->values.window_samples += a->window.samples;
	a->values.samples_dropped += a->window.dropped;
	a->values.samples_excluded += a->window.excluded;
	a->values.last_window_s = (double)a->window.duration_ns / 1e9;
}

static int encode(struct agent *a)
{
	struct run_stats stats;
	struct out_meta meta = {
		.event = a->opts.common.collect.events->text,
		.hz = a->window.hz,
		.host = a->host,
		.start_unix_ns = a->window.start_unix_ns,
	};
	struct encode_input in = {
		.cfg = a->cfg,
		.host = a->host,
		.window = &a->window,
		.symbols = a->session.symbols,
		.modules = a->session.modules,
		.meta = &meta,
		.stats = &stats,
		.identity = &a->identity,
		.period = a->opts.common.collect.period,
		.foreign_pids = a->values.host_gaps >> HOST_GAP_PID_NAMESPACE & 1,
	};
	int err;

	session_stats(&a->session, a->session.profile, &stats);
	stats.duration_s = (double)a->window.duration_ns / 1e9;
	stats.samples = a->window.samples;
	memcpy(stats.off_ns, a->off.state_ns, sizeof(stats.off_ns));
	err = window_close(&a->window, a->window.duration_ns, a->session.symbols,
			   a->cfg->label_pid || receiver_at(a->cfg->protocol)->processes);
	if (!err && a->window.ngroups)
		err = receiver_at(a->cfg->protocol)->encode(&in, push_body, a);
	if (!err && a->cfg->copy)
		err = receiver_at(AGENT_FILE)->encode(&in, push_copy, a);
	return err;
}

/* Passes the window to the sender and opens a new one. */
static void close_window(struct agent *a)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), mono_ns, unix_ns;
	int err;

	agent_offcpu_into(&a->off, &a->window);
	mono_ns = session_now();
	unix_ns = clock_ns(CLOCK_REALTIME);
	a->window.duration_ns = mono_ns - a->window_mono;
	window_ask(&a->window, a->contexts, true);
	window_pods(&a->window, a->kubelet, true);
	window_name(&a->window, a->contexts);
	if (a->rules && rules_apply(a->rules, &a->window, collector_exclude, a->session.collector))
		agent_log(AGENT_LOG_ERROR, "out of memory: a window has what rules exclude", NULL);
	err = encode(a);
	a->values.symbol_bytes = symbolizer_bytes(a->session.symbols);
	count_window(a);
	a->values.encode_s += (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / 1e9;
	if (err) {
		a->values.windows_failed++;
		agent_log(AGENT_LOG_ERROR, "a window could not be encoded", "error", "%s",
			  strerror(-err), "samples", "%lu", a->window.samples, NULL);
	}
	agent_log(AGENT_LOG_DEBUG, "window", "samples", "%lu", a->window.samples, "targets", "%lu",
		  (uint64_t)a->window.ngroups, "seconds", "%g", a->values.last_window_s, NULL);
	window_free(&a->window);
	open_window(a, mono_ns, unix_ns);
}

/* ---- Cost limits ---- */

/*
 * The CPU time of sampling, which grows with the frequency. Reading files and serving pages have
 * limits of their own, so that a process with many files or a client cannot lower the frequency.
 */
static uint64_t sampling_cpu_ns(const struct agent *a)
{
	uint64_t all = budget_cpu_ns(),
		 rest = a->loader_cpu_ns + a->session.allowance.cpu_ns + metrics_cpu_ns(a->metrics);

	return all > rest ? all - rest : 0;
}

static void keep_cpu(struct agent *a)
{
	uint64_t now = sampling_cpu_ns(a), before = a->budget.hz,
		 wall = (uint64_t)(a->values.last_window_s * 1e9), hz;

	hz = budget_step(&a->budget, now - a->cpu_ns, wall);
	agent_offcpu_limit(&a->off, a->cfg, wall, a->budget.above || hz < before);
	a->cpu_ns = now;
	if (!before || hz == before)
		return;
	if (hz < before)
		a->values.throttled++;
	agent_log(AGENT_LOG_WARN,
		  hz < before ? "above the CPU limit: sampling less often"
			      : "below the CPU limit: sampling more often",
		  "hz", "%lu", hz, "before", "%lu", before, "limit_percent", "%g",
		  a->budget.limit_pct, NULL);
	if (collector_set_hz(a->session.collector, hz))
		agent_log(AGENT_LOG_ERROR, "the frequency could not be changed", NULL);
	a->window.hz = (double)hz; /* correct because the window has just begun */
}

/* Symbols are what grows, and they can be read again. 0, or the exit code: out of memory. */
static int keep_memory(struct agent *a)
{
	struct session *s = &a->session;
	struct symbolizer *fresh;

	if (++a->windows_since_reset < RESET_WINDOWS || budget_heap() <= a->cfg->memory_bytes)
		return 0;
	a->windows_since_reset = 0;
	a->values.symbols_reset++;
	agent_log(AGENT_LOG_WARN, "above the memory limit: symbols are forgotten", "heap", "%lu",
		  budget_heap(), "symbols", "%lu", (uint64_t)symbolizer_bytes(s->symbols), NULL);
	symbolizer_free(s->symbols);
	s->symbols = NULL;
	malloc_trim(0);
	fresh = symbolizer_new(s->modules);
	if (!fresh) {
		agent_log(AGENT_LOG_ERROR, "out of memory", NULL);
		return EXIT_FAILED;
	}
	symbolizer_set_kernel_names(fresh, collector_kernel_name, s->collector);
	symbolizer_set_reader(fresh, &s->reader, &s->paths);
	session_forget_codes(s);
	symbolizer_set_codes(fresh, s->codes);
	symbolizer_set_redact(fresh, a->cfg->redact);
	s->symbols = fresh;
	return 0;
}

static void publish(struct agent *a)
{
	struct metrics_values *v = &a->values;
	struct collector_counters c;

	collector_counters(a->session.collector, &c);
	v->samples_taken = c.taken;
	memcpy(v->lost, c.lost, sizeof(v->lost));
	v->needs = c.needs;
	v->modules = c.loader.loaded;
	v->rows = c.loader.rows;
	v->table_bytes = c.tables.bytes;
	v->parsers = session_parsers(&a->session, &c);
	a->loader_cpu_ns = c.loader.thread_ns;
	if (a->contexts)
		v->contexts = contexts_totals(a->contexts);
	v->kubelet = kubelet_totals(a->kubelet);
	v->hz = a->budget.hz;
	v->off_cpu = a->cfg->off_cpu;
	v->off = a->off.values;
	v->hz_want = a->budget.want_hz;
	v->stale_ns = 3 * a->cfg->interval_ns + 10 * NUM_S;
	v->alive_ns = session_now();
	metrics_set(a->metrics, v);
}

/* ---- Configuration ---- */

static void log_config(const struct agent *a, const char *what)
{
	agent_log(AGENT_LOG_INFO, what, "version", "%s", SFBPF_VERSION, "host", "%s", a->host, "hz",
		  "%lu", a->budget.hz, "interval_s", "%g", (double)a->cfg->interval_ns / 1e9,
		  "protocol", "%s", agent_protocol_name(a->cfg->protocol), "endpoint", "%s",
		  a->cfg->endpoint, "spool", "%s", a->cfg->spool ? a->cfg->spool : "", NULL);
}

static void set_host(struct agent *a)
{
	if (a->cfg->host)
		snprintf(a->host, sizeof(a->host), "%s", a->cfg->host);
	else if (gethostname(a->host, sizeof(a->host) - 1))
		snprintf(a->host, sizeof(a->host), "unknown");
}

static void on_thread(void)
{
	int rc = privs_keep(0);

	setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
	if (rc)
		agent_log(AGENT_LOG_WARN, "a thread keeps its capabilities", "error", "%s",
			  strerror(-rc), NULL);
}

static void use_config(struct agent *a)
{
	a->budget.limit_pct = a->cfg->cpu_pct;
	a->budget.want_hz = a->budget.hz = a->opts.common.collect.period ? 0 : a->cfg->hz;
	agent_log_setup(a->cfg->log_level, a->cfg->log_format);
	rules_free(a->rules);
	a->rules = rules_new(a->cfg);
	if (!a->rules && rules_any(a->cfg))
		agent_log(AGENT_LOG_ERROR, "out of memory: include and exclude have no effect",
			  NULL);
	if (a->session.collector)
		collector_exclude_none(a->session.collector);
	/* The pids of samples are other processes in another PID namespace. */
	if (!a->cfg->process_context || host_gap_open(HOST_GAP_PID_NAMESPACE)) {
		contexts_free(a->contexts);
		a->contexts = NULL;
	} else if (!a->contexts) {
		a->contexts = contexts_new(&a->session.paths, a->links);
	}
}

static void reload(struct agent *a)
{
	struct agent_config_error err;
	struct agent_config *mine = agent_options_config(&a->opts, &err),
			    *other = mine ? agent_options_config(&a->opts, &err) : NULL;
	struct targets *targets =
		other ? targets_new(mine->service ? mine->service : "host", a->containers) : NULL;
	uint64_t before = a->budget.hz;

	notify("RELOADING=1");
	if (!targets) {
		a->values.reload_errors++;
		agent_log(AGENT_LOG_ERROR, "the configuration was not reloaded", "error", "%s",
			  other ? "out of memory" : err.text, NULL);
		agent_config_free(mine);
		agent_config_free(other);
		notify("READY=1");
		return;
	}
	close_window(a);
	if (agent_config_needs_restart(a->cfg, mine))
		agent_log(AGENT_LOG_WARN,
			  "host, user, spool, metrics-address, table-memory, ring-size, "
			  "redact-paths, seccomp and trace-links need a restart",
			  NULL);
	agent_config_free(a->cfg);
	a->cfg = mine;
	window_free(&a->window);
	targets_free(a->targets);
	a->targets = targets;
	use_config(a);
	if (a->budget.hz && a->budget.hz != before &&
	    collector_set_hz(a->session.collector, a->budget.hz))
		agent_log(AGENT_LOG_ERROR, "the frequency could not be changed", NULL);
	agent_offcpu_follow(&a->off, &a->session, mine);
	open_window(a, session_now(), clock_ns(CLOCK_REALTIME));
	spool_limits(a->spool, &(struct spool_opts){ .max_bytes = mine->spool_bytes,
						     .max_age_ns = mine->spool_age_ns });
	sender_reload(a->sender, other);
	if (kubelet_follow(&a->kubelet, a->cfg, on_thread))
		agent_log(AGENT_LOG_ERROR, "cannot start a thread", NULL);
	a->values.reloads++;
	log_config(a, "configuration reloaded");
	notify("READY=1");
}

/* ---- Start and end ---- */

static int open_spool(struct agent *a)
{
	struct spool_opts o = { .dir = a->cfg->spool,
				.max_bytes = a->cfg->spool_bytes,
				.max_age_ns = a->cfg->spool_age_ns };
	struct spool_account held;
	char err[512];
	uid_t uid;
	gid_t gid;

	a->spool = spool_open(&o, err, sizeof(err));
	if (!a->spool)
		return complain(EXIT_FAILED, "spool: %s", err);
	if (a->cfg->spool && a->cfg->user && !privs_user(a->cfg->user, &uid, &gid) &&
	    spool_give(a->spool, uid, gid))
		return complain(EXIT_FAILED, "spool: %s cannot be given to %s: %s", a->cfg->spool,
				a->cfg->user, strerror(errno));
	spool_account(a->spool, &held);
	if (held.held.entries)
		agent_log(AGENT_LOG_INFO, "resuming the spool", "bodies", "%lu", held.held.entries,
			  "samples", "%lu", held.held.samples, NULL);
	return 0;
}

static int open_metrics(struct agent *a)
{
	char err[512];

	if (a->opts.once || !a->cfg->metrics || !strcmp(a->cfg->metrics, "none"))
		return 0;
	a->metrics = metrics_listen(a->cfg->metrics, err, sizeof(err));
	if (!a->metrics && agent_config_given(a->cfg, "metrics-address"))
		return complain(EXIT_FAILED, "metrics-address: %s", err);
	if (!a->metrics)
		agent_log(AGENT_LOG_WARN, "no metrics: the default address is in use", "error",
			  "%s", err, NULL);
	return 0;
}

static int start_threads(struct agent *a)
{
	struct agent_config_error err;
	struct agent_config *cfg = agent_options_config(&a->opts, &err);
	int rc;

	if (!cfg)
		return complain(EXIT_FAILED, "%s", err.text);
	a->sender = sender_start(a->spool, cfg, a->host, on_thread);
	if (!a->sender)
		return complain(EXIT_FAILED, "cannot start a thread");
	if ((a->metrics && metrics_start(a->metrics, a->sender, a->spool, on_thread)) ||
	    kubelet_follow(&a->kubelet, a->cfg, on_thread))
		return complain(EXIT_FAILED, "cannot start a thread");
	rc = a->cfg->seccomp ? privs_filter() : 0;
	if (rc)
		agent_log(AGENT_LOG_WARN, "system calls are not filtered", "error", "%s",
			  strerror(-rc), NULL);
	return 0;
}

/* Ends the window, and chooses whether the next one is sampled. 0 or the exit code. */
static int next_window(struct agent *a)
{
	struct collector *c = a->session.collector;
	bool skip = !pace_samples(a->cfg), failed = skip && collector_pause(c, true);
	int rc;

	if (skip)
		session_poll(&a->session, 0); /* what was sampled until now is of this window */
	close_window(a);
	failed |= a->skips && !skip && collector_pause(c, false);
	a->skips = skip;
	if (failed)
		agent_log(AGENT_LOG_ERROR, "not all CPUs could be paused or continued", NULL);
	keep_cpu(a);
	rc = keep_memory(a);
	a->values.cpus = a->session.cpus;
	metrics_look_for_gaps(&a->values);
	publish(a);
	return rc;
}

static void stop_threads(struct agent *a)
{
	metrics_stop(a->metrics);
	a->metrics = NULL;
	sender_stop(a->sender);
	a->sender = NULL;
	kubelet_stop(a->kubelet);
	a->kubelet = NULL;
}

/* Bodies of this run and of the spool that it found: all are in one of the four counts. */
static void log_stopped(const struct agent *a, const struct spool_account *before,
			const struct spool_account *after, uint64_t overrun)
{
	uint64_t kept = spool_kept(a->spool), dropped = overrun;

	for (int i = SPOOL_DELIVERED + 1; i < SPOOL_OUTCOMES; i++)
		dropped += after->done[i].entries - before->done[i].entries;
	agent_log(AGENT_LOG_INFO, "stopped", "windows", "%lu", a->values.windows, "samples", "%lu",
		  a->values.window_samples, "delivered", "%lu",
		  after->done[SPOOL_DELIVERED].entries - before->done[SPOOL_DELIVERED].entries,
		  "dropped", "%lu", dropped, "kept", "%lu", kept, "lost", "%lu",
		  after->held.entries - kept, NULL);
}

/* ---- The stages ---- */

static int prepare(void *ctx)
{
	struct sigaction hup = { .sa_handler = on_hangup, .sa_flags = SA_RESTART };
	struct agent *a = ctx;
	struct collector_opts *o = &a->opts.common.collect;
	char err[512];
	int rc;

	sigaction(SIGHUP, &hup, NULL);
	signal(SIGPIPE, SIG_IGN);
	set_host(a);
	identity_read(&a->identity, "/etc");
	if (a->cfg->trace_links)
		a->links = thread_links_new(&a->session.paths, &a->session.reader,
					    session_thread_link, &a->session);
	use_config(a);
	a->values.start_unix_ns = clock_ns(CLOCK_REALTIME);
	o->hz = a->budget.hz;
	o->want_cgroup = true;
	o->want_link = a->cfg->trace_links;
	o->excludes = rules_any(a->cfg);
	o->table_bytes = a->cfg->table_bytes;
	o->ring_bytes = a->cfg->ring_bytes;
	o->servers = &a->servers;
	notify_setup();
	if ((rc = open_spool(a)) || (rc = open_metrics(a)))
		return rc;
	/* Raises the priority as session_open does, which cannot any more without privileges. */
	setpriority(PRIO_PROCESS, 0, SESSION_NICE);
	if (privs_drop(a->cfg->user, err, sizeof(err)))
		return complain(EXIT_FAILED, "%s", err);
	a->containers = container_names_of_host();
	a->targets = targets_new(a->cfg->service ? a->cfg->service : "host", a->containers);
	return a->targets ? 0 : complain(EXIT_FAILED, "out of memory");
}

static int opened(void *ctx)
{
	struct agent *a = ctx;

	symbolizer_set_redact(a->session.symbols, a->cfg->redact);
	a->session.take = add_to_window;
	a->session.take_ctx = a;
	open_window(a, session_now(), clock_ns(CLOCK_REALTIME));
	return 0;
}

static int begin(void *ctx)
{
	struct agent *a = ctx;
	struct collector_error err;
	int rc;

	if (a->cfg->off_cpu && agent_offcpu_start(&a->off, &a->session, a->cfg, &err))
		return session_refused(&err);
	rc = start_threads(a);
	if (rc)
		return rc;
	spool_account(a->spool, &a->spool_before);
	log_config(a, "started");
	metrics_look_for_gaps(&a->values);
	publish(a);
	a->cpu_ns = sampling_cpu_ns(a);
	notify("READY=1");
	a->window_end = session_now() + window_length(a);
	return 0;
}

static int wait(void *ctx)
{
	const struct agent *a = ctx;
	uint64_t now = session_now(),
		 left = a->window_end > now ? (a->window_end - now) / NUM_MS + 1 : 0;

	if (a->done || session_stopped())
		return -1;
	return left < POLL_MS ? (int)left : POLL_MS;
}

static int tick(void *ctx)
{
	struct agent *a = ctx;
	int rc;

	agent_offcpu_tick(&a->off);
	window_ask(&a->window, a->contexts, false);
	window_pods(&a->window, a->kubelet, false);
	notify_alive();
	publish(a);
	if (reload_requested) {
		reload_requested = 0;
		reload(a);
		a->window_end = session_now() + window_length(a);
	}
	if (session_now() < a->window_end && window_bytes(&a->window) < WINDOW_BYTES)
		return 0;
	a->done = a->opts.once;
	if (a->done)
		return 0;
	rc = next_window(a);
	a->window_end = session_now() + window_length(a);
	return rc;
}

/* Fails with --once if the receiver did not accept the window. */
static int end(void *ctx, int err)
{
	struct agent *a = ctx;
	const struct spool_account *before = &a->spool_before;
	uint64_t start = session_now(), shutdown_ns = a->cfg->shutdown_ns, took;
	struct spool_account after;
	struct sender_stats sent;
	bool empty;

	if (err)
		return err;
	notify("STOPPING=1");
	agent_offcpu_into(&a->off, &a->window); /* called before measuring ends */
	agent_offcpu_stop(&a->off);
	session_stop(&a->session);
	close_window(a);
	took = session_now() - start;
	shutdown_ns = took < shutdown_ns ? shutdown_ns - took : 0;
	empty = sender_drain(a->sender, a->opts.once ? a->cfg->timeout_ns + NUM_S : shutdown_ns);
	sender_stats(a->sender, &sent);
	/* Stop the threads first: until then, bodies still enter or leave the spool. */
	stop_threads(a);
	spool_account(a->spool, &after);
	log_stopped(a, before, &after, sent.overrun.entries);
	if (!a->opts.once)
		return 0;
	if (empty && after.done[SPOOL_DELIVERED].entries - before->done[SPOOL_DELIVERED].entries >=
			     after.added.entries - before->added.entries)
		return 0;
	return complain(EXIT_FAILED, "the window was not delivered");
}

static void clean_up(struct agent *a)
{
	stop_threads(a);
	spool_close(a->spool);
	window_free(&a->window);
	targets_free(a->targets);
	rules_free(a->rules);
	container_names_free(a->containers);
	contexts_free(a->contexts);
	thread_links_free(a->links);
	agent_offcpu_stop(&a->off);
	session_close(&a->session);
	loader_servers_stop(&a->servers);
	agent_config_free(a->cfg);
	common_opts_free(&a->opts.common);
}

int agent_run(int argc, char **argv)
{
	static const struct stages stages = { .early_signals = true,
					      .prepare = prepare,
					      .opened = opened,
					      .begin = begin,
					      .wait = wait,
					      .tick = tick,
					      .end = end };
	struct agent_config_error err;
	static struct agent a;
	int rc;

	budget_return_memory();
	rc = agent_options_parse(&a.opts, argc, argv);
	if (rc)
		return rc;
	if (a.opts.schema) {
		fputs(clickhouse_schema, stdout);
		return EXIT_OK;
	}
	/* Fork the servers before the configuration brings tokens into memory. */
	rc = a.opts.check ? 0 : loader_servers_start(&a.servers);
	if (rc)
		rc = complain(EXIT_FAILED, "cannot start a process: %s", strerror(-rc));
	else if (!(a.cfg = agent_options_config(&a.opts, &err)))
		rc = complain(EXIT_USAGE, "%s", err.text);
	else if (a.opts.check)
		rc = agent_config_print(a.cfg, STDOUT_FILENO) ? EXIT_FAILED : EXIT_OK;
	else
		rc = stages_run(&stages, &a, &a.session, &a.opts.common.collect);
	clean_up(&a);
	return rc;
}
