/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf inspect: shows the unwind tables of a file and their cost. Needs no privileges. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/tools.h"
#include "inspect/inspect.h"

enum { OPT_JSON = OPT_TOOL, OPT_ROWS, OPT_COMPARE };

static const struct option_spec options[] = {
	{ OPT_JSON, "json", NULL, "print the summary as JSON, one object on a line for each FILE" },
	{ OPT_ROWS, "rows", "[=SOURCE]",
	  "print one line for each row: START END SOURCE CFA RA FP[ FLAG...]; "
	  "SOURCE is sframe, eh_frame, code or merged (default)" },
	{ OPT_COMPARE, "compare", NULL, "check each .sframe row against .eh_frame" },
	{ 0 },
};

static int inspect_run(int argc, char **argv);

const struct tool_spec inspect_tool = {
	.name = "inspect",
	.permute = true,
	.usage = "inspect [--json | --rows[=SOURCE] | --compare] FILE...",
	.brief = "show the unwind tables of an ELF file",
	.summary =
		"Shows the .sframe and .eh_frame tables of ELF files: versions, functions, rows, "
		"covered code, problems, and the size of the tables that the profiler would make. "
		"Exits with 1 if a FILE is damaged, or if --compare finds rows that disagree.",
	.options = options,
	.examples =
		"  sfbpf inspect /lib/x86_64-linux-gnu/libc.so.6\n"
		"  sfbpf inspect --rows=eh_frame ./program | less\n"
		"  sfbpf inspect --compare ./program          a lint for builds with --gsframe\n",
	.run = inspect_run,
};

enum mode { SUMMARY, JSON, ROWS, COMPARE };

struct inspect {
	enum mode mode;
	unsigned int which; /* ROWS_* */
	int modes;	    /* how many of them are given */
};

static int take_rows(struct inspect *o, const char *source)
{
	o->mode = ROWS;
	if (!source)
		o->which = ROWS_MERGED;
	else if (!strcmp(source, "sframe"))
		o->which = ROWS_SFRAME;
	else if (!strcmp(source, "eh_frame"))
		o->which = ROWS_EH_FRAME;
	else if (!strcmp(source, "code"))
		o->which = ROWS_CODE;
	else if (!strcmp(source, "merged"))
		o->which = ROWS_MERGED;
	else
		return complain(EXIT_USAGE,
				"--rows: '%s' is not a source; "
				"use sframe, eh_frame, code or merged",
				source);
	return 0;
}

static int take_option(void *ctx, int id, const char *arg)
{
	struct inspect *o = ctx;

	o->modes++;
	if (id == OPT_ROWS)
		return take_rows(o, arg);
	o->mode = id == OPT_JSON ? JSON : COMPARE;
	return 0;
}

static int parse(struct inspect *o, int argc, char **argv)
{
	int err = options_parse(&inspect_tool, argc, argv, take_option, o);

	if (err)
		return err;
	if (o->modes > 1)
		return complain(EXIT_USAGE, "--json, --rows and --compare exclude each other");
	if (optind == argc)
		return complain(EXIT_USAGE, "a FILE is missing; see 'sfbpf inspect --help'");
	return 0;
}

static int refuse(const struct inspect *o, const struct inspected *in, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(const struct inspect *o, const struct inspected *in, const char *fmt, ...)
{
	char why[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	if (o->mode == JSON)
		inspect_json_refused(in->path, why);
	fflush(stdout);
	return complain(EXIT_FAILED, "%s: %s", in->name, why);
}

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a FIFO";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	case S_IFSOCK:
		return "a socket";
	default:
		return "not a regular file";
	}
}

static int open_regular(const struct inspect *o, const struct inspected *in, int *ret_fd)
{
	struct stat st;
	int fd = open(in->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY), err = 0;

	if (fd < 0)
		return refuse(o, in, "cannot open: %s", strerror(errno));
	if (fstat(fd, &st))
		err = refuse(o, in, "%s", strerror(errno));
	else if (!S_ISREG(st.st_mode))
		err = refuse(o, in, "no ELF file but %s", kind_of(st.st_mode));
	if (err)
		close(fd);
	*ret_fd = fd;
	return err;
}

/* Prints one line about a damaged file: the first problem. */
static int report_damage(const struct inspect *o, const struct inspected *in, bool refused)
{
	const struct diag_note *first = NULL;
	char more[64] = "";

	for (unsigned int i = 0; i < in->diag.kept && !first; i++)
		if (in->diag.notes[i].kind == DIAG_MALFORMED)
			first = &in->diag.notes[i];
	if (in->diag.malformed > 1)
		snprintf(more, sizeof(more), " (and %llu more)",
			 (unsigned long long)in->diag.malformed - 1);
	if (!first) /* the kept notes are all about repairs */
		return refuse(o, in, "%llu damaged places", (unsigned long long)in->diag.malformed);
	if (refused)
		return refuse(o, in, "%s+0x%llx: %s", first->section,
			      (unsigned long long)first->offset, first->text);
	fflush(stdout);
	return complain(EXIT_FAILED, "%s: %s+0x%llx: %s%s", in->name, first->section,
			(unsigned long long)first->offset, first->text, more);
}

static int show(const struct inspect *o, struct inspected *in)
{
	bool clash = false;
	int err;

	if (in->file.img.type == ET_REL)
		return refuse(o, in,
			      "a relocatable object: its code has no addresses yet, "
			      "inspect the linked file");
	switch (o->mode) {
	case ROWS:
		err = inspect_rows(in, o->which);
		break;
	case JSON:
		err = inspect_json(in);
		break;
	case COMPARE:
		err = inspect_compare(in, &clash);
		break;
	default:
		err = inspect_summary(in);
	}
	if (err)
		return refuse(o, in, "%s", strerror(-err));
	if (in->diag.malformed)
		return report_damage(o, in, false);
	return clash ? EXIT_FAILED : EXIT_OK;
}

static int inspect_file(const struct inspect *o, const char *path)
{
	struct inspected *in = calloc(1, sizeof(*in));
	int fd = -1, rc, err;

	if (!in)
		return complain(EXIT_FAILED, "out of memory");
	in->path = path;
	text_clean(in->name, sizeof(in->name), path, strlen(path), 0);
	rc = open_regular(o, in, &fd);
	if (!rc) {
		err = unwind_file_open_fd(&in->file, fd, &in->diag);
		if (!err)
			rc = show(o, in);
		else if (err == -ENOEXEC && in->diag.malformed)
			rc = report_damage(o, in, true);
		else
			rc = refuse(o, in, "%s", strerror(-err));
		if (!err)
			unwind_file_close(&in->file);
		close(fd);
	}
	free(in);
	return rc;
}

static int inspect_run(int argc, char **argv)
{
	struct inspect o = { .mode = SUMMARY, .which = ROWS_MERGED };
	int rc = parse(&o, argc, argv), one;

	if (rc)
		return rc;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	for (int i = optind; i < argc; i++) {
		one = inspect_file(&o, argv[i]);
		rc = one > rc ? one : rc;
	}
	if (fflush(stdout) || ferror(stdout))
		rc = complain(EXIT_FAILED, "writing the output: %s", strerror(errno));
	return rc;
}
