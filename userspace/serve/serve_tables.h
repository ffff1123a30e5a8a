/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions of `serve` to the tables of `sfbpf agent --protocol clickhouse`: the server adds up. */
#ifndef SFBPF_SERVE_SERVE_TABLES_H
#define SFBPF_SERVE_SERVE_TABLES_H

#include "report/read_clickhouse.h"
#include "serve/serve_store.h"

/*
 * These answer as store_ask and store_stacks do, with all of the range at once. Names of services
 * are interned in names. 0, or -EIO after printing the error.
 */
int serve_tables_ask(const struct clickhouse *c, const struct store_range *range,
		     struct strpool *names, struct store_sum *ret);
int serve_tables_stacks(const struct clickhouse *c, const struct store_range *range,
			enum stack_side side, struct stackset *ss);

#endif
