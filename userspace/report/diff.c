/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf diff: compares two profiles. */
#include <getopt.h>
#include <string.h>

#include "base/clock.h"
#include "base/exitcode.h"
#include "cli/tools.h"
#include "report/stacks_io.h"

static const struct option_spec options[] = {
	VIEW_OPTIONS,
	{ OPT_AGO, "ago", "TIME",
	  "compare the windows of one directory with those this much earlier: 1h, 1d" },
	{ OPT_AGAINST, "against", "NAME=VALUE",
	  "compare with the stacks of the same directory that have this label, in place of one of "
	  "--label with the same name" },
	{ 0 }
};

static int diff_run(int argc, char **argv);

const struct tool_spec diff_tool = {
	.name = "diff",
	.usage = "diff [options] BEFORE AFTER",
	.brief = "compare two recorded profiles",
	.summary = "Compares two profiles that 'sfbpf record' or 'sfbpf offcpu' wrote as folded "
		   "lines, JSON or pprof, by the share of each function. Writes a table of the "
		   "largest changes, a red and blue flame graph, or lines 'STACK BEFORE AFTER'. "
		   "Each may be a directory of windows that 'sfbpf agent' wrote, or the URL of a "
		   "ClickHouse that it sends to.",
	.options = options,
	.permute = true,
	.examples = "  sfbpf diff old.folded new.folded           the largest changes\n"
		    "  sfbpf diff old.json new.json -o diff.html  red: more, blue: less\n"
		    "  sfbpf diff --since 1h --ago 1d DIRECTORY   this hour and yesterday's\n"
		    "  sfbpf diff --service web --label service.version=1.5 \\\n"
		    "      --against service.version=1.4 DIRECTORY\n",
	.run = diff_run,
};

/* Reads BEFORE from the directory of AFTER, v->ago_ns earlier. */
static int read_earlier(struct view *v, const char *path)
{
	struct window_choice after = v->choice;
	int err;

	if (!after.until_ns)
		after.until_ns = clock_ns(CLOCK_REALTIME);
	v->choice.since_ns = after.since_ns > v->ago_ns ? after.since_ns - v->ago_ns : 0;
	v->choice.until_ns = after.until_ns - v->ago_ns;
	err = view_read(v, path, STACK_BEFORE);
	v->choice = after;
	return err;
}

/* Reads BEFORE from the directory of AFTER, with another label. */
static int read_against(struct view *v, const char *path)
{
	struct stack_choice after = v->take;
	size_t i = 0;
	int err;

	while (i < v->take.n && strcmp(v->take.labels[i].name, v->against.name) != 0)
		i++;
	v->take.labels[i].name = v->against.name;
	v->take.labels[i].value = v->against.value;
	v->take.n += i == v->take.n;
	err = view_read(v, path, STACK_BEFORE);
	if (!err)
		err = view_check(v, STACK_BEFORE);
	v->take = after;
	return err;
}

static int read_before(struct view *v, const char *path)
{
	return v->ago_ns	 ? read_earlier(v, path)
	       : v->against.name ? read_against(v, path)
				 : view_read(v, path, STACK_BEFORE);
}

static int compare(struct view *v, const char *const paths[2])
{
	char unit[sizeof(v->meta.unit)];
	int err;

	v->before = v->ago_ns	      ? "earlier"
		    : v->against.name ? v->against.value
				      : path_name(paths[0]);
	v->title = path_name(paths[1]);
	/* Folded lines have no modules, and library versions may differ. */
	v->stacks.no_modules = true;
	err = read_before(v, paths[0]);
	strcpy(unit, v->meta.unit);
	if (!err)
		err = view_read(v, paths[1], STACK_AFTER);
	if (!err && strcmp(unit, v->meta.unit) != 0)
		err = complain(EXIT_FAILED, "%s counts %s, %s counts %s", paths[0], unit, paths[1],
			       v->meta.unit);
	/* What is on one side only is a difference, but not of two labels. */
	if (!err && (v->against.name || !v->stacks.totals[STACK_BEFORE]))
		err = view_check(v, STACK_AFTER);
	return err ? err : view_write(v);
}

static int diff_run(int argc, char **argv)
{
	struct view v = { 0 };
	int err = view_parse(&v, &diff_tool, argc, argv, 1, 2), n = argc - optind;
	const char *paths[2];

	if (err)
		return err;
	if (v.out->binary)
		return complain(EXIT_USAGE, "%s holds one profile; for two:%s", v.out->name,
				out_format_names(OUT_COMPARED));
	if (v.ago_ns && (n != 1 || !v.choice.since_ns))
		return complain(EXIT_USAGE, "--ago compares two times of one directory: "
					    "sfbpf diff --since 1h --ago 1d DIRECTORY");
	if (v.against.name && (n != 1 || v.ago_ns || v.take.n == STACK_CHOICE_LABELS))
		return complain(EXIT_USAGE, "--against compares two labels of one directory: "
					    "sfbpf diff --label NAME=A --against NAME=B DIRECTORY");
	if (n == 1 && !v.ago_ns && !v.against.name)
		return complain(EXIT_USAGE, "a file is missing; usage: sfbpf %s", diff_tool.usage);
	paths[0] = argv[optind];
	paths[1] = argv[optind + n - 1];
	if (n == 2 && !strcmp(paths[0], "-") && !strcmp(paths[1], "-"))
		return complain(EXIT_USAGE, "only one of the files can be - (standard input)");
	if (stackset_init(&v.stacks))
		return complain(EXIT_FAILED, "out of memory");
	err = compare(&v, paths);
	stackset_free(&v.stacks);
	return err;
}
