/* SPDX-License-Identifier: BSD-2-Clause */
/* The tools of the command line. */
#ifndef SFBPF_CLI_TOOLS_H
#define SFBPF_CLI_TOOLS_H

#include "cli/options.h"

extern const struct tool_spec top_tool, record_tool, offcpu_tool, inspect_tool, report_tool,
	diff_tool, doctor_tool, list_tool, slow_tool;
extern const struct tool_spec agent_tool, serve_tool; /* only with HAVE_AGENT */
extern const struct tool_spec help_tool;

#endif
