/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `serve` answers from: the windows of a directory, or the tables in ClickHouse
 * (serve_tables.h).
 *
 * Windows that were read are in memory: a set of all their stacks, and of each window which of
 * these it has. A question about a range of time is then a sum of numbers. A window is read when a
 * question needs it for the first time.
 */
#ifndef SFBPF_SERVE_SERVE_STORE_H
#define SFBPF_SERVE_SERVE_STORE_H

#include "prof/read_stacks.h"
#include "report/windows.h"

struct clickhouse;
struct store;

struct store_range {
	struct window_choice windows;
	const char *service; /* NULL: all */
};

struct store_service {
	const char *name; /* valid until store_unlock */
	double amount;	  /* seconds of a CPU, or of blocked time */
};

struct store_host {
	char name[256];
};

#define STORE_STEPS 120

/* The answer to a question; zeroed before it, and freed after it. */
struct store_sum {
	size_t windows;	 /* number in the sum */
	size_t all;	 /* number in the range; more than windows: the rest is still to be read */
	size_t unread;	 /* damaged ones */
	double amount;	 /* sum of all services, in seconds */
	double selected; /* sum of range.service */
	struct store_service *services; /* the largest first */
	size_t nservices;
	struct store_host *hosts;
	size_t nhosts, hosts_cap;
	double steps[STORE_STEPS], selected_steps[STORE_STEPS]; /* the range in equal parts */
	struct stacks_meta meta;
};

/*
 * dir is a descriptor of the directory; memory: bytes that may be used for windows that are not
 * needed at the moment. NULL: out of memory.
 */
struct store *store_new(int dir, uint64_t memory);
/* Questions go to ClickHouse, and nothing is kept. tables: not owned. NULL: out of memory. */
struct store *store_new_tables(const struct clickhouse *tables);
void store_free(struct store *s);
/*
 * Questions are answered one at a time: the answers are valid until unlock. Reading stops after
 * patience_ns, and goes on with the next question (sum->all). 0; -EFBIG: the range needs more
 * memory than it may use; -EIO: the directory cannot be read, or ClickHouse has no answer; -ENOMEM.
 */
void store_lock(struct store *s);
void store_unlock(struct store *s);
int store_ask(struct store *s, const struct store_range *range, uint64_t patience_ns,
	      struct store_sum *ret);
void store_sum_free(struct store_sum *sum);
/*
 * The stacks of that question, which must have been answered completely, on one side of ss. 0 or
 * -errno.
 */
int store_stacks(struct store *s, const struct store_range *range, enum stack_side side,
		 struct stackset *ss);

#endif
