/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/oneshot.h"

#include <errno.h>
#include <getopt.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "base/privs.h"
#include "base/result_file.h"
#include "sym/debuginfod.h"
#include "sym/dwarf_reader.h"

#define POLL_MS 100
#define FIRST_LOOK_MS 5
#define LAST_LOOK_MS 2000

static int open_debuginfod(struct oneshot *r)
{
	struct debuginfod_opts opts = { 0 };
	int err;

	if (r->debuginfod)
		return 0;
	err = debuginfod_new(&opts, &r->debuginfod);
	if (err == -ENOTSUP)
		return complain(EXIT_USAGE, "--debuginfod: built without libcurl");
	if (err == -ENOENT)
		return complain(EXIT_USAGE, "--debuginfod: no server: DEBUGINFOD_URLS is not set (sudo drops it), and " DEBUGINFOD_URLS_DIR
				" has none");
	return err ? complain(EXIT_FAILED, "--debuginfod: no place for its cache: %s", strerror(-err)) : 0;
}

int oneshot_option(struct oneshot *r, int id, const char *arg)
{
	switch (id) {
	case 'a':
		r->system_wide = true;
		return 0;
	case OPT_STATS:
		r->common.stats = arg;
		return 0;
	case OPT_INLINE:
	case OPT_LINES:
		*(id == OPT_INLINE ? &r->inlined : &r->lines) = true;
		return dwarf_supported() ? 0 : complain(EXIT_USAGE, "--inline and --lines: built without libdw");
	case OPT_DEBUGINFOD:
		return open_debuginfod(r);
	case 'd':
		r->seconds = arg;
		return 0;
	default:
		return common_opts_take(&r->common, id, arg);
	}
}

int oneshot_operands(struct oneshot *r, int argc, char **argv)
{
	const char *seconds = r->seconds;
	bool dashes;

	dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	if (!dashes && optind < argc && strcmp(argv[optind], "--")) {
		seconds = argv[optind++];
		dashes = optind < argc && !strcmp(argv[optind], "--");
		optind += dashes;
		if (!dashes && optind < argc)
			return complain(EXIT_USAGE, "unexpected '%s' (a command goes behind --)", argv[optind]);
	} else if (!dashes && optind < argc) {
		optind++;
		dashes = true;
	}
	if (dashes && optind == argc)
		return complain(EXIT_USAGE, "no command behind --");
	r->command = dashes ? &argv[optind] : NULL;
	if (seconds && (num_duration(seconds, NUM_S, &r->duration_ns) || !r->duration_ns))
		return complain(EXIT_USAGE, "'%s' is not a duration", seconds);
	return common_opts_check(&r->common);
}

static int choose_format(struct oneshot *r)
{
	const struct common_opts *o = &r->common;
	bool to_stdout = !o->output || !strcmp(o->output, "-");
	bool tty = to_stdout && isatty(STDOUT_FILENO);

	if (o->format)
		r->format = out_format_named(o->format);
	else if (to_stdout)
		r->format = out_format_named(tty ? "text" : "folded");
	else if (!(r->format = out_format_for_path(o->output)))
		r->format = out_format_named("folded");
	if (!r->format) {
		fprintf(stderr, "sfbpf: unknown format '%s'; known:", o->format);
		for (size_t i = 0; out_format_at(i); i++)
			fprintf(stderr, " %s", out_format_at(i)->name);
		fputc('\n', stderr);
		return EXIT_USAGE;
	}
	if (tty && r->format->binary)
		return complain(EXIT_USAGE, "%s is a binary format: not on a terminal (use -o FILE)", r->format->name);
	return 0;
}

/* Before sampling, so that a path that cannot be written costs nobody's time. */
static int open_file(const char *path, FILE **ret)
{
	const char *why;
	int err;

	if (!path || !strcmp(path, "-")) {
		*ret = stdout;
		return 0;
	}
	err = result_file_open(path, ret, &why);
	return err ? complain(EXIT_FAILED, "cannot write '%s': %s", path, why ? why : strerror(-err)) : 0;
}

static int open_outputs(struct oneshot *r)
{
	int err = open_file(r->common.output, &r->out);

	if (!err && r->common.stats)
		err = open_file(r->common.stats, &r->stats);
	return err;
}

/* With -p or -t: whether any of the targets still runs. */
static bool targets_alive(const struct collector_opts *o)
{
	char path[64];

	if (!o->npids && !o->ntids)
		return true;
	for (size_t i = 0; i < o->npids + o->ntids; i++) {
		snprintf(path, sizeof(path), "/proc/%u", i < o->npids ? o->pids[i] : o->tids[i - o->npids]);
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

	/* Time is up: the command may have become another user. */
	if (r->command)
		s->more_caps |= PRIVS_CAP(CAP_KILL);
	/* The reader of DWARF becomes who a file belongs to, in the place where it lies. */
	if (r->inlined || r->lines)
		s->more_caps |= PRIVS_CAP(CAP_SETUID) | PRIVS_CAP(CAP_SETGID) | PRIVS_CAP(CAP_SYS_CHROOT);
	err = session_start(s);

	if (err)
		return err;
	if (r->command && command_go(&r->child))
		return complain(EXIT_FAILED, "cannot run '%s': %s", r->command[0], strerror(errno));
	while (!*stop) {
		uint64_t run_ns = session_now() - s->start_ns;
		int wait_ms = POLL_MS;

		if (r->duration_ns) {
			if (run_ns >= r->duration_ns)
				break;
			if ((r->duration_ns - run_ns) / NUM_MS < POLL_MS)
				wait_ms = (int)((r->duration_ns - run_ns) / NUM_MS) + 1;
		}
		/* The command's libraries: its first block may be most of its time. */
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
	}
	return 0;
}

int oneshot_prepare(struct oneshot *r)
{
	int err = choose_format(r);

	if (!err)
		err = open_outputs(r);
	if (r->command && !r->system_wide)
		r->common.collect.follow_forks = true;
	r->common.collect.count_run_time = r->common.stats != NULL;
	r->common.collect.want_cgroup = r->format && r->format->cgroups;
	return err;
}

int oneshot_sample(struct oneshot *r, struct session *s)
{
	int err;

	if (r->command) {
		if (command_prepare(&r->child, r->command))
			return complain(EXIT_FAILED, "cannot start a process: %s", strerror(errno));
		if (!r->system_wide && !collector_add_pid(s->collector, (uint32_t)r->child.pid))
			return complain(EXIT_FAILED, "cannot follow process %d", r->child.pid);
	}
	err = sample(r, s);
	session_stop(s);
	if (r->command)
		command_finish(&r->child, r->command[0]);
	return err;
}

static void say_failed(void *ctx, const struct module *m, int err)
{
	(void)ctx;
	fprintf(stderr, "sfbpf: the debug information of %s could not be read to its end: %s\n", m->name ? m->name : "a file",
		err == -ETIMEDOUT ? "it takes too long" : "it is damaged, or too large");
}

int oneshot_debug(struct oneshot *r, struct session *s, const struct profile *more)
{
	struct symbolizer_debug opts = { .inlined = r->inlined, .lines = r->lines, .failed = say_failed };
	uint64_t start = session_now(), bytes;
	unsigned int files = 0;
	int err;

	if (r->debuginfod)
		symbolizer_set_fetch(s->symbols, &(struct debug_fetch){ debuginfod_fetch, r->debuginfod });
	if (!r->inlined && !r->lines)
		return 0;
	err = profile_want_debug(s->profile, s->symbols);
	if (!err && more)
		err = profile_want_debug(more, s->symbols);
	if (!err)
		err = symbolizer_read_debug(s->symbols, &opts, &files);
	if (err)
		return complain(EXIT_FAILED, "reading debug information: %s", strerror(-err));
	if (!r->common.collect.verbose)
		return 0;
	fprintf(stderr, "sfbpf: debug information of %u files, read in %.1f s\n", files, (double)(session_now() - start) / 1e9);
	if (r->debuginfod) {
		debuginfod_totals(r->debuginfod, &files, &bytes);
		fprintf(stderr, "sfbpf: debuginfod: %u files, %.1f MB\n", files, (double)bytes / 1e6);
	}
	return 0;
}

int oneshot_begin(struct oneshot *r)
{
	int err = r->out == stdout ? 0 : result_file_begin(r->out);

	if (!err && r->stats && r->stats != stdout)
		err = result_file_begin(r->stats);
	return err ? complain(EXIT_FAILED, "writing the output: %s", strerror(-err)) : 0;
}

void oneshot_say_losses(const struct run_stats *st)
{
	for (unsigned int i = 0; i < SF_LOST_MAX; i++)
		if (st->lost[i])
			fprintf(stderr, "sfbpf: lost %llu: %s\n", (unsigned long long)st->lost[i], profile_lost_help(i));
	if (st->tables.full)
		fprintf(stderr, "sfbpf: %llu times a file's tables had to wait for room (--table-memory), %llu times for others' in use\n",
			(unsigned long long)st->tables.full, (unsigned long long)st->tables.turns);
	if (st->parsers.died || st->parsers.late || st->parsers.failed)
		fprintf(stderr, "sfbpf: %llu processes that read files died, %llu took too long; %llu files are without tables or names because of that\n",
			(unsigned long long)st->parsers.died, (unsigned long long)st->parsers.late, (unsigned long long)st->parsers.failed);
	if (st->parsers.cut)
		fprintf(stderr, "sfbpf: %llu functions have no names: their files have too many\n", (unsigned long long)st->parsers.cut);
	if (st->needs_refused)
		fprintf(stderr, "sfbpf: %llu times a new file had to wait: its user met too many of them at once\n",
			(unsigned long long)st->needs_refused);
}

int oneshot_close(struct oneshot *r, int rc)
{
	if (r->out && r->out != stdout && fclose(r->out) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r->common.output, strerror(errno));
	if (r->stats && r->stats != stdout && fclose(r->stats) && !rc)
		rc = complain(EXIT_FAILED, "writing %s: %s", r->common.stats, strerror(errno));
	debuginfod_free(r->debuginfod);
	common_opts_free(&r->common);
	return rc;
}
