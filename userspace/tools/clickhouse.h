/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads stacks from the tables of `sfbpf agent --protocol clickhouse` through ClickHouse's HTTP
 * interface. The server adds up the samples of a stack; rows are added to the set as they arrive.
 */
#ifndef SFBPF_TOOLS_CLICKHOUSE_H
#define SFBPF_TOOLS_CLICKHOUSE_H

#include "prof/read_stacks.h"
#include "tools/windows.h"

struct clickhouse {
	const char *url; /* "http[s]://HOST[:PORT][/PATH][?database=NAME]" */
	/* A file of 'Name: value' lines; NULL: none. CA certificates; NULL: those of the system */
	const char *header_file, *ca_file;
};

/*
 * Adds the chosen samples to one side of ss, as ss->choice says. 0, or an exit code after printing
 * the error.
 */
int clickhouse_read(const struct clickhouse *c, const struct window_choice *choice,
		    struct stackset *ss, enum stack_side side, struct stacks_meta *meta);

#endif
