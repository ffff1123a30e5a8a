/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which tasks the agent profiles: the keys of [include] and [exclude]. A task is profiled if a
 * pattern of [include] matches it, or there is none, and no pattern of [exclude] does.
 *
 *   key          matches
 *   unit         systemd's unit, with or without ".service"
 *   pod          the pod's name or uid
 *   namespace    the pod's namespace
 *   container    the container's name or id
 *   cgroup       the path of the cgroup v2, or of one above it
 *   user         the real user of the process, by name or id
 *   comm         the thread's name
 *
 * A value is a list of patterns with *, ? and [...], separated by commas.
 *
 * Rules are applied to closed windows, when all names are known, so that they are exact. A cgroup
 * of which nothing can be wanted is also reported to the caller, who ends its sampling in the
 * kernel: from then on it costs nothing but a look-up.
 */
#ifndef SFBPF_AGENT_RULES_H
#define SFBPF_AGENT_RULES_H

#include "agent/config.h"
#include "agent/window.h"

struct rules;

/* What is wrong with the keys or users of a configuration, in err. 0 or -EINVAL */
int rules_check(const struct agent_config *c, struct agent_config_error *err);
bool rules_any(const struct agent_config *c);
/* NULL: there are none, or out of memory. The configuration was checked and may be freed. */
struct rules *rules_new(const struct agent_config *c);
void rules_free(struct rules *r); /* r may be NULL */

/* Whether a task is profiled. */
struct rules_task {
	const struct target *target;
	const struct pod_names *names; /* NULL: unknown */
	const char *cgroup;	       /* its path; "": unknown */
	const char *comm;
	uint32_t user; /* PROCESS_NO_USER: unknown */
};
bool rules_want(const struct rules *r, const struct rules_task *t);
/* Whether no task of the target in the cgroup is profiled, whatever its name and user are. */
bool rules_never(const struct rules *r, const struct rules_task *t);

/*
 * Removes from the window what is not profiled; w->excluded counts its samples. never: called for
 * cgroups of which nothing is. 0, or -ENOMEM: something unwanted may be left.
 */
int rules_apply(struct rules *r, struct window *w, void (*never)(void *ctx, uint64_t cgroup_id),
		void *ctx);

#endif
