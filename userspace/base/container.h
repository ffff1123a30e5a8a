/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which container a process is in, told by its cgroup's path: runtimes put the container's id there.
 *
 *	/system.slice/docker-ID.scope			docker, systemd driver
 *	/docker/ID					docker, cgroupfs driver
 *	/kubepods.slice/.../cri-containerd-ID.scope	containerd under Kubernetes; crio-ID.scope
 *	/kubepods/burstable/podUID/ID			the same, cgroupfs driver
 *	...:cri-containerd:ID				containerd where its two settings disagree
 *	/machine.slice/libpod-ID.scope			podman
 *	/ecs/TASK/ID, /ecs/TASK/TASK-NUMBER		Amazon ECS
 *	/lxc.payload.NAME				LXC
 *
 * The deepest such part counts (containers in containers; a container's own systemd makes groups below it). ...-conmon-ID is the
 * process that watches over a container, outside of it.
 */
#ifndef SFBPF_BASE_CONTAINER_H
#define SFBPF_BASE_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTAINER_ID_MAX 80		/* with NUL; ids have 64 hex digits or 32 and a number */

struct container {
	char runtime[24];		/* "docker", "cri-containerd", "libpod"; "container" where the path does not say */
	char id[CONTAINER_ID_MAX];	/* hex digits; LXC: a name (foreign bytes) */
};

bool container_of_path(const char *cgroup_path, struct container *ret);
/*
 * Of a process; cgroup_id: its cgroup v2 id, 0 if not known. It may have ended, as long as the cgroup is there. Asks
 * the cgroup file system, then /proc.
 */
bool container_of_process(uint32_t pid, uint64_t cgroup_id, struct container *ret);
/* The path of a v2 cgroup below its mount point, "/" for the root; false: it is gone, or we may not ask. */
bool cgroup_path_of_id(uint64_t id, char *dst, size_t cap);

#endif
