/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our end of the process that opens paths for names (sym/path_child.h). A question is waited for, within limits. One that is not answered
 * is given up and counted, and so is what would wait for the same: that process's root, or after two of them all that is that user's, for a minute. Nobody
 * waits for a child that cannot be ended. One thread only.
 */
#ifndef SFBPF_SYM_PATH_OPENER_H
#define SFBPF_SYM_PATH_OPENER_H

#include "base/fork_server.h"
#include "sym/path_child.h"
#include "sym/patience.h"

#define PATH_SILENT_NS (60 * NUM_S)

struct path_opener;

struct path_opener_totals {
	uint64_t died, late;	/* children: that ended or said nonsense; that took too long */
	uint64_t failed;	/* questions without an answer because of that, and files that could not be copied */
	uint64_t deferred;	/* because others had taken too long */
	uint64_t cpu_ns;	/* of all children */
};

/* child: path_child_main, but in tests. Server and patience must outlive it. NULL: out of memory. */
struct path_opener *path_opener_new(struct fork_server *server, fork_child_fn child, struct patience *patience);
void path_opener_free(struct path_opener *o);

void path_ask_begin(struct path_ask *ask, enum path_question question, uint32_t pid, uint32_t owner);
/* One more path; what is too long is left out. */
__attribute__((format(printf, 2, 3))) void path_ask_add(struct path_ask *ask, const char *format, ...);
/*
 * root: where the paths begin; -1: the root of ask->pid. A descriptor with *ret, or -ENOENT: there is none, or o is NULL; -EAGAIN: ask later;
 * -ETIMEDOUT, -ECHILD: it has been lost, and counted: not to be asked again for PATH_SILENT_NS.
 */
int path_open(struct path_opener *o, struct path_ask *ask, int root, struct path_answer *ret);
/* Ends the child if it has had nothing to do for some seconds. To be called now and then. */
void path_opener_rest(struct path_opener *o);
void path_opener_totals(const struct path_opener *o, struct path_opener_totals *ret);

#endif
