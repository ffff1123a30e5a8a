/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name that a container has for its owner, from the files in which its runtime keeps it.
 *
 *   docker         /var/lib/docker/containers/ID/config.v2.json
 *   containerd     /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json, the
 *                  annotations of Kubernetes' CRI plugin and of nerdctl; K3s: /run/k3s/containerd
 *   podman, CRI-O  /var/lib/containers/storage/overlay-containers/containers.json, and
 *                  volatile-containers.json beside it
 *   LXC            none: its id is the name
 *
 * Only root writes these files and their directories, but the owner of a container decides what
 * they say: files of more than 4 MB are not read, and time and memory are limited by their size. A
 * container is looked up once; a new name of it is not noticed.
 */
#ifndef SFBPF_BASE_CONTAINER_NAME_H
#define SFBPF_BASE_CONTAINER_NAME_H

#include "base/container.h"

/* Kubernetes' limits: names of pods have 253 bytes, others 63. Longer ones are cut. */
#define CONTAINER_NAME	128
#define CONTAINER_POD	256
#define CONTAINER_SPACE 64
#define CONTAINER_TEXT	(CONTAINER_POD + CONTAINER_NAME)

struct container_name { /* clean text (base/text.h); "": unknown */
	char name[CONTAINER_NAME];
	char pod[CONTAINER_POD], space[CONTAINER_SPACE]; /* Kubernetes */
};

struct container_names;

/*
 * root_fd: below which the files are, owned from now on; negative: no container has a name. NULL:
 * out of memory, root_fd is closed.
 */
struct container_names *container_names_new(int root_fd);
/*
 * The files of the host, also from a pod that has its PID namespace: below the root of process 1
 * (needs CAP_SYS_PTRACE), or below our own if that cannot be opened.
 */
struct container_names *container_names_of_host(void);
void container_names_free(struct container_names *cn);
/* Not NULL; valid until the next call. cn may be NULL. */
const struct container_name *container_names_get(struct container_names *cn,
						 const struct container *c);
/* "web", in Kubernetes "POD/CONTAINER", "": unknown. Returns dst. */
char *container_name_text(const struct container_name *name, char dst[CONTAINER_TEXT]);

#endif
