/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf TOOL, or sfbpf-TOOL through a link with that name. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exitcode.h"
#include "base/libc_static.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/tools.h"

static const struct tool_spec *const tools[] = {
	&top_tool,    &record_tool,  &offcpu_tool, &slow_tool,
#ifdef HAVE_AGENT
	&agent_tool,
#endif
	&report_tool, &diff_tool,
#ifdef HAVE_AGENT
	&serve_tool,
#endif
	&list_tool,   &inspect_tool, &doctor_tool, &help_tool, NULL,
};

static const struct tool_spec *find_tool(const char *name)
{
	for (size_t i = 0; tools[i]; i++)
		if (!strcmp(name, tools[i]->name))
			return tools[i];
	return NULL;
}

static void usage(FILE *f)
{
	fputs("usage: sfbpf TOOL [options]\n\n"
	      "A system-wide sampling profiler: full user and kernel stacks of every process,\n"
	      "unwound in the kernel from .sframe and .eh_frame tables.\n\ntools:\n",
	      f);
	for (size_t i = 0; tools[i]; i++)
		fprintf(f, "  %-10s%s\n", tools[i]->name, tools[i]->brief);
	fputs("\nRun 'sfbpf TOOL --help' for the options of a tool.\n", f);
}

static int no_tool(const char *name)
{
	struct text_near near = { .word = name, .len = strlen(name) };

#ifndef HAVE_AGENT
	if (!strcmp(name, "agent") || !strcmp(name, "serve"))
		return complain(EXIT_FAILED,
				"this build has no %s: it needs libcurl, libmicrohttpd and nettle",
				name);
#endif
	for (size_t i = 0; tools[i]; i++)
		text_near_try(&near, tools[i]->name);
	return complain(EXIT_USAGE, "there is no tool '%s'%s%s; see 'sfbpf --help'", name,
			near.best ? "; did you mean " : "", near.best ? near.best : "");
}

/* ---- sfbpf help ---- */

enum { OPT_MAN = OPT_TOOL, OPT_COMPLETION };

static const struct option_spec help_options[] = {
	{ OPT_MAN, "man", NULL, "print the man page of TOOL, or sfbpf(1), in man(7) macros" },
	{ OPT_COMPLETION, "completion", "SHELL", "print the completion function for bash or zsh" },
	{ 0 },
};

static int help_completion(const char *shell)
{
	if (!strcmp(shell, "bash"))
		help_bash(tools, stdout);
	else if (!strcmp(shell, "zsh"))
		help_zsh(tools, stdout);
	else
		return complain(EXIT_USAGE,
				"--completion: '%s' is not a known shell; use bash or zsh", shell);
	return EXIT_OK;
}

struct help {
	bool man;
	const char *shell; /* --completion */
};

static int help_take(void *ctx, int id, const char *arg)
{
	struct help *h = ctx;

	if (id == OPT_MAN)
		h->man = true;
	else
		h->shell = arg;
	return 0;
}

static int help_run(int argc, char **argv)
{
	const struct tool_spec *tool = NULL;
	struct help h = { 0 };
	const char *name;
	int err = options_parse(&help_tool, argc, argv, help_take, &h);

	if (err)
		return err;
	name = optind < argc ? argv[optind++] : NULL;
	if (name && !(tool = find_tool(name)))
		return no_tool(name);
	if (optind < argc)
		return complain(EXIT_USAGE, "unexpected '%s'", argv[optind]);
	if (h.shell)
		return help_completion(h.shell);
	if (h.man && tool)
		help_man(tool, stdout);
	else if (h.man)
		help_man_overview(tools, stdout);
	else if (tool)
		help_text(tool, stdout);
	else
		usage(stdout);
	return EXIT_OK;
}

const struct tool_spec help_tool = {
	.name = "help",
	.usage = "help [--man | --completion SHELL] [TOOL]",
	.brief = "print the options of a tool, a man page or a shell completion",
	.summary = "Prints the options of TOOL, or the list of tools.",
	.options = help_options,
	.run = help_run,
};

/*
 * A file that is opened while a standard descriptor is closed would take its place, and get what is
 * written there. A descriptor that cannot be written to makes that an error.
 */
static void fill_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0)
			_exit(EXIT_FAILED);
}

/* What stdio still holds may be the end of a result. */
static int all_printed(int rc)
{
	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	return rc ? rc : complain(EXIT_FAILED, "writing the output: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0] ? argv[0] : "sfbpf", '/');
	const char *name = slash ? slash + 1 : argv[0] ? argv[0] : "sfbpf";
	const struct tool_spec *tool;
	int rc;

	fill_descriptors();
	libc_static_init();
	if (!strncmp(name, "sfbpf-", 6)) {
		name += 6;
	} else if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	} else {
		name = argv[1];
		argc--;
		argv++;
	}
	tool = find_tool(name);
	if (tool) {
		complain_as(tool->name);
		rc = tool->run(argc, argv);
		return all_printed(rc == OPTIONS_DONE ? EXIT_OK : rc);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		usage(stdout);
		return all_printed(EXIT_OK);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "version")) {
		if (argc > 1)
			return complain(EXIT_USAGE, "unexpected '%s' after %s", argv[1], name);
		printf("sfbpf %s\n", SFBPF_VERSION);
		return all_printed(EXIT_OK);
	}
	return no_tool(name);
}
