/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our end of a process that makes tables (unwind/table_child.h): one file at a time, within limits. What comes from it is not
 * believed further than it is checked. A child that dies, hangs or says nonsense is ended, and there is another one for the next file.
 */
#ifndef SFBPF_UNWIND_TABLE_PARSER_H
#define SFBPF_UNWIND_TABLE_PARSER_H

#include "base/fork_server.h"
#include "unwind/pack.h"
#include "unwind/table_child.h"

struct table_parser_opts {
	struct fork_server *server;
	fork_child_fn child;		/* table_child_main */
	struct table_limits limits;
	uint64_t cpu_ns, wall_ns;	/* for a file */
};

struct table_parser {
	struct table_parser_opts opts;
	struct fork_child child;
	bool busy, keyed;		/* an answer is due; the key has been told */
	uint64_t since_ns;		/* busy or idle, CLOCK_MONOTONIC */
	uint64_t cpu_ns;		/* of the child when it became busy */
	uint64_t died, late;		/* children that ended or said nonsense; that were ended because they took too long */
	uint64_t spent_ns;		/* CPU time of children that have ended */
};

enum table_event {
	TABLE_NOTHING,
	TABLE_ANSWERED,
	TABLE_DIED,		/* the file is to blame, or the child was killed by somebody else */
	TABLE_LATE,
};

void table_parser_init(struct table_parser *p, const struct table_parser_opts *opts);
/* The file goes to the child, which is started if there is none. 0 or -errno: there can be no child. */
int table_parser_file(struct table_parser *p, const struct table_ask *ask, int fd);
/* After TABLE_KEYED. If the child cannot be told, table_parser_look says so. */
void table_parser_go_on(struct table_parser *p, bool convert);
/* What has become of it; does not wait. TABLE_DIED also of a child that is not busy. */
enum table_event table_parser_look(struct table_parser *p, struct table_answer *ret);
/* The tables that a TABLE_DONE speaks of; most: bytes that such a file may have. As table_entry_read; on -EBADMSG the child is ended. */
int table_parser_tables(struct table_parser *p, const struct table_answer *a, uint64_t most, const struct pack_space *space, struct pack_result *ret);
/* Ends the child if it was idle since before that time; 0: in any case. */
void table_parser_end(struct table_parser *p, uint64_t idle_since);
int table_parser_sock(const struct table_parser *p);		/* to poll; -1: no child */
uint64_t table_parser_cpu_ns(const struct table_parser *p);	/* of all its children */

#endif
