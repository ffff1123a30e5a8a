/* SPDX-License-Identifier: BSD-2-Clause */
/* The subcommands. Each takes its own argv (argv[0] is its name) and returns an exit code. */
#ifndef SFBPF_TOOLS_TOOLS_H
#define SFBPF_TOOLS_TOOLS_H

int tool_record(int argc, char **argv);
int tool_offcpu(int argc, char **argv);
int tool_agent(int argc, char **argv);	/* only with HAVE_AGENT */
int tool_top(int argc, char **argv);
int tool_doctor(int argc, char **argv);
int tool_inspect(int argc, char **argv);
int tool_report(int argc, char **argv);
int tool_diff(int argc, char **argv);

#endif
