/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/result_file.h"
#include "kern/caps.h"
#include "sym/elf_child.h"
#include "tools/options.h"

#define SESSION_NICE (-10)
#define LEFT_MIN 1024
#define CPUS_MS 1000

static volatile sig_atomic_t stop_requested;

static void on_signal(int sig)
{
	(void)sig;
	stop_requested = 1;
}

const volatile sig_atomic_t *session_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	return &stop_requested;
}

uint64_t session_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* The same sample with the second in its JIT frames: their addresses will have been used again. */
static const struct sf_sample *in_epoch(const struct sf_sample *sample, uint32_t epoch)
{
	static union {
		struct sf_sample sample;
		char room[sizeof(struct sf_sample) + 8 * (SF_MAX_USER + SF_MAX_KERNEL)];
	} copy;
	uint64_t *frames = (uint64_t *)(copy.room + sizeof(struct sf_sample));

	if (sample->n_user > SF_MAX_USER || sample->n_kernel > SF_MAX_KERNEL)
		return sample;
	memcpy(copy.room, sample, sizeof(*sample) + 8 * ((size_t)sample->n_user + sample->n_kernel));
	for (size_t i = 0; i < sample->n_user; i++)
		if (SF_FRAME_KIND(frames[i]) == SF_FRAME_JIT && !SF_FRAME_JIT_EPOCH(frames[i]))
			frames[i] = SF_FRAME_IN_EPOCH(frames[i], epoch);
	return &copy.sample;
}

const struct sf_sample *session_see(struct session *s, const struct sf_sample *sample)
{
	uint32_t epoch = symbolizer_see(s->symbols, sample->frames, sample->n_user, sample->pid,
					sample->time_ns ? sample->time_ns : session_now());

	return epoch ? in_epoch(sample, epoch) : sample;
}

static void on_sample(void *ctx, const struct sf_sample *sample)
{
	struct session *s = ctx;

	if (profile_add(s->profile, session_see(s, sample)))
		s->dropped++;
}

int session_open(struct session *s, const struct collector_opts *opts)
{
	struct collector_opts with_servers = *opts;
	struct collector_error why;
	int files, err;

	memset(s, 0, sizeof(*s));
	/* First: what we have later is not for them. */
	if (!opts->servers) {
		with_servers.servers = &s->servers;
		err = loader_servers_start(&s->servers);
		if (err)
			return complain(EXIT_FAILED, "cannot start a process: %s", strerror(-err));
	}
	s->left_limit = LEFT_MIN;
	patience_init(&s->patience);
	s->reader = elf_reader_new(with_servers.servers->parsers, elf_child_main, &s->patience);
	s->paths = path_opener_new(with_servers.servers->openers, path_child_main, &s->patience);
	s->modules = modules_new();
	s->symbols = s->modules ? symbolizer_new(s->modules) : NULL;
	s->profile = profile_new();
	if (!s->reader || !s->paths || !s->symbols || !s->profile)
		return complain(EXIT_FAILED, "out of memory");
	s->collector = collector_new(&with_servers, s->modules, &why);
	if (!s->collector)
		return complain(why.exit_code, "%s", why.text);
	symbolizer_set_kernel_names(s->symbols, collector_kernel_name, s->collector);
	symbolizer_set_reader(s->symbols, s->reader, s->paths);
	files = collector_preload(s->collector);
	if (opts->verbose) {
		struct collector_counters c;

		collector_counters(s->collector, &c);
		fprintf(stderr, "sfbpf: %d mapped files: %llu with tables, %llu without, %llu gone; %llu rows, %.1f MB, %.0f ms\n",
			files, (unsigned long long)c.loader.loaded, (unsigned long long)c.loader.no_table,
			(unsigned long long)c.loader.gone, (unsigned long long)c.loader.rows,
			(double)c.tables.bytes / 1e6, (double)c.loader.build_ns / 1e6);
	}
	return 0;
}

int session_start(struct session *s)
{
	struct collector_error err = { 0 };
	int rc;

	/* The ring must be emptied on time on a machine that has no time; what runs here is a fraction of a percent. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), SESSION_NICE);
	/* The collector starts a thread, which inherits what we have. */
	rc = result_file_keep_caller();
	if (!rc)
		rc = caps_keep_needed(s->more_caps);
	if (rc)
		return complain(EXIT_FAILED, "giving up privileges: %s", strerror(-rc));
	rc = collector_attach(s->collector, &err);
	if (rc)
		return complain(rc, "%s", err.text);
	s->start_ns = session_now();
	s->start_unix_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

/* Every so often; a CPU that has come online has no event yet, or a dead one. */
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
	follow_cpus(s);
	elf_reader_rest(s->reader);
	path_opener_rest(s->paths);
	return collector_poll(s->collector, timeout_ms, s->take ? s->take : on_sample, s->take ? s->take_ctx : s);
}

/* Descriptors for half of the files that may be open are kept for files that are mapped. */
static size_t max_left(void)
{
	struct rlimit files;

	return getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur < 2 * LEFT_MIN ? LEFT_MIN : (size_t)files.rlim_cur / 2;
}

/* Too many files are gone whose frames are kept: the older half is named now, as far as the profile goes, and then closed. */
static void forget_older(struct session *s, size_t n)
{
	struct module *m = NULL;

	profile_resolve(s->profile, s->symbols);
	for (size_t i = 0; i < n && (m = modules_next_left(s->modules, m)); i++)
		symbolizer_forget(m);
}

void session_sweep(struct session *s, void (*see)(void *ctx, const struct modules *ms), void *ctx)
{
	size_t left = modules_sweep(s->modules);

	if ((s->take && !see) || left <= s->left_limit)
		return;
	modules_unsee(s->modules);
	profile_see(s->profile, s->modules);
	if (see)
		see(ctx, s->modules);
	for (struct module *m = modules_next_left(s->modules, NULL); m; m = modules_next_left(s->modules, m))
		if (!m->seen)
			symbolizer_forget(m);
	left = modules_sweep(s->modules);
	if (left > max_left())
		forget_older(s, left / 2);
	s->left_limit = 2 * left > LEFT_MIN ? 2 * left : LEFT_MIN;
}

void session_stop(struct session *s)
{
	struct collector_program progs[16];

	if (!s->collector || s->end_ns)
		return;
	s->patience.unhurried = true;
	s->end_ns = session_now();	/* before: for off-CPU, the detaching takes a look at all threads */
	collector_detach(s->collector);
	session_poll(s, 0);
	s->nprograms = collector_programs(s->collector, progs, 16);
	for (size_t i = 0; i < s->nprograms; i++) {
		memcpy(s->programs[i].name, progs[i].name, sizeof(s->programs[i].name));
		s->programs[i].run_cnt = progs[i].run_cnt;
		s->programs[i].run_ns = progs[i].run_ns;
		s->programs[i].verified_insns = progs[i].verified_insns;
		s->programs[i].verifier_states = progs[i].verifier_states;
		s->programs[i].code_bytes = progs[i].code_bytes;
	}
}

struct run_parsers session_parsers(const struct session *s, const struct collector_counters *c)
{
	const struct loader_parser_totals *tables = &c->loader.parser;
	struct elf_reader_totals names;
	struct path_opener_totals paths;

	elf_reader_totals(s->reader, &names);
	path_opener_totals(s->paths, &paths);
	return (struct run_parsers){
		.died = tables->died + names.died + paths.died, .late = tables->late + names.late + paths.late,
		.failed = tables->failed + names.failed + paths.failed, .deferred = names.deferred + paths.deferred, .cut = names.cut,
		.cpu_ns = tables->cpu_ns + names.cpu_ns + paths.cpu_ns,
	};
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
	ret->tables.cached = c.loader.cached;
	ret->tables.evicted = c.tables.evicted;
	ret->tables.recycled = c.tables.recycled;
	ret->tables.full = c.tables.full;
	ret->tables.turns = c.tables.turns;
	ret->tables.build_ms = (double)c.loader.build_ns / 1e6;
	ret->parsers = session_parsers(s, &c);
	ret->programs = s->programs;
	ret->nprograms = s->nprograms;
	if (!getrusage(RUSAGE_SELF, &ru)) {
		ret->self.cpu_ms = (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e3 +
				   (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e3 + (double)ret->parsers.cpu_ns / 1e6;
		ret->self.rss_peak_kb = (uint64_t)ru.ru_maxrss;
	}
}

void session_close(struct session *s)
{
	collector_free(s->collector);
	symbolizer_free(s->symbols);
	elf_reader_free(s->reader);
	path_opener_free(s->paths);
	profile_free(s->profile);
	modules_free(s->modules);
	loader_servers_stop(&s->servers);
	memset(s, 0, sizeof(*s));
}
