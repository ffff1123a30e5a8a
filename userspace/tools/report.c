/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf report: what was recorded elsewhere or earlier, to look at. */

#include "base/exitcode.h"
#include "tools/stacks_io.h"
#include "tools/tools.h"

static const struct option_spec options[] = { VIEW_OPTIONS, { 0 } };

static const struct tool_spec spec = {
	.name = "report",
	.usage = "report [options] FILE",
	.summary = "Shows a file that 'sfbpf record' or 'offcpu' wrote as folded lines, JSON or pprof\n"
		   "(- is the standard input): functions by self time and the call tree as text,\n"
		   "a flame graph, or folded lines.",
	.options = options,
	.examples = "  sfbpf report cpu.folded                 a table and the call tree\n"
		    "  sfbpf report cpu.pb.gz -o cpu.html      a flame graph\n"
		    "  sfbpf report --format folded - < cpu.json\n",
};

int tool_report(int argc, char **argv)
{
	struct view v = { 0 };
	const char *path;
	int err = view_parse(&v, &spec, argc, argv, &path, 1);

	if (err)
		return err;
	if (stackset_init(&v.stacks))
		return complain(EXIT_FAILED, "out of memory");
	v.title = path_name(path);
	err = view_read(&v, path, STACK_AFTER);
	if (!err)
		err = view_write(&v);
	stackset_free(&v.stacks);
	return err;
}
