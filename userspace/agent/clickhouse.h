/* SPDX-License-Identifier: BSD-2-Clause */
/* ClickHouse as the fleet's store: three tables, filled through the HTTP interface with FORMAT JSONEachRow. */
#ifndef SFBPF_AGENT_CLICKHOUSE_H
#define SFBPF_AGENT_CLICKHOUSE_H

/* The tables, as statements that end in ";\n". */
extern const char clickhouse_schema[];
/* A request that brought stacks or files was dropped: send all of them again. Any thread. */
void clickhouse_forget(void);

#endif
