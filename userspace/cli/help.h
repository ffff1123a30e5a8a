/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is printed of the option tables (cli/options.h): --help, man pages, and completions of
 * bash and zsh. All of them come from the same tables as the parser, so they cannot disagree.
 */
#ifndef SFBPF_CLI_HELP_H
#define SFBPF_CLI_HELP_H

#include <stdio.h>

#include "cli/options.h"

void help_text(const struct tool_spec *tool, FILE *f);
/* A page of section 1, in man(7)'s macros: sfbpf-TOOL.1. */
void help_man(const struct tool_spec *tool, FILE *f);
/* sfbpf.1, which lists the tools; tools ends with NULL. */
void help_man_overview(const struct tool_spec *const *tools, FILE *f);
void help_bash(const struct tool_spec *const *tools, FILE *f);
void help_zsh(const struct tool_spec *const *tools, FILE *f);

#endif
