/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ClickHouse as a receiver: three tables, filled through the HTTP interface in FORMAT JSONEachRow.
 */
#ifndef SFBPF_AGENT_CLICKHOUSE_RECEIVER_H
#define SFBPF_AGENT_CLICKHOUSE_RECEIVER_H

/* The CREATE TABLE statements, each ending in ";\n". */
extern const char clickhouse_schema[];

#endif
