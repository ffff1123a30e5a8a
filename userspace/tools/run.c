/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "base/result_file.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "debuginfo/debuginfod.h"
#include "out/critical.h"
#include "tools/command_files.h"
#include "tools/stages.h"
#include "worker/privs.h"

#define POLL_MS	      100
#define FIRST_LOOK_MS 5
#define LAST_LOOK_MS  2000

/* ---- Before sampling ---- */

/* Opens the files, and makes the process of COMMAND, which waits until sampling begins. */
static int prepare(void *ctx)
{
	struct oneshot *r = ctx;
	struct collector_opts *o = &r->common.collect;
	bool only_command = r->command && !r->system_wide;
	int err = only_command ? options_need_host_pids("a command") : 0;

	if (!err)
		err = oneshot_open(r);
	if (err)
		return err;
	/* The command is forked before session_open raises the priority, which it would inherit. */
	if (r->command && command_prepare(&r->child, r->command))
		return complain(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
	o->follow_forks |= only_command;
	o->count_run_time = r->common.stats != NULL;
	o->want_cgroup = r->by == OUT_BY_CONTAINER || r->cgroups;
	return 0;
}

static int open_blocks(struct oneshot *r)
{
	if (blocks_open(&r->blocks, &r->session, r->off.wakers))
		return complain(EXIT_FAILED, "out of memory");
	r->session.take = blocks_take;
	r->session.take_ctx = &r->blocks;
	r->blocks.max_stacks = 4 * (size_t)r->off.max_stacks;
	r->blocks.period_ns = r->off.period_ns;
	return 0;
}

static void limit_blocks(struct oneshot *r)
{
	struct offcpu *off = collector_offcpu(r->session.collector);
	struct offcpu_totals totals;

	offcpu_totals(off, &totals);
	/* When a thread leaves the CPU, its block has no length to sample by. */
	r->limited = r->off.want_cost_back && !totals.at_leave;
	offcpu_thin(off, r->limit.thin_ns);
}

/*
 * Loads tables without which the command's first samples are incomplete, and all languages if only
 * a shell knows which ones it will start.
 */
static void preload(struct session *s, char *const *argv)
{
	struct command_files files;

	if (!command_files_start(&files, argv))
		collector_preload_range(s->collector, (uint32_t)files.pid, (uintptr_t)files.room,
					files.room_len);
	if (files.shell)
		collector_want_languages(s->collector);
	command_files_end(&files);
}

static int opened(void *ctx)
{
	struct oneshot *r = ctx;
	struct session *s = &r->session;
	int err = r->common.collect.offcpu ? open_blocks(r) : 0;

	if (err)
		return err;
	if (r->times_wanted)
		s->timeline = &r->times;
	if (r->hooks->opened)
		r->hooks->opened(r);
	if (r->command && !r->system_wide &&
	    !collector_add_pid(s->collector, (uint32_t)r->child.pid))
		return complain(EXIT_FAILED, "cannot follow process %d", r->child.pid);
	if (r->command)
		preload(s, r->command);
	/* CAP_KILL serves to end the command after SECONDS, even if it changed its user. */
	if (r->command)
		s->more_caps |= PRIVS_CAP(CAP_KILL);
	/* The reader of DWARF takes the owner's user id and changes its root to the file's. */
	if (r->inlined || r->lines)
		s->more_caps |= PRIVS_CAP(CAP_SETUID) | PRIVS_CAP(CAP_SETGID) |
				PRIVS_CAP(CAP_SYS_CHROOT);
	session_warn_host();
	return 0;
}

/* ---- Sampling ---- */

static int begin(void *ctx)
{
	struct oneshot *r = ctx;

	if (r->common.collect.offcpu)
		limit_blocks(r);
	if (r->command && command_go(&r->child))
		return complain(EXIT_FAILED, "cannot run '%s': %s", r->command[0], strerror(errno));
	r->look_ns = r->command ? FIRST_LOOK_MS * NUM_MS : UINT64_MAX;
	progress_begin(&r->progress, &r->common, r->command ? r->command[0] : NULL, r->duration_ns);
	return 0;
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

/* Ends with SECONDS, the command or the targets. Looks for the command's libraries if it is due. */
static int wait(void *ctx)
{
	struct oneshot *r = ctx;
	uint64_t run_ns = session_now() - r->session.start_ns;
	int wait_ms = POLL_MS;

	if (session_stopped() || (r->duration_ns && run_ns >= r->duration_ns))
		return -1;
	if (r->duration_ns && (r->duration_ns - run_ns) / NUM_MS < POLL_MS)
		wait_ms = (int)((r->duration_ns - run_ns) / NUM_MS) + 1;
	/* Find the command's libraries early: its first block may last for long. */
	if (run_ns >= r->look_ns) {
		collector_look(r->session.collector, (uint32_t)r->child.pid);
		r->look_ns = r->look_ns < LAST_LOOK_MS * NUM_MS ? r->look_ns * 2 : UINT64_MAX;
	} else if ((r->look_ns - run_ns) / NUM_MS < (uint64_t)wait_ms) {
		wait_ms = (int)((r->look_ns - run_ns) / NUM_MS) + 1;
	}
	return (r->command ? command_ended(&r->child) : !targets_alive(&r->common.collect))
		       ? -1
		       : wait_ms;
}

static int tick_blocks(struct oneshot *r)
{
	if (r->limited)
		blocks_limit_cost(&r->blocks, &r->limit);
	if (r->off.singles)
		blocks_singles(&r->blocks, &r->times, false);
	return blocks_tick(&r->blocks);
}

static int tick(void *ctx)
{
	struct oneshot *r = ctx;
	int err = r->common.collect.offcpu ? tick_blocks(r) : 0;

	if (!err && r->hooks->tick)
		err = r->hooks->tick(r);
	if (err)
		return err;
	session_sweep(&r->session, NULL, NULL);
	progress_tick(&r->progress, &r->session);
	return 0;
}

/* ---- After sampling ---- */

/* Adds what the kernel has counted. */
static int take_rest(struct oneshot *r)
{
	struct session *s = &r->session;
	struct offcpu_totals totals;
	int err = 0;

	if (r->off.singles) {
		blocks_singles(&r->blocks, &r->times, true);
		offcpu_totals(collector_offcpu(s->collector), &totals);
		r->times.missing += totals.singles_lost;
	}
	if (s->slices)
		slices_cover(s->slices, s->end_ns - s->start_ns);
	r->times.start_ns = s->start_ns;
	r->times.suspended_ns = clock_ns(CLOCK_BOOTTIME) - session_now();
	if (r->common.collect.offcpu)
		err = blocks_merge(&r->blocks);
	if (!err && r->hooks->collected)
		err = r->hooks->collected(r);
	if (err)
		return complain(EXIT_FAILED, "reading the counts: %s", strerror(-err));
	r->collected = true;
	return 0;
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
	struct oneshot *r = ctx;
	int fd;

	allowance_hold(&r->session.allowance);
	fd = debuginfod_fetch(r->debuginfod, build_id, len);
	allowance_go_on(&r->session.allowance);
	return fd;
}

/*
 * Carries out --inline, --lines and --debuginfod, and reads Go's lines for pprof, before the report
 * names user frames. With --wall nothing is read for the frames of wakers.
 */
static int read_debug(struct oneshot *r)
{
	struct symbolizer_debug opts = { .inlined = r->inlined,
					 .lines = r->lines,
					 .go = r->go_lines,
					 .failed = say_failed,
					 .stopped = session_skipped };
	struct session *s = &r->session;
	uint64_t start = session_now();
	unsigned int files = 0;
	int err;

	if (r->debuginfod || r->inlined || r->lines)
		session_may_skip();
	if (r->debuginfod)
		symbolizer_set_fetch(s->symbols, &(struct debug_fetch){ fetch, r });
	if (!r->inlined && !r->lines && !r->go_lines)
		return 0;
	err = profile_want_debug(s->profile, s->symbols);
	if (!err && r->blocks.wakers && !r->common.collect.wall)
		err = profile_want_debug(r->blocks.wakers, s->symbols);
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

static void fill_account(struct oneshot *r, struct run_stats *st)
{
	session_stats(&r->session, r->session.profile, st);
	if (r->common.collect.offcpu)
		blocks_stats(&r->blocks, st);
}

/* Writes the result to the first directory that has room for it, because o->f had none. */
static void keep_elsewhere(const struct oneshot_output *o, FILE *made)
{
	const char *const dirs[] = { getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm" };
	const char *suffix = o->format->suffixes[0] ? o->format->suffixes[0] : "";
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

/*
 * Writes one output. It is made in memory first: if there is no room for it, an older result stays
 * as it is, and this one is kept elsewhere.
 */
static int write_output(const struct oneshot *r, const struct oneshot_output *o,
			const struct out_report *all)
{
	struct out_report rep = out_report_for(all, o->format);
	FILE *made = result_file_stage();
	int err;

	if (!made)
		return complain(EXIT_FAILED, "writing the output: %s", strerror(errno));
	rep.opts.columns = o->f == stdout ? terminal_columns() : 0;
	err = r->path ? critical_write(&rep, r->path, o->format, made)
		      : o->format->write(&rep, made);
	if (err) {
		err = complain(EXIT_FAILED, "making the output: %s", strerror(-err));
	} else if ((err = result_file_fill(o->f, made))) {
		err = complain(EXIT_FAILED, "writing %s: %s", o->path ? o->path : "the output",
			       strerror(-err));
		keep_elsewhere(o, made);
	}
	fclose(made);
	return err;
}

/*
 * Writes all outputs: first those that have the threads' own names, which the others lose, and of
 * those the recordings, which settle what names all of them have.
 */
static int write_outputs(struct oneshot *r, const struct out_report *all)
{
	bool named = false;
	int first = 0, err;

	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < r->noutputs; i++) {
			const struct out_format *f = r->outputs[i].format;

			if (turn != (f->whole ? 0 : f->apart ? 1 : 2))
				continue;
			if (turn == 2 && !named && !r->apart && (err = out_name_threads(all)))
				return complain(EXIT_FAILED, "making the output: %s",
						strerror(-err));
			named |= turn == 2;
			err = write_output(r, &r->outputs[i], all);
			first = first ? first : err;
		}
	}
	return first;
}

/* "6.1.0-18-amd64 x86_64" */
static const char *kernel_text(char *buf, size_t cap)
{
	struct utsname u;

	if (uname(&u))
		return NULL;
	snprintf(buf, cap, "%.64s %.64s", u.release, u.machine);
	return buf;
}

/* *st is the account until now. */
static int write_result(struct oneshot *r, const struct run_stats *st)
{
	const struct collector_opts *o = &r->common.collect;
	struct session *s = &r->session;
	char host[256] = "", kernel[160];
	struct out_meta meta = {
		.event = r->event,
		.hz = r->hz,
		.host = host,
		.command = r->command && !r->system_wide ? r->command[0] : NULL,
		.command_line = r->line,
		.kernel = kernel_text(kernel, sizeof(kernel)),
		.start_unix_ns = s->start_unix_ns,
	};
	struct out_report all = {
		.profile = s->profile,
		.symbols = s->symbols,
		.modules = s->modules,
		.meta = &meta,
		.stats = st,
		.timeline = s->timeline,
		.slices = s->slices,
		.wakers = r->blocks.wakers,
		.blocks = r->blocked.list || r->blocked.locks ? &r->blocked : NULL,
		.calls = r->calls,
		.apart = r->apart,
		.containers = out_containers_new(),
		.opts = { .by = r->by,
			  .wall = r->wall,
			  .user_only = !o->kernel,
			  .kernel_only = !o->user,
			  .usec = o->offcpu != NULL,
			  .unit = o->latency ? "microseconds"
				  : !o->offcpu && events_weighted(o->events)
					  ? events_unit(o->events)
					  : NULL,
			  .groups = r->groups,
			  .ngroups = r->ngroups },
	};
	int err;

	if (!all.containers)
		return complain(EXIT_FAILED, "out of memory");
	gethostname(host, sizeof(host) - 1);
	err = r->hooks->report ? r->hooks->report(r, &all) : 0;
	if (!err)
		err = write_outputs(r, &all);
	out_containers_free(all.containers);
	return err;
}

/* The account, to the file of --stats if there is one */
static int write_account(struct oneshot *r, const struct run_stats *st)
{
	FILE *made = r->stats ? result_file_stage() : NULL;
	int err;

	if (!made)
		return r->stats ? complain(EXIT_FAILED, "writing the output: %s", strerror(errno))
				: 0;
	err = out_stats(st, made);
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
		 r->common.collect.offcpu	       ? "was blocked"
		 : events_are_clock(&r->common.events) ? "ran on a CPU"
						       : "hit the event",
		 st->duration_s);
}

static void say_number(uint64_t n, const char *what)
{
	if (n)
		complain(0, "%" PRIu64 " %s", n, what);
}

static void say_late(const struct collector *c)
{
	char names[128];
	uint64_t ns = collector_late_languages(c, names, sizeof(names));

	if (ns)
		complain(0,
			 "%s: first seen during the run; functions were native frames for %.1f s, "
			 "while a program that walks them was loaded (--all-languages avoids it)",
			 names, (double)ns / 1e9);
}

/* Says what was written and what was lost. */
static void say_result(const struct oneshot *r, const struct run_stats *st, const char *things)
{
	char wrote[512] = "";
	size_t at = 0;

	for (size_t i = 0; i < r->noutputs && at < sizeof(wrote); i++) {
		const struct oneshot_output *o = &r->outputs[i];

		at += (size_t)snprintf(wrote + at, sizeof(wrote) - at, "%s%s%s%s", i ? ", " : "",
				       o->format->name, o->path ? " in " : "",
				       o->path ? o->path : "");
	}
	progress_wrote(&r->progress, wrote, st, things);
	if (!st->samples)
		say_empty(r, st, things);
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		if (st->lost[i])
			complain(0, "lost %" PRIu64 ": %s", st->lost[i], profile_lost_help(i));
	say_number(st->tables.full, "times there was no room for a file's tables: "
				    "use a larger --table-memory");
	if (st->parsers.died || st->parsers.late || st->parsers.failed)
		complain(0,
			 "%" PRIu64 " workers died, %" PRIu64 " took too long; %" PRIu64
			 " files have no tables or names for that reason",
			 st->parsers.died, st->parsers.late, st->parsers.failed);
	say_number(st->parsers.deferred, "times a name was not read: the files took too long");
	say_number(st->parsers.mangled, "names are not demangled: it would take too long");
	say_number(st->parsers.cut,
		   "functions or files of JIT code lost names: there was too much to read");
	say_number(st->parsers.changed, "files were written while they were in use: "
					"what ran before has no names");
	say_number(st->needs_refused, "times a new file had to wait: "
				      "its user mapped too many new files at once");
	say_late(r->session.collector);
}

void run_say_timeline(const struct oneshot *r)
{
	const struct timeline *t = &r->times;

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

static int report(struct oneshot *r)
{
	struct run_stats st;
	int err = read_debug(r);

	if (err)
		return err;
	fill_account(r, &st);
	err = write_result(r, &st);
	fill_account(r, &st); /* counts the symbols' own cost, too */
	if (!err)
		err = write_account(r, &st);
	if (err)
		return err;
	say_result(r, &st, r->hooks->things);
	if (r->hooks->say)
		r->hooks->say(r, &st);
	return 0;
}

static int end(void *ctx, int err)
{
	struct oneshot *r = ctx;

	progress_clear(&r->progress);
	session_stop(&r->session);
	if (r->command)
		command_finish(&r->child, r->command[0], session_stopped());
	if (!err)
		err = take_rest(r);
	return err ? err : report(r);
}

int run_once(struct oneshot *r, const struct run_hooks *hooks)
{
	static const struct stages stages = { .prepare = prepare,
					      .opened = opened,
					      .begin = begin,
					      .wait = wait,
					      .tick = tick,
					      .end = end };
	int err = oneshot_choose(r);

	r->hooks = hooks;
	if (!err && hooks->check)
		err = hooks->check(r);
	return err ? err : stages_run(&stages, r, &r->session, &r->common.collect);
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

int run_end(struct oneshot *r, int rc)
{
	blocks_close(&r->blocks);
	session_close(&r->session);
	timeline_free(&r->times);
	slices_free(&r->slices);
	out_blocks_free(&r->blocked);
	if (!rc && r->command)
		rc = r->child.exit_code;
	for (size_t i = 0; i < r->noutputs; i++) {
		FILE *f = r->outputs[i].f;

		if (f && f != stdout && fclose(f) && !rc)
			rc = complain(EXIT_FAILED, "writing %s: %s", r->outputs[i].path,
				      strerror(errno));
	}
	if (r->stats && r->stats != stdout && fclose(r->stats) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r->common.stats, strerror(errno));
	if (r->debuginfod)
		say_fetched(r);
	debuginfod_free(r->debuginfod);
	common_opts_free(&r->common);
	return rc;
}
