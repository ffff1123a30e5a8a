/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target: the systemd unit, container (base/container.h) or Kubernetes pod of a cgroup. The
 * path of a cgroup is looked up once per cgroup v2 id. That works after the process has exited, as
 * long as the cgroup exists.
 *
 *   path of the cgroup                                             target
 *   /system.slice/nginx.service                                    service nginx
 *   /docker/ID, /system.slice/docker-ID.scope, libpod-, crio-...   container ID
 *   /kubepods.slice/.../...-podUID.slice/cri-containerd-ID.scope   container ID, pod UID
 *   /user.slice/user-1000.slice/session-2.scope                    service user-1000
 *   /                                                              the default service
 *
 * The service of a container is its name (base/container_name.h), else "unknown_service", which
 * OpenTelemetry says for a resource without one: an id is no name. What the kubelet calls
 * containers of pods (agent/kubelet.h) has precedence over that, and what a process calls itself
 * (agent/contexts.h) over all of these.
 */
#ifndef SFBPF_AGENT_TARGET_H
#define SFBPF_AGENT_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "agent/pods.h"

#define TARGET_TEXT 128

struct target { /* clean text (base/text.h); "": none */
	char service[TARGET_TEXT], unit[TARGET_TEXT], container[TARGET_TEXT], pod[TARGET_TEXT];
	char container_name[TARGET_TEXT];
	/* Only a process's context has these: service.namespace, .version, .instance.id, ... */
	char space[TARGET_TEXT], version[TARGET_TEXT], instance[TARGET_TEXT],
		environment[TARGET_TEXT];
	uint32_t names; /* key of targets_names; 0: none */
};

/* path: relative to the cgroup mount, with a leading '/'. */
void target_parse(const char *path, const char *default_service, struct target *ret);

struct container_names;
struct targets;

/* containers must outlive it and may be NULL. NULL: out of memory */
struct targets *targets_new(const char *default_service, struct container_names *containers);
void targets_free(struct targets *t);
/*
 * A dense index, equal for cgroups with equal targets; 0, the default, if the cgroup is unknown. If
 * there are too many, new ones have it, too, and those that are known keep theirs.
 */
uint32_t targets_of(struct targets *t, uint64_t cgroup_id);
/*
 * The index of a target like `index`, but with the names that are set in `names`. Half of the
 * targets are for these: if there are too many, `index`, unless there is such a target.
 */
uint32_t targets_with(struct targets *t, uint32_t index, const struct target *names);
/*
 * The index of a target like `index`, in a pod of those names. Its service is that of the pod, else
 * of the container, else what it was. The container keeps the name that it had if `names` has none.
 * If there are too many, `index`, unless there is such a target.
 */
uint32_t targets_in_pod(struct targets *t, uint32_t index, const struct pod_names *names);
/* The names of a target's pod and of the container in it. NULL: not known. */
const struct pod_names *targets_names(const struct targets *t, const struct target *one);
const struct target *targets_at(const struct targets *t, uint32_t index);
/*
 * Called between windows. If there are many targets, invalidates all indices, so that short-lived
 * cgroups do not accumulate.
 */
void targets_trim(struct targets *t);

#endif
