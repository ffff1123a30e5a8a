/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the container of a process from the path of its cgroup, because runtimes put the id of the
 * container there.
 *
 *   /system.slice/docker-ID.scope                docker, systemd driver
 *   /docker/ID                                   docker, cgroupfs driver
 *   /kubepods.slice/.../cri-containerd-ID.scope  containerd under Kubernetes; crio-ID.scope
 *   /kubepods/burstable/podUID/ID                the same, cgroupfs driver
 *   ...:cri-containerd:ID                        containerd if its two settings disagree
 *   /machine.slice/libpod-ID.scope               podman
 *   /ecs/TASK/ID, /ecs/TASK/TASK-NUMBER          Amazon ECS
 *   /lxc.payload.NAME                            LXC
 *
 * The deepest such component counts: containers may contain containers, and systemd in a container
 * creates groups below it. ...-conmon-ID is the monitor process of a container, which runs outside
 * of it.
 */
#ifndef SFBPF_BASE_CONTAINER_H
#define SFBPF_BASE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_ID_MAX 80 /* size with NUL; an id has 64 hex digits, or 32 and a number */

struct container {
	/* "docker", "cri-containerd", "libpod"; "container" if the path has no name */
	char runtime[24];
	char id[CONTAINER_ID_MAX]; /* hex digits; LXC: a name (foreign bytes) */
};

bool container_of_path(const char *cgroup_path, struct container *ret);
/*
 * cgroup_id: cgroup v2 id of the process, 0 if unknown. The process may have ended if the cgroup
 * still exists. Reads the cgroup file system, then /proc.
 */
enum container_found {
	CONTAINER_NONE, /* the process is in no container */
	CONTAINER_FOUND,
	CONTAINER_GONE /* both the cgroup and the process */
};
enum container_found container_of_process(uint32_t pid, uint64_t cgroup_id, struct container *ret);
/*
 * The path of a v2 cgroup below its mount point, "/" for the root. false: the cgroup is gone, or
 * access is denied.
 */
bool cgroup_path_of_id(uint64_t id, char *dst, size_t cap);

#endif
