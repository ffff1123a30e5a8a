/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/pgo.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/complain.h"
#include "base/exitcode.h"
#include "base/result_file.h"
#include "report/read_clickhouse.h"

static const struct pgo_format formats[] = {
	{ "go", true, pgo_write_go },
	{ "clang", false, pgo_write_clang },
	{ "gcc", false, pgo_write_gcc },
	{ "bolt", false, pgo_write_bolt },
};

static const char *const drops[PGO_DROPS] = {
	[PGO_KERNEL] = "in the kernel",
	[PGO_OTHER_FILE] = "in other files",
	[PGO_OTHER_BUILD] = "of another build",
	[PGO_NO_ADDRESS] = "without addresses",
	[PGO_OTHER_PROGRAM] = "of other programs",
	[PGO_NO_FUNCTION] = "outside of functions",
	[PGO_NO_LINE] = "without lines",
};

static const struct pgo_format *format_named(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	complain(EXIT_USAGE, "--pgo: '%s' is not go, clang, gcc or bolt", name);
	return NULL;
}

/* ---- The account ---- */

static void put_drops(const struct pgo *p, char *buf, size_t cap)
{
	const char *before = "; dropped: ";
	size_t at = 0;

	*buf = 0;
	for (int i = 0; i < PGO_DROPS; i++) {
		if (!p->dropped[i] || at >= cap)
			continue;
		at += (size_t)snprintf(buf + at, cap - at, "%s%" PRIu64 " %s", before,
				       p->dropped[i], drops[i]);
		before = ", ";
	}
}

static int none(const struct pgo *p, const char *other)
{
	char text[512];

	put_drops(p, text, sizeof(text));
	if (other)
		return complain(EXIT_FAILED,
				"no sample has the build-id %s of %s: the recording is of another "
				"build, %s%s",
				p->file.build_id, p->path, other, text);
	return complain(EXIT_FAILED, "no sample has the build-id %s of %s%s", p->file.build_id,
			p->path, text);
}

static int account(const struct pgo *p)
{
	char text[512];

	put_drops(p, text, sizeof(text));
	return complain(0,
			"%" PRIu64 " samples used%s; %.1f%% of the %" PRIu64 " of %s are covered",
			p->used, text, 100.0 * (double)p->used / (double)p->own, p->own,
			p->file.name);
}

/* ---- The run ---- */

static int write_profile(struct pgo *p, const struct pgo_format *format, const char *output)
{
	bool to_stdout = !strcmp(output, "-");
	FILE *f, *made;
	int err = options_open_output(output, &f);

	if (err)
		return err;
	made = result_file_stage();
	err = made ? format->write(p, made) : -errno;
	if (!err && !p->used)
		err = complain(EXIT_FAILED, "none of the %" PRIu64 " samples of %s can be used: %s",
			       p->own, p->path,
			       p->dropped[PGO_NO_LINE] ? "it has no lines (build with -g)"
						       : "it has no functions there");
	if (!err)
		err = result_file_fill(f, made);
	if (made)
		fclose(made);
	if (!to_stdout && fclose(f) && !err)
		err = -errno;
	return err < 0 ? complain(EXIT_FAILED, "writing '%s': %s", output, strerror(-err)) : err;
}

static int read_recordings(struct pgo *p, struct view *v, char **paths, int n)
{
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		err = view_read(v, paths[i], STACK_AFTER);
		if (!err && strcmp(v->meta.unit, "samples") != 0)
			err = complain(EXIT_FAILED, "%s counts %s, not samples", paths[i],
				       v->meta.unit);
	}
	p->stacks = &v->stacks;
	return err;
}

static int check_options(const struct view *v, char **paths, int n)
{
	const char *extra = v->format	  ? "--format"
			    : v->annotate ? "--annotate"
			    : v->rows	  ? "-n"
			    : v->by_given ? "--by"
			    : v->apart	  ? "--threads"
					  : NULL;

	if (n < 2)
		return complain(EXIT_USAGE, "--pgo needs the program and a recording: "
					    "sfbpf report --pgo FORMAT -o FILE PROGRAM FILE...");
	if (!v->output)
		return complain(EXIT_USAGE, "--pgo needs -o FILE");
	if (extra)
		return complain(EXIT_USAGE, "--pgo writes one format: leave out %s", extra);
	for (int i = 0; i < n; i++)
		if (clickhouse_is_url(paths[i]))
			return complain(EXIT_USAGE,
					"--pgo: %s has no addresses; use the agent's windows in "
					"files",
					paths[i]);
	return 0;
}

int pgo_run(struct view *v, const char *name, char **paths, int n)
{
	const struct pgo_format *format = format_named(name);
	struct pgo p = { .path = paths[0], .fd = -1 };
	const char *other;
	int err = format ? check_options(v, paths, n) : EXIT_USAGE;

	if (err)
		return err;
	if (stackset_init(&v->stacks))
		return complain(EXIT_FAILED, "out of memory");
	v->stacks.file = &p.file;
	err = pgo_open(&p);
	if (!err)
		err = read_recordings(&p, v, paths + 1, n - 1);
	if (!err)
		err = pgo_tally(&p, format->callers, &other);
	if (!err && !p.own)
		err = none(&p, other);
	if (!err)
		err = write_profile(&p, format, v->output);
	if (!err)
		account(&p);
	pgo_close(&p);
	stackset_free(&v->stacks);
	return err;
}
