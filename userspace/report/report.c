/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf report: shows recorded profiles. */
#include <getopt.h>
#include <limits.h>
#include <string.h>

#include "base/exitcode.h"
#include "cli/tools.h"
#include "report/pgo.h"
#include "report/recorded.h"
#include "report/report_code.h"
#include "report/stacks_io.h"

static const struct option_spec options[] = {
	VIEW_OPTIONS,
	{ OPT_ANNOTATE, "annotate", "FUNCTION",
	  "show the instructions of a function, each with its share of the samples; FILE is "
	  "JSON or a recording" },
	{ OPT_PGO, "pgo", "FORMAT",
	  "write a profile for a compiler, of the samples that have the build-id of the first "
	  "operand, a program: go, clang, gcc or bolt" },
	{ 0 },
};

static int report_run(int argc, char **argv);

const struct tool_spec report_tool = {
	.name = "report",
	.usage = "report [options] [--pgo FORMAT PROGRAM] FILE|DIRECTORY|URL...",
	.brief = "show recorded profiles as text or a flame graph",
	.summary =
		"Shows the sum of profiles that 'sfbpf record' or 'sfbpf offcpu' wrote as folded "
		"lines, JSON, pprof or recordings; - is standard input. Of a directory, the "
		"windows that 'sfbpf agent --protocol file' or --copy wrote there are read; of a "
		"URL, the tables of 'sfbpf agent --protocol clickhouse'. Writes functions by self "
		"time and the call tree as text, a flame graph, or folded lines. Of one recording "
		"(.sfb), -o or --format write what record would have written in that format.",
	.options = options,
	.permute = true,
	.examples = "  sfbpf report cpu.folded                 a table and the call tree\n"
		    "  sfbpf report cpu.pb.gz -o cpu.html      a flame graph\n"
		    "  sfbpf report run.sfb -o run.pftrace      every format from a recording\n"
		    "  sfbpf report --since 1h -o hour.html /var/lib/sfbpf\n"
		    "  sfbpf report --since 1h --by service /var/lib/sfbpf\n"
		    "  sfbpf report --since 1h http://127.0.0.1:8123/?database=profiles\n"
		    "  sfbpf report --format folded - < cpu.json\n"
		    "  sfbpf report --annotate main cpu.json   its instructions\n"
		    "  sfbpf report --pgo clang -o prog.prof ./prog cpu.pb.gz\n",
	.run = report_run,
};

static int read_all(struct view *v, char **paths, int n)
{
	char unit[sizeof(v->meta.unit)] = "";
	struct stacks_meta sum = { 0 };
	int err = 0;

	for (int i = 0; i < n && !err; i++) {
		err = view_read(v, paths[i], STACK_AFTER);
		if (!err && i && strcmp(unit, v->meta.unit) != 0)
			err = complain(EXIT_FAILED, "%s counts %s, %s counts %s", paths[0], unit,
				       paths[i], v->meta.unit);
		strcpy(unit, v->meta.unit);
		window_sum_meta(&sum, &v->meta);
	}
	v->meta = sum;
	return err;
}

static int report_run(int argc, char **argv)
{
	struct view v = { 0 };
	int err = view_parse(&v, &report_tool, argc, argv, 1, INT_MAX);

	if (err)
		return err;
	if (v.pgo)
		return pgo_run(&v, v.pgo, argv + optind, argc - optind);
	if (v.annotate && (v.output || v.format || argc - optind > 1))
		return complain(EXIT_USAGE, "--annotate prints text from one file: leave out %s",
				v.output   ? "-o"
				: v.format ? "--format"
					   : argv[optind + 1]);
	if (v.annotate && !*v.annotate)
		return complain(EXIT_USAGE, "--annotate: '' is not the name of a function");
	if (v.annotate)
		return report_code(v.annotate, argv[optind]);
	if (v.exact)
		return recorded_write(&v, argv[optind]);
	if (stackset_init(&v.stacks))
		return complain(EXIT_FAILED, "out of memory");
	v.title = path_name(argv[optind]);
	err = read_all(&v, argv + optind, argc - optind);
	if (!err)
		err = view_name_threads(&v);
	if (!err)
		err = view_check(&v, STACK_AFTER);
	if (!err)
		err = view_write(&v);
	stackset_free(&v.stacks);
	return err;
}
