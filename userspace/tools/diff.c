/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf diff: what changed between two profiles. */
#include <string.h>

#include "base/exitcode.h"
#include "tools/stacks_io.h"
#include "tools/tools.h"

static const struct option_spec options[] = { VIEW_OPTIONS, { 0 } };

static const struct tool_spec spec = {
	.name = "diff",
	.usage = "diff [options] BEFORE AFTER",
	.summary = "Compares two files that 'sfbpf record' or 'offcpu' wrote as folded lines, JSON or pprof, by each\n"
		   "function's share of all: a table of the largest changes, a red and blue flame graph, or lines\n"
		   "'STACK BEFORE AFTER'.",
	.options = options,
	.examples = "  sfbpf diff old.folded new.folded             the largest changes\n"
		    "  sfbpf diff old.json new.json -o diff.html    red: more than before, blue: less\n",
};

static int compare(struct view *v, const char *const paths[2])
{
	char unit[sizeof(v->meta.unit)];
	int err;

	v->before = path_name(paths[0]);
	v->title = path_name(paths[1]);
	v->stacks.no_modules = true;	/* folded lines have none, and versions of libraries differ */
	err = view_read(v, paths[0], STACK_BEFORE);
	strcpy(unit, v->meta.unit);
	if (!err)
		err = view_read(v, paths[1], STACK_AFTER);
	if (!err && strcmp(unit, v->meta.unit) != 0)
		err = complain(EXIT_FAILED, "%s counts %s, %s counts %s", paths[0], unit, paths[1], v->meta.unit);
	return err ? err : view_write(v);
}

int tool_diff(int argc, char **argv)
{
	struct view v = { 0 };
	const char *paths[2];
	int err = view_parse(&v, &spec, argc, argv, paths, 2);

	if (err)
		return err;
	if (!strcmp(paths[0], "-") && !strcmp(paths[1], "-"))
		return complain(EXIT_USAGE, "only one of the two can be the standard input");
	if (stackset_init(&v.stacks))
		return complain(EXIT_FAILED, "out of memory");
	err = compare(&v, paths);
	stackset_free(&v.stacks);
	return err;
}
