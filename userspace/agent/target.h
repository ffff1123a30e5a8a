/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a cgroup is to people: a systemd unit, a container (base/container.h), a Kubernetes pod. Its path is asked for once per cgroup
 * v2 id; that works after the process is gone as long as the cgroup is there.
 *
 *   /system.slice/nginx.service                                   service nginx
 *   /docker/ID  /system.slice/docker-ID.scope  libpod-, crio-...  container ID, service "docker:" and 12 digits of it
 *   /kubepods.slice/.../...-podUID.slice/cri-containerd-ID.scope  container ID, pod UID, service "pod:" UID
 *   /user.slice/user-1000.slice/session-2.scope                   service user-1000
 *   /                                                             the default
 */
#ifndef SFBPF_AGENT_TARGET_H
#define SFBPF_AGENT_TARGET_H

#include <stddef.h>
#include <stdint.h>

#define TARGET_TEXT 128

struct target {			/* clean text (base/text.h); "": none */
	char service[TARGET_TEXT], unit[TARGET_TEXT], container[TARGET_TEXT], pod[TARGET_TEXT];
};

/* path: below the cgroup mount, with a leading '/'. */
void target_parse(const char *path, const char *default_service, struct target *ret);

struct targets;

struct targets *targets_new(const char *default_service);	/* NULL: out of memory */
void targets_free(struct targets *t);
/* A dense index, the same for cgroups whose texts are equal; 0, the default, if nothing is known or memory runs out. */
uint32_t targets_of(struct targets *t, uint64_t cgroup_id);
const struct target *targets_at(const struct targets *t, uint32_t index);
/* Between windows: indices become invalid if there are many, so that a year of short-lived cgroups costs no memory. */
void targets_trim(struct targets *t);

#endif
