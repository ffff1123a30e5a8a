/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/oneshot.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "base/text.h"
#include "sym/debuginfod.h"
#include "sym/dwarf_reader.h"
#include "tools/command_files.h"
#include "worker/privs.h"

#define POLL_MS	      100
#define FIRST_LOOK_MS 5
#define LAST_LOOK_MS  2000

static int open_debuginfod(struct oneshot *r)
{
	int err = r->debuginfod ? 0 : debuginfod_new(session_skipped, &r->debuginfod);

	if (err == -ENOTSUP)
		return complain(EXIT_USAGE, "--debuginfod: built without libdebuginfod");
	if (err == -ENOENT)
		return complain(EXIT_USAGE,
				"--debuginfod: no server: DEBUGINFOD_URLS is not set "
				"(sudo drops it), and " DEBUGINFOD_URLS_DIR " has none");
	return err ? complain(EXIT_FAILED, "--debuginfod: %s", strerror(-err)) : 0;
}

static int take_seconds(struct oneshot *r, const char *arg)
{
	if (r->duration_ns)
		return complain(EXIT_USAGE,
				"unexpected '%s': the duration is given twice; "
				"put -- before a command",
				arg);
	if (num_duration(arg, NUM_S, &r->duration_ns) || !r->duration_ns)
		return complain(EXIT_USAGE,
				"'%s' is not a duration such as 10, 500ms or 1m30s; "
				"put -- before a command",
				arg);
	return 0;
}

int oneshot_option(struct oneshot *r, int id, const char *arg)
{
	switch (id) {
	case 'a':
		r->system_wide = true;
		return 0;
	case 'q':
		r->common.quiet = true;
		return 0;
	case OPT_STATS:
		return options_take_once("--stats", arg, &r->common.stats);
	case OPT_INLINE:
	case OPT_LINES:
		*(id == OPT_INLINE ? &r->inlined : &r->lines) = true;
		r->common.collect.lines |= id == OPT_LINES;
		if (dwarf_supported())
			return 0;
		return id == OPT_INLINE
			       ? complain(EXIT_USAGE, "--inline: built without libdw")
			       : complain(0, "--lines: native code has none: built without libdw");
	case OPT_BY:
		r->by = out_by_named(arg);
		return r->by ? 0
			     : complain(EXIT_USAGE,
					"--by: '%s' is not process, thread or container", arg);
	case OPT_DEBUGINFOD:
		return open_debuginfod(r);
	case 'd':
	case OPT_OPERAND:
		return take_seconds(r, arg);
	default:
		return common_opts_take(&r->common, id, arg);
	}
}

static int check_times(const struct oneshot *r)
{
	const struct common_opts *o = &r->common;

	if (r->timeline && !r->format->timeline)
		return complain(EXIT_USAGE,
				"--timeline: %s has no times; use one of the formats firefox "
				"(.json.gz) and perfetto (.pftrace)",
				r->format->name);
	if (!r->timeline && !o->format && r->format->shared_suffix)
		return complain(EXIT_USAGE,
				"the suffix of '%s' names a format with --timeline only; "
				"add --timeline, or use one of:%s",
				o->output, out_format_suffixes(OUT_SAMPLES));
	return 0;
}

int oneshot_choose(struct oneshot *r)
{
	const struct common_opts *o = &r->common;
	bool to_stdout = !o->output || !strcmp(o->output, "-");
	bool tty = to_stdout && isatty(STDOUT_FILENO);
	enum out_source source = r->has_times ? OUT_SAMPLES : OUT_PROFILE;
	int err;

	r->format = out_format_choose(o->format, to_stdout ? NULL : o->output,
				      r->timeline ? "firefox"
				      : tty	  ? "text"
						  : "folded",
				      source);
	if (!r->format)
		return options_unknown_format(o->format, o->output, source);
	err = check_times(r);
	if (err)
		return err;
	if (tty && r->format->binary)
		return complain(EXIT_USAGE,
				"%s is a binary format and not written to a terminal: use -o FILE",
				r->format->name);
	return 0;
}

/* Called before sampling, so that an unwritable path fails at once. */
static int open_file(const char *path, FILE **ret)
{
	int err = options_open_output(path, ret);

	if (!err && *ret == stdout && (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return complain(EXIT_FAILED, "standard output is closed");
	return err;
}

static bool is_same_file(FILE *a, FILE *b)
{
	struct stat x, y;

	return !fstat(fileno(a), &x) && !fstat(fileno(b), &y) && S_ISREG(x.st_mode) &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_outputs(struct oneshot *r)
{
	int err = open_file(r->common.output, &r->out);

	if (!err && r->common.stats)
		err = open_file(r->common.stats, &r->stats);
	if (!err && r->stats && r->stats != stdout && is_same_file(r->out, r->stats))
		err = complain(EXIT_USAGE, "-o and --stats are the same file");
	return err;
}

/* Whether any of the targets of -p or -t still runs. */
static bool targets_alive(const struct collector_opts *o)
{
	char path[64];

	if (!o->npids && !o->ntids)
		return true;
	for (size_t i = 0; i < o->npids + o->ntids; i++) {
		snprintf(path, sizeof(path), "/proc/%u",
			 i < o->npids ? o->pids[i] : o->tids[i - o->npids]);
		if (!access(path, F_OK))
			return true;
	}
	return false;
}

static int sample(struct oneshot *r, struct session *s)
{
	const volatile sig_atomic_t *stop = session_signals();
	uint64_t look_ns = r->command ? FIRST_LOOK_MS * NUM_MS : UINT64_MAX;
	int err;

	/* CAP_KILL serves to end the command after SECONDS, even if it changed its user. */
	if (r->command)
		s->more_caps |= PRIVS_CAP(CAP_KILL);
	/* The reader of DWARF takes the owner's user id and changes its root to the file's. */
	if (r->inlined || r->lines)
		s->more_caps |= PRIVS_CAP(CAP_SETUID) | PRIVS_CAP(CAP_SETGID) |
				PRIVS_CAP(CAP_SYS_CHROOT);
	session_warn_host();
	err = session_start(s);

	if (err)
		return err;
	if (r->command && command_go(&r->child))
		return complain(EXIT_FAILED, "cannot run '%s': %s", r->command[0], strerror(errno));
	progress_begin(&r->progress, &r->common, r->command ? r->command[0] : NULL, r->duration_ns);
	while (!*stop) {
		uint64_t run_ns = session_now() - s->start_ns;
		int wait_ms = POLL_MS;

		if (r->duration_ns) {
			if (run_ns >= r->duration_ns)
				break;
			if ((r->duration_ns - run_ns) / NUM_MS < POLL_MS)
				wait_ms = (int)((r->duration_ns - run_ns) / NUM_MS) + 1;
		}
		/* Find the command's libraries early: its first block may last for long. */
		if (run_ns >= look_ns) {
			collector_look(s->collector, (uint32_t)r->child.pid);
			look_ns = look_ns < LAST_LOOK_MS * NUM_MS ? look_ns * 2 : UINT64_MAX;
		} else if ((look_ns - run_ns) / NUM_MS < (uint64_t)wait_ms) {
			wait_ms = (int)((look_ns - run_ns) / NUM_MS) + 1;
		}
		if (r->command && command_ended(&r->child))
			break;
		if (!r->command && !targets_alive(&r->common.collect))
			break;
		err = session_poll(s, wait_ms);
		if (!err && r->tick)
			err = r->tick(r->tick_ctx);
		if (err)
			return complain(EXIT_FAILED, "reading samples: %s", strerror(-err));
		session_sweep(s, NULL, NULL);
		progress_tick(&r->progress, s);
	}
	return 0;
}

int oneshot_prepare(struct oneshot *r)
{
	int err = r->command && !r->system_wide ? options_need_host_pids("a command") : 0;

	if (!err)
		err = open_outputs(r);
	/* The command is forked before session_open raises the priority, which it would inherit. */
	if (!err && r->command && command_prepare(&r->child, r->command))
		err = complain(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
	if (r->command && !r->system_wide)
		r->common.collect.follow_forks = true;
	r->common.collect.count_run_time = r->common.stats != NULL;
	r->common.collect.want_cgroup = r->by == OUT_BY_CONTAINER ||
					(r->format && r->format->cgroups);
	return err;
}

/* Loads tables without which the command's first samples are incomplete. */
static void preload(struct session *s, char *const *argv)
{
	struct command_files files;

	if (!command_files_start(&files, argv))
		collector_preload_range(s->collector, (uint32_t)files.pid, (uintptr_t)files.room,
					files.room_len);
	command_files_end(&files);
}

int oneshot_sample(struct oneshot *r, struct session *s)
{
	int err;

	if (r->command) {
		if (!r->system_wide && !collector_add_pid(s->collector, (uint32_t)r->child.pid))
			return complain(EXIT_FAILED, "cannot follow process %d", r->child.pid);
		preload(s, r->command);
	}
	err = sample(r, s);
	progress_clear(&r->progress);
	session_stop(s);
	if (r->command)
		command_finish(&r->child, r->command[0], *session_signals());
	return err;
}

static void say_failed(void *ctx, const struct module *m, int err)
{
	const char *name = m->name ? m->name : "a file";
	char clean[PATH_MAX];

	(void)ctx;
	text_clean(clean, sizeof(clean), name, strlen(name), 0);
	complain(0, "the debug information of %s could not be read completely: %s", clean,
		 err == -ETIMEDOUT ? "it takes too long" : "it is damaged, or too large");
}

/* The user chose the servers, so the time they take does not count. */
static int fetch(void *ctx, const uint8_t *build_id, size_t len)
{
	const struct oneshot *r = ctx;
	int fd;

	allowance_hold(r->allowance);
	fd = debuginfod_fetch(r->debuginfod, build_id, len);
	allowance_go_on(r->allowance);
	return fd;
}

int oneshot_debug(struct oneshot *r, struct session *s, const struct profile *more)
{
	struct symbolizer_debug opts = { .inlined = r->inlined,
					 .lines = r->lines,
					 .failed = say_failed,
					 .stopped = session_skipped };
	uint64_t start = session_now();
	unsigned int files = 0;
	int err;

	if (r->debuginfod || r->inlined || r->lines)
		session_may_skip();
	r->allowance = &s->allowance;
	if (r->debuginfod)
		symbolizer_set_fetch(s->symbols, &(struct debug_fetch){ fetch, r });
	if (!r->inlined && !r->lines)
		return 0;
	err = profile_want_debug(s->profile, s->symbols);
	if (!err && more)
		err = profile_want_debug(more, s->symbols);
	if (!err)
		err = symbolizer_read_debug(s->symbols, &opts, &files);
	if (err)
		return complain(EXIT_FAILED, "reading debug information: %s", strerror(-err));
	if (session_skipped())
		complain(0, "interrupted: inlined functions and lines are shown "
			    "for some files only");
	if (!r->common.collect.verbose)
		return 0;
	complain(0, "debug information of %u files, read in %.1f s", files,
		 (double)(session_now() - start) / 1e9);
	return 0;
}

FILE *oneshot_begin(void)
{
	FILE *f = result_file_stage();

	if (!f)
		complain(EXIT_FAILED, "writing the output: %s", strerror(errno));
	return f;
}

/* Where there may be room for what could not be written */
static void keep(const struct oneshot *r, FILE *made)
{
	const char *const dirs[] = { getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm" };
	const char *suffix = r->format->suffixes[0] ? r->format->suffixes[0] : "";
	char path[PATH_MAX];
	FILE *f;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (!dirs[i] ||
		    snprintf(path, sizeof(path), "%s/sfbpf-%d%s", dirs[i], (int)getpid(), suffix) >=
			    (int)sizeof(path) ||
		    result_file_create(path, &f))
			continue;
		if (!result_file_fill(f, made) && !fclose(f)) {
			complain(0, "what was recorded is in %s", path);
			return;
		}
		unlink(path);
	}
	complain(0, "what was recorded is lost: there is no room for it in $TMPDIR, /tmp, "
		    "/var/tmp or /dev/shm");
}

int oneshot_end(struct oneshot *r, FILE *made, int err)
{
	if (!err) {
		err = result_file_fill(r->out, made);
		if (err)
			complain(EXIT_FAILED, "writing %s: %s",
				 r->out == stdout ? "the output" : r->common.output,
				 strerror(-err));
		if (err)
			keep(r, made);
	} else {
		complain(EXIT_FAILED, "making the output: %s", strerror(-err));
	}
	fclose(made);
	return err ? EXIT_FAILED : 0;
}

int oneshot_stats(struct oneshot *r, const struct run_stats *stats)
{
	FILE *made = r->stats ? oneshot_begin() : NULL;
	int err;

	if (!made)
		return r->stats ? EXIT_FAILED : 0;
	err = out_stats(stats, made);
	if (!err)
		err = result_file_fill(r->stats, made);
	fclose(made);
	return err ? complain(EXIT_FAILED, "writing %s: %s", r->common.stats, strerror(-err)) : 0;
}

static void say_empty(const struct oneshot *r, const struct run_stats *st, const char *things)
{
	bool some = r->common.collect.follow_forks || common_opts_filter(&r->common);

	complain(0, "no %s: %s %s in %.1f s", things,
		 some ? "nothing that the options select" : "nothing",
		 r->common.collect.offcpu ? "was blocked" : "ran on a CPU", st->duration_s);
}

void oneshot_say_result(const struct oneshot *r, const struct run_stats *st, const char *things)
{
	const char *path = r->out == stdout ? NULL : r->common.output;

	progress_wrote(&r->progress, path, r->format->name, st, things);
	if (!st->samples)
		say_empty(r, st, things);
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		if (st->lost[i])
			complain(0, "lost %llu: %s", (unsigned long long)st->lost[i],
				 profile_lost_help(i));
	if (st->tables.full)
		complain(0,
			 "%llu times there was no room for a file's tables: "
			 "use a larger --table-memory",
			 (unsigned long long)st->tables.full);
	if (st->parsers.died || st->parsers.late || st->parsers.failed)
		complain(0,
			 "%llu workers died, %llu took too long; "
			 "%llu files have no tables or names for that reason",
			 (unsigned long long)st->parsers.died, (unsigned long long)st->parsers.late,
			 (unsigned long long)st->parsers.failed);
	if (st->parsers.deferred)
		complain(0, "%llu times a name was not read: the files took too long",
			 (unsigned long long)st->parsers.deferred);
	if (st->parsers.mangled)
		complain(0, "%llu names are not demangled: it would take too long",
			 (unsigned long long)st->parsers.mangled);
	if (st->parsers.cut)
		complain(0, "%llu functions have no names: their files have too many",
			 (unsigned long long)st->parsers.cut);
	if (st->parsers.changed)
		complain(0,
			 "%llu files were written while they were in use: "
			 "what ran before has no names",
			 (unsigned long long)st->parsers.changed);
	if (st->needs_refused)
		complain(0,
			 "%llu times a new file had to wait: "
			 "its user mapped too many new files at once",
			 (unsigned long long)st->needs_refused);
}

void oneshot_say_timeline(const struct timeline *t)
{
	if (t->dropped)
		complain(0,
			 "%llu samples are not on the timeline, which holds %zu: "
			 "use a lower frequency (-F) or a shorter time",
			 (unsigned long long)t->dropped, t->n);
	if (t->missing)
		complain(0,
			 "%llu waits are not on the timeline, which has %zu of %g ms or more: "
			 "use a larger -m",
			 (unsigned long long)t->missing, t->nblocks, (double)t->min_block_ns / 1e6);
}

static void say_fetched(const struct oneshot *r)
{
	const struct debuginfod_totals t = debuginfod_totals(r->debuginfod);

	if (r->common.collect.verbose)
		complain(0, "debuginfod: %u files, %.1f MB", t.files, (double)t.bytes / 1e6);
	if (t.error)
		complain(0, "--debuginfod: no requests for the remaining files: %s",
			 strerror(-t.error));
}

int oneshot_close(struct oneshot *r, int rc)
{
	if (!rc && r->command)
		rc = r->child.exit_code;
	if (r->out && r->out != stdout && fclose(r->out) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r->common.output, strerror(errno));
	if (r->stats && r->stats != stdout && fclose(r->stats) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r->common.stats, strerror(errno));
	if (r->debuginfod)
		say_fetched(r);
	debuginfod_free(r->debuginfod);
	common_opts_free(&r->common);
	return rc;
}
