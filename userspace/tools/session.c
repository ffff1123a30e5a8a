/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/result_file.h"
#include "cli/options.h"
#include "kern/caps.h"
#include "kern/host_gaps.h"
#include "symtab/elf_worker.h"

#define RETIRED_MIN 1024
#define CPUS_MS	    1000

static volatile sig_atomic_t stop_requested, skip_requested;

static void on_signal(int sig)
{
	(void)sig;
	stop_requested = 1;
}

static void on_skip(int sig)
{
	(void)sig;
	skip_requested = 1;
}

void session_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

bool session_stopped(void)
{
	return stop_requested;
}

bool session_skipped(void)
{
	return skip_requested;
}

void session_may_skip(void)
{
	const struct sigaction sa = { .sa_handler = on_skip, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

uint64_t session_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* A copy of the sample with the epoch in its JIT frames, because their addresses are reused. */
static const struct sf_sample *in_epoch(const struct sf_sample *sample, uint32_t epoch)
{
	static union {
		struct sf_sample sample;
		char room[sizeof(struct sf_sample) + 8 * SAMPLE_WORDS];
	} copy;
	uint64_t *frames = (uint64_t *)(copy.room + sizeof(struct sf_sample));

	if (sample->n_user > SF_MAX_USER || sample->n_kernel > SF_MAX_KERNEL)
		return sample;
	memcpy(copy.room, sample, sizeof(*sample) + 8 * sample_words(sample));
	for (size_t i = 0; i < sample->n_user; i++)
		if (SF_FRAME_KIND(frames[i]) == SF_FRAME_JIT && !SF_FRAME_JIT_EPOCH(frames[i]))
			frames[i] = SF_FRAME_IN_EPOCH(frames[i], epoch);
	return &copy.sample;
}

const struct sf_sample *session_see(struct session *s, const struct sf_sample *sample)
{
	const bool has_time = sample->type == SF_REC_SAMPLE;
	const uint64_t to = has_time ? sample->time_ns : session_now(),
		       from = has_time || !s->polled_ns ? to : s->polled_ns;
	uint32_t epoch = symbolizer_see(s->symbols, sample->frames, sample->n_user, sample->pid,
					from, to);

	return epoch ? in_epoch(sample, epoch) : sample;
}

void session_name_process(struct session *s, struct profile *p, const struct sf_sample *rec)
{
	const char *name = profile_process_name(p, rec->pid);

	if (name && (rec->tid != rec->pid || !strncmp(name, rec->comm, SF_COMM)))
		return;
	if (!s->names)
		s->names = process_names_new();
	if (s->names)
		profile_name_process(p, rec->pid, process_names_get(s->names, rec));
}

void session_add(struct session *s, const struct sf_sample *sample, const struct profile_times *t)
{
	size_t stack;

	session_name_process(s, s->profile, sample);
	if (profile_add_times(s->profile, session_see(s, sample), t, &stack)) {
		s->dropped++;
		return;
	}
	if (s->timeline)
		timeline_add(s->timeline, sample->time_ns, sample->cpu, stack);
	if (s->slices) /* the first samples are older than the start */
		slices_add(s->slices,
			   sample->time_ns > s->start_ns ? sample->time_ns - s->start_ns : 0,
			   stack);
}

static void add_sample(void *ctx, const struct sf_sample *sample)
{
	session_add(ctx, sample,
		    &(struct profile_times){
			    .count = 1, .weight = sample->weight, .group = sample->state });
}

/* The uid of the user who started the program, also through sudo. */
static uint32_t caller(void)
{
	uid_t uid;
	gid_t gid;

	return result_file_caller(&uid, &gid) ? uid : getuid();
}

int session_refused(const struct collector_error *why)
{
	static const enum exitcode codes[] = {
		[COLLECTOR_OK] = EXIT_OK,
		[COLLECTOR_FAILED] = EXIT_FAILED,
		[COLLECTOR_FORBIDDEN] = EXIT_PERMISSION,
		[COLLECTOR_UNSUPPORTED] = EXIT_UNSUPPORTED,
	};

	return complain((int)codes[why->trouble], "%s", why->text);
}

/* Finds the probes of calls, and those of waiting goroutines. 0 or -errno. */
static int resolve_calls(struct session *s, const struct collector_opts *o, char *why, size_t cap)
{
	int err = events_resolve(o->calls, &s->reader, o->pids, o->npids, why, cap);

	if (!err)
		err = events_add_parks(o->calls, o->events, why, cap);
	return err ? err : events_resolve(o->calls, &s->reader, o->pids, o->npids, why, cap);
}

int session_open(struct session *s, const struct collector_opts *opts)
{
	struct collector_opts with_servers = *opts;
	struct collector_error why;
	char text[1024];
	int files, err;

	memset(s, 0, sizeof(*s));
	/* First, so that the servers do not inherit later memory and descriptors. */
	if (!opts->servers) {
		with_servers.servers = &s->servers;
		err = loader_servers_start(&s->servers);
		if (err)
			return complain(EXIT_FAILED, "cannot start a process: %s", strerror(-err));
	}
	/*
	 * People profile busy machines. Without priority, loading BPF and tables takes a minute
	 * there, and the ring is not emptied on time. The loader's thread, for which the first
	 * samples of a file wait, inherits it. Best effort: it needs a capability.
	 */
	setpriority(PRIO_PROCESS, (id_t)gettid(), SESSION_NICE);
	with_servers.stopped = session_stopped;
	s->retired_limit = RETIRED_MIN;
	allowance_init(&s->allowance);
	s->allowance.stopped = session_stopped;
	s->allowance.caller = caller();
	elf_reader_init(&s->reader, with_servers.servers->parsers, elf_worker_main, &s->allowance);
	path_opener_init(&s->paths, with_servers.servers->openers, path_worker_main, &s->allowance);
	s->modules = modules_new();
	s->symbols = s->modules ? symbolizer_new(s->modules) : NULL;
	s->codes = lang_codes_new();
	s->profile = profile_new();
	if (!s->symbols || !s->codes || !s->profile)
		return complain(EXIT_FAILED, "out of memory");
	with_servers.codes = s->codes;
	if (opts->calls && resolve_calls(s, opts, text, sizeof(text)))
		return complain(EXIT_USAGE, "%s", text);
	if (events_resolve(opts->events, &s->reader, opts->pids, opts->npids, text, sizeof(text)))
		return complain(EXIT_USAGE, "-e %s", text);
	s->collector = collector_new(&with_servers, s->modules, &why);
	if (!s->collector)
		return session_refused(&why);
	symbolizer_set_kernel_names(s->symbols, collector_kernel_name, s->collector);
	symbolizer_set_reader(s->symbols, &s->reader, &s->paths);
	symbolizer_set_codes(s->symbols, s->codes);
	files = collector_preload(s->collector);
	if (opts->verbose) {
		struct collector_counters c;

		collector_counters(s->collector, &c);
		complain(0,
			 "%d mapped files: %llu with tables, %llu without, %llu gone; "
			 "%llu rows, %.1f MB, %.0f ms",
			 files, (unsigned long long)c.loader.loaded,
			 (unsigned long long)c.loader.no_table, (unsigned long long)c.loader.gone,
			 (unsigned long long)c.loader.rows, (double)c.tables.bytes / 1e6,
			 (double)c.loader.build_ns / 1e6);
	}
	return 0;
}

void session_warn_host(void)
{
	const struct host_gap *gap = host_gap_at(HOST_GAP_PID_NAMESPACE);

	if (host_gap_open(HOST_GAP_PID_NAMESPACE))
		complain(0, "%s (fix: %s)", gap->what, gap->fix);
}

int session_start(struct session *s)
{
	struct collector_error err = { 0 };
	int rc;

	/* Privileges are dropped before collector_attach starts a thread, which inherits them. */
	rc = result_file_keep_caller();
	if (!rc)
		rc = caps_keep_needed(s->more_caps);
	if (rc)
		return complain(EXIT_FAILED, "giving up privileges: %s", strerror(-rc));
	if (collector_attach(s->collector, &err))
		return session_refused(&err);
	s->start_ns = session_now();
	s->start_unix_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

/* Every CPUS_MS: a CPU that came online has no working event yet. */
static void follow_cpus(struct session *s)
{
	uint64_t now = session_now();

	if (s->end_ns || now < s->next_cpus_ns)
		return;
	s->next_cpus_ns = now + CPUS_MS * NUM_MS;
	s->cpus = (uint64_t)collector_follow_cpus(s->collector);
}

int session_poll(struct session *s, int timeout_ms)
{
	uint64_t now = session_now();
	int err;

	follow_cpus(s);
	worker_rest(&s->reader.worker);
	worker_rest(&s->paths.worker);
	err = collector_poll(s->collector, timeout_ms, s->take ? s->take : add_sample,
			     s->take ? s->take_ctx : s);
	s->polled_ns = now;
	return err;
}

int session_thread_link(void *session, uint32_t pid, const struct sf_thread_link *link)
{
	struct session *s = session;

	return s->collector ? collector_thread_link(s->collector, pid, link) : -ENOENT;
}

/* Half of the file descriptors are reserved for files that are still mapped. */
static size_t max_retired(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur < 2 * RETIRED_MIN
		       ? RETIRED_MIN
		       : (size_t)files.rlim_cur / 2;
}

/*
 * Too many retired files still have frames in the profile: names the frames now and closes the
 * older half of the files.
 */
static void forget_older(struct session *s, size_t n)
{
	struct module *m = NULL;

	profile_resolve(s->profile, s->symbols);
	for (size_t i = 0; i < n && (m = modules_next_retired(s->modules, m)); i++)
		symbolizer_forget(s->symbols, m);
}

void session_sweep(struct session *s, void (*mark)(void *ctx, const struct modules *ms), void *ctx)
{
	size_t retired = modules_sweep(s->modules);

	if ((s->take && !mark) || retired <= s->retired_limit)
		return;
	modules_unmark(s->modules);
	profile_mark(s->profile, s->modules);
	if (mark)
		mark(ctx, s->modules);
	for (struct module *m = modules_next_retired(s->modules, NULL); m;
	     m = modules_next_retired(s->modules, m))
		if (!m->marked)
			symbolizer_forget(s->symbols, m);
	retired = modules_sweep(s->modules);
	if (retired > max_retired())
		forget_older(s, retired / 2);
	s->retired_limit = 2 * retired > RETIRED_MIN ? 2 * retired : RETIRED_MIN;
}

void session_stop(struct session *s)
{
	struct collector_program progs[COLLECTOR_PROGRAMS];

	if (!s->collector || s->end_ns)
		return;
	allowance_end(&s->allowance);
	/* The run ends before detaching, which for off-CPU iterates over all threads. */
	s->end_ns = session_now();
	collector_detach(s->collector);
	session_poll(s, 0);
	s->nprograms = collector_programs(s->collector, progs, COLLECTOR_PROGRAMS);
	for (size_t i = 0; i < s->nprograms; i++) {
		memcpy(s->programs[i].name, progs[i].name, sizeof(s->programs[i].name));
		s->programs[i].run_cnt = progs[i].run_cnt;
		s->programs[i].run_ns = progs[i].run_ns;
		s->programs[i].verified_insns = progs[i].verified_insns;
		s->programs[i].verifier_states = progs[i].verifier_states;
		s->programs[i].code_bytes = progs[i].code_bytes;
	}
}

struct worker_totals session_parsers(const struct session *s, const struct collector_counters *c)
{
	struct worker_totals sum = s->allowance.totals;

	worker_totals_add(&sum, &c->loader.workers);
	return sum;
}

void session_stats(struct session *s, const struct profile *profile, struct run_stats *ret)
{
	struct collector_counters c;
	struct rusage ru;

	memset(ret, 0, sizeof(*ret));
	collector_counters(s->collector, &c);
	profile_account(profile, s->modules, &ret->account);
	ret->duration_s = (double)((s->end_ns ? s->end_ns : session_now()) - s->start_ns) / 1e9;
	ret->samples = c.taken;
	memcpy(ret->lost, c.lost, sizeof(ret->lost));
	ret->needs = c.needs;
	ret->needs_dropped = c.needs_dropped;
	ret->needs_refused = c.needs_refused;
	ret->lost[SF_LOST_BAD_RECORD] += s->dropped;
	ret->tables.modules = c.loader.loaded;
	ret->tables.rows = c.loader.rows;
	ret->tables.rules = c.loader.rules;
	ret->tables.bytes = c.tables.bytes;
	ret->tables.evicted = c.tables.evicted;
	ret->tables.recycled = c.tables.recycled;
	ret->tables.full = c.tables.full;
	ret->tables.build_ms = (double)c.loader.build_ns / 1e6;
	ret->parsers = session_parsers(s, &c);
	ret->programs = s->programs;
	ret->nprograms = s->nprograms;
	if (!getrusage(RUSAGE_SELF, &ru)) {
		ret->self.cpu_ms = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e3 +
				   (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e3 +
				   (double)ret->parsers.cpu_ns / 1e6;
		ret->self.rss_peak_kb = (uint64_t)ru.ru_maxrss;
	}
}

void session_forget_codes(struct session *s)
{
	lang_codes_reset(s->codes);
	collector_codes_forget(s->collector);
}

void session_close(struct session *s)
{
	collector_free(s->collector);
	symbolizer_free(s->symbols);
	lang_codes_free(s->codes);
	worker_end(&s->reader.worker);
	path_opener_end(&s->paths);
	profile_free(s->profile);
	process_names_free(s->names);
	modules_free(s->modules);
	loader_servers_stop(&s->servers);
	memset(s, 0, sizeof(*s));
}
