/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf SUBCOMMAND, or sfbpf-SUBCOMMAND by the name of a link. */
#include <stdio.h>
#include <string.h>

#include "base/exitcode.h"
#include "tools/options.h"
#include "tools/tools.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} tools[] = {
	{ "top", tool_top, "live view of the hottest functions and processes" },
	{ "record", tool_record, "profile for a while, write stacks" },
	{ "offcpu", tool_offcpu, "time spent blocked, by stack, and who ended it" },
#ifdef HAVE_AGENT
	{ "agent", tool_agent, "always on: windows to OTLP, Pyroscope, Parca, ClickHouse, files" },
#endif
	{ "inspect", tool_inspect, "what unwind tables an ELF file carries" },
	{ "report", tool_report, "show what record wrote: text, or a flame graph" },
	{ "diff", tool_diff, "compare two of them" },
	{ "doctor", tool_doctor, "what this kernel and user can do" },
};

#define NTOOLS (sizeof(tools) / sizeof(tools[0]))

static void usage(FILE *f)
{
	fputs("usage: sfbpf SUBCOMMAND [options]\n\n"
	      "A system-wide sampling profiler: full user and kernel stacks of every process,\n"
	      "unwound in the kernel from .sframe and .eh_frame tables.\n\n", f);
	for (size_t i = 0; i < NTOOLS; i++)
		fprintf(f, "  %-10s%s\n", tools[i].name, tools[i].help);
	fputs("\n'sfbpf SUBCOMMAND --help' tells the options.\n", f);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0] ? argv[0] : "sfbpf", '/');
	const char *base = slash ? slash + 1 : argv[0] ? argv[0] : "sfbpf";

	if (!strncmp(base, "sfbpf-", 6)) {
		base += 6;
	} else if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	} else {
		base = argv[1];
		argc--;
		argv++;
	}
	for (size_t i = 0; i < NTOOLS; i++)
		if (!strcmp(base, tools[i].name))
			return tools[i].run(argc, argv);
	if (!strcmp(base, "--help") || !strcmp(base, "-h") || !strcmp(base, "help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(base, "--version")) {
		printf("sfbpf %s\n", SFBPF_VERSION);
		return EXIT_OK;
	}
#ifndef HAVE_AGENT
	if (!strcmp(base, "agent"))
		return complain(EXIT_FAILED, "this sfbpf was built without the agent: libcurl and libinih were not there");
#endif
	complain(0, "no subcommand '%s'", base);
	usage(stderr);
	return EXIT_USAGE;
}
