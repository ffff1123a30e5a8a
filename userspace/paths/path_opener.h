/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main process's side of the worker that opens paths for names (paths/path_worker.h). It waits
 * for an answer within limits. A question without an answer is given up and counted. For a minute,
 * questions that may block in the same way are not asked: those about the same process's root and,
 * after two unanswered questions, all about that user's files. A child that cannot be killed is not
 * waited for. One thread only.
 */
#ifndef SFBPF_PATHS_PATH_OPENER_H
#define SFBPF_PATHS_PATH_OPENER_H

#include "paths/path_worker.h"
#include "worker/worker.h"

#define PATH_SILENT_NS (60 * NUM_S)

/* Unanswered questions that are remembered; with this many no further question is asked */
#define PATH_SILENT_MAX 40

struct path_opener {
	struct worker worker;
	struct allowance *allowance;
	/* An unanswered question. It is kept for a minute, or longer if its child does not end. */
	struct path_silent {
		struct worker worker; /* killed, or ended since */
		uint32_t pid, owner;
		uint64_t since_ns; /* 0: free */
	} silent[PATH_SILENT_MAX];
};

/*
 * child: path_worker_main, except in tests. server and allowance must outlive the opener; the
 * totals of the allowance count what happens.
 */
void path_opener_init(struct path_opener *o, struct fork_server *server, fork_child_fn child,
		      struct allowance *allowance);
void path_opener_end(struct path_opener *o); /* accepts a zeroed struct, too */

void path_ask_begin(struct path_ask *ask, enum path_question question, uint32_t pid,
		    uint32_t owner);
/* Adds a path. One that is too long is left out. */
__attribute__((format(printf, 2, 3))) void path_ask_add(struct path_ask *ask, const char *format,
							...);
/*
 * root: directory where the paths start; -1: the root of ask->pid. Returns a descriptor and *ret;
 * -ENOENT: no such file, or o is NULL; -EAGAIN: ask later; -ETIMEDOUT, -ECHILD: failed and counted,
 * not to be asked again for PATH_SILENT_NS.
 */
int path_open(struct path_opener *o, struct path_ask *ask, int root, struct path_answer *ret);

#endif
