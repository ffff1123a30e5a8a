/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contexts of the processes that are sampled (agent/context.h). A process is asked for its
 * context when it is first seen. If it has one, it is asked again every minute: the context may
 * change. Otherwise it is asked after 1, 2, 4 and then every 8 minutes, because it may publish one
 * later. A worker with a deadline reads the memory (paths/path_opener.h). A context that cannot be
 * read leaves the one read before. One thread only.
 */
#ifndef SFBPF_AGENT_CONTEXTS_H
#define SFBPF_AGENT_CONTEXTS_H

#include "agent/target.h"
#include "agent/thread_links.h"
#include "paths/path_opener.h"

struct contexts;

struct contexts_totals {
	uint64_t read, failed;
};

/*
 * links: is told of processes whose threads publish spans; not owned, may be NULL. NULL: out of
 * memory.
 */
struct contexts *contexts_new(struct path_opener *opener, struct thread_links *links);
void contexts_free(struct contexts *c);
/* The process is in a window. now_ns: CLOCK_MONOTONIC. */
void contexts_see(struct contexts *c, uint32_t pid, uint64_t now_ns);
/* Whether it was more than a second ago that processes were last asked. */
bool contexts_due(const struct contexts *c, uint64_t now_ns);
/*
 * Asks the processes that were seen and are due, or as many as the allowance for names lets it. The
 * others are asked in a later call.
 */
void contexts_ask(struct contexts *c, uint64_t now_ns);
/* Whether a process has a context. */
bool contexts_any(const struct contexts *c);
/* The names that a process has for itself; NULL: none. Valid until the next call. */
const struct target *contexts_of(struct contexts *c, uint32_t pid);
/*
 * Forgets processes that are gone or were not seen for some minutes, if there are many. At most
 * 16,384 are known: when all places are taken, users have fair shares of them (base/share.h).
 */
void contexts_trim(struct contexts *c, uint64_t now_ns);
struct contexts_totals contexts_totals(const struct contexts *c);

#endif
