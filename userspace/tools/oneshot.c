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

static int take_output(struct oneshot *r, const char *arg)
{
	if (r->noutputs == ONESHOT_OUTPUTS)
		return complain(EXIT_USAGE, "more than %d times -o", ONESHOT_OUTPUTS);
	if (!*arg)
		return complain(EXIT_USAGE, "-o: the name of the file is empty");
	r->outputs[r->noutputs++].path = strcmp(arg, "-") ? arg : NULL;
	return 0;
}

int oneshot_option(struct oneshot *r, int id, const char *arg)
{
	switch (id) {
	case 'a':
		r->system_wide = true;
		return 0;
	case 'o':
		return take_output(r, arg);
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

void oneshot_keep_line(struct oneshot *r, int argc, char **argv)
{
	size_t at = (size_t)snprintf(r->line, sizeof(r->line), "sfbpf");
	bool last = false;

	for (int i = 0; i < argc && at < sizeof(r->line); i++) {
		const char *quote = *argv[i] && !strpbrk(argv[i], " \t\n'\"\\$*?;&|<>()") ? ""
											  : "'";

		at += (size_t)snprintf(r->line + at, sizeof(r->line) - at, " %s%s%s", quote,
				       argv[i], quote);
		if (last)
			break;
		last = !strcmp(argv[i], "--");
	}
}

bool oneshot_writes(const struct oneshot *r, const char *format)
{
	for (size_t i = 0; i < r->noutputs; i++)
		if (!strcmp(r->outputs[i].format->name, format))
			return true;
	return false;
}

static int check_times(const struct oneshot *r)
{
	const struct common_opts *o = &r->common;

	if (r->timeline && !r->times_wanted)
		return complain(EXIT_USAGE,
				"--timeline: %s has no times; use one of the formats firefox "
				"(.json.gz), perfetto (.pftrace) and recording (.sfb)",
				r->outputs[0].format->name);
	for (size_t i = 0; i < r->noutputs && !r->timeline && !o->format; i++)
		if (r->outputs[i].format->shared_suffix)
			return complain(EXIT_USAGE,
					"the suffix of '%s' names a format with --timeline only; "
					"add --timeline, or use one of:%s",
					r->outputs[i].path, out_format_suffixes(OUT_SAMPLES));
	return 0;
}

/* If there are several outputs, --format is for those whose suffix names no format. */
static const struct out_format *choose(const struct oneshot *r, const char *path, bool tty,
				       bool *used)
{
	const char *name = r->common.format;
	enum out_source source = r->has_times ? OUT_SAMPLES : OUT_PROFILE;
	const char *otherwise = name ? name : r->timeline ? "firefox" : tty ? "text" : "folded";
	const struct out_format *f;

	if (r->noutputs == 1) {
		*used = true;
		return out_format_choose(name, path, otherwise, source);
	}
	f = out_format_choose(NULL, path, otherwise, source);
	if (!f && name)
		f = out_format_named(name, source);
	*used |= f && name && !strcmp(f->name, name);
	return f;
}

static void note_needs(struct oneshot *r, const struct out_format *f)
{
	r->cgroups |= f->cgroups;
	r->by_thread |= f->threads;
	r->go_lines |= f->go_lines;
	r->slices_wanted |= f->slices;
	r->times_wanted |= f->timeline || (f->whole && r->has_times);
	if (f->timeline)
		r->timed = f;
}

int oneshot_choose(struct oneshot *r)
{
	enum out_source source = r->has_times ? OUT_SAMPLES : OUT_PROFILE;
	bool used = false, to_stdout = false;

	if (!r->noutputs)
		r->noutputs = 1;
	for (size_t i = 0; i < r->noutputs; i++) {
		struct oneshot_output *o = &r->outputs[i];
		bool tty = !o->path && isatty(STDOUT_FILENO);

		o->format = choose(r, o->path, tty, &used);
		if (!o->format)
			return options_unknown_format(r->common.format, o->path, source);
		if (tty && o->format->binary)
			return complain(EXIT_USAGE,
					"%s is a binary format and not written to a terminal: "
					"use -o FILE",
					o->format->name);
		if (!o->path && to_stdout)
			return complain(EXIT_USAGE, "standard output can take one output only");
		to_stdout |= !o->path;
		note_needs(r, o->format);
	}
	if (r->common.format && !used)
		return complain(EXIT_USAGE,
				"--format %s: the suffixes of all outputs name other formats",
				r->common.format);
	return check_times(r);
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

/* Whether an earlier output is the same file. */
static int check_same(const struct oneshot *r, size_t n)
{
	const struct oneshot_output *o = &r->outputs[n];

	for (size_t i = 0; i < n; i++)
		if (is_same_file(r->outputs[i].f, o->f))
			return complain(EXIT_USAGE, "'%s' and '%s' are the same file",
					r->outputs[i].path ? r->outputs[i].path : "-",
					o->path ? o->path : "-");
	return 0;
}

int oneshot_open(struct oneshot *r)
{
	int err = 0;

	for (size_t i = 0; i < r->noutputs && !err; i++) {
		err = open_file(r->outputs[i].path, &r->outputs[i].f);
		if (!err)
			err = check_same(r, i);
	}
	if (!err && r->common.stats)
		err = open_file(r->common.stats, &r->stats);
	for (size_t i = 0; i < r->noutputs && !err && r->stats && r->stats != stdout; i++)
		if (is_same_file(r->outputs[i].f, r->stats))
			err = complain(EXIT_USAGE, "-o and --stats are the same file");
	return err;
}
