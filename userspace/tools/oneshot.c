/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/oneshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/num.h"
#include "debuginfo/debuginfod.h"
#include "debuginfo/dwarf_reader.h"

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
	case OPT_APART:
		r->apart = true;
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
			       : complain(0, "--lines: native code other than Go's has none: built "
					     "without libdw");
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

int oneshot_open(struct oneshot *r)
{
	int err = open_file(r->common.output, &r->out);

	if (!err && r->common.stats)
		err = open_file(r->common.stats, &r->stats);
	if (!err && r->stats && r->stats != stdout && is_same_file(r->out, r->stats))
		err = complain(EXIT_USAGE, "-o and --stats are the same file");
	return err;
}
