/* SPDX-License-Identifier: BSD-2-Clause */
/* `sfbpf agent`'s command line: the keys of agent/config.h as options, and the common ones. */
#ifndef SFBPF_TOOLS_AGENT_OPTIONS_H
#define SFBPF_TOOLS_AGENT_OPTIONS_H

#include "agent/config.h"
#include "cli/options.h"

#define AGENT_MAX_GIVEN 256

struct agent_options {
	struct common_opts common;
	const char *config; /* --config; NULL: not given */
	bool check, once, schema;
	struct { /* settings in the order of the command line */
		size_t key;
		const char *value;
	} given[AGENT_MAX_GIVEN];
	size_t ngiven;
};

int agent_run(int argc, char **argv); /* the tool; in agent.c */
/* 0, an exit code after printing the error, or OPTIONS_DONE. */
int agent_options_parse(struct agent_options *o, int argc, char **argv);
/* Merges defaults, file, environment and command line, and checks them. NULL with *err set. */
struct agent_config *agent_options_config(const struct agent_options *o,
					  struct agent_config_error *err);

#endif
