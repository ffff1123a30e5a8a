/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads stacks from the tables of `sfbpf agent --protocol clickhouse` through ClickHouse's HTTP
 * interface. The server adds up the samples of a stack; rows are added to the set as they arrive.
 */
#ifndef SFBPF_REPORT_READ_CLICKHOUSE_H
#define SFBPF_REPORT_READ_CLICKHOUSE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "prof/read_stacks.h"
#include "report/windows.h"

struct clickhouse {
	const char *url; /* "http[s]://HOST[:PORT][/PATH][?database=NAME]" */
	/* A file of 'Name: value' lines; NULL: none. CA certificates; NULL: those of the system */
	const char *header_file, *ca_file;
	uint64_t timeout_ns; /* limit of each query; 0: ten minutes */
};

static inline bool clickhouse_is_url(const char *path)
{
	return !strncmp(path, "http://", 7) || !strncmp(path, "https://", 8);
}

/* Ends all queries at once, and those that come, without a message. Any thread. */
void clickhouse_stop(void);
/* Whether the URL is one. 0, or an exit code after printing the error. */
int clickhouse_check(const struct clickhouse *c);
/*
 * Adds the chosen samples to one side of ss, as ss->choice says. 0, or an exit code after printing
 * the error.
 */
int clickhouse_read(const struct clickhouse *c, const struct window_choice *choice,
		    struct stackset *ss, enum stack_side side, struct stacks_meta *meta);

#define CLICKHOUSE_COLUMNS 4

/*
 * A query of the samples that are chosen. select: its columns, at most CLICKHOUSE_COLUMNS; rest:
 * what follows the condition. Neither has text of the command line or of a request in it: a name of
 * a service is {service0:String} in them. row: 0 or -errno; -EINVAL: this is no row of the query.
 */
struct clickhouse_query {
	const char *select, *rest, *service; /* service: NULL if there is none */
	size_t columns;
	int (*row)(void *ctx, char **columns);
	void *ctx;
};

/* Asks for sums of the chosen samples. 0, or an exit code after printing the error. */
int clickhouse_sums(const struct clickhouse *c, const struct window_choice *choice,
		    const struct clickhouse_query *query);

#endif
